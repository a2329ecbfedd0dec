-- What did rebalances cost each group?
-- Time that queues had no owner, summed over the queues (queue seconds): as observed, and as estimated where it
-- was not observed; with the queues that moved. The costliest first.
-- parameters: since, until, cluster, limit
SELECT
    cluster,
    group_id,
    COUNT(*) AS rebalances,
    ROUND(COALESCE(SUM(queue_pause_ms), 0) / 1000e0, 3) AS queue_pause_s,
    ROUND(COALESCE(SUM(CASE WHEN queue_pause_ms IS NULL THEN queue_pause_estimated_ms END), 0) / 1000e0, 3)
        AS queue_pause_estimated_s,
    COUNT(*) FILTER (WHERE queue_pause_ms IS NULL AND queue_pause_estimated_ms IS NULL) AS of_unknown_pause,
    CAST(SUM(queues_moved) AS BIGINT) AS queues_moved
FROM rebalances
WHERE event_time >= CAST(:since AS TIMESTAMP) AND event_time < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
GROUP BY cluster, group_id
ORDER BY queue_pause_s DESC, queue_pause_estimated_s DESC, cluster, group_id
LIMIT :limit
