-- What did rebalances cost each group?
-- For how long nobody read queues, at least and at most, summed over the queues (queue seconds), with the queues of
-- which it is not known, and those that moved. The costliest first.
-- parameters: since, until, cluster, limit
SELECT
    cluster,
    group_id,
    COUNT(*) AS rebalances,
    ROUND(SUM(outage_min_ms) / 1000e0, 3) AS outage_min_s,
    ROUND(SUM(outage_max_ms) / 1000e0, 3) AS outage_max_s,
    CAST(SUM(outage_unknown_queues) AS BIGINT) AS outage_unknown_queues,
    CAST(SUM(queues_moved) AS BIGINT) AS queues_moved
FROM rebalances
WHERE event_time >= CAST(:since AS TIMESTAMP) AND event_time < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
GROUP BY cluster, group_id
ORDER BY COALESCE(SUM(outage_max_ms), 0) DESC, COALESCE(SUM(outage_min_ms), 0) DESC, cluster, group_id
LIMIT :limit
