-- Which causes cost most?
-- Queue seconds, messages read twice (known, and estimated beside them) or waiting, and moved queues by main cause:
-- whether members that leave, expire or come cost more than new queues. Sums of what is known; null = of none.
-- parameters: since, until, cluster, limit
SELECT
    trigger,
    COUNT(*) AS rebalances,
    ROUND(COALESCE(SUM(COALESCE(queue_pause_ms, queue_pause_estimated_ms)), 0) / 1000e0, 3) AS queue_pause_s,
    ROUND(AVG(COALESCE(pause_ms, pause_estimated_ms)) / 1000e0, 3) AS mean_pause_s,
    CAST(SUM(repeated_messages) AS BIGINT) AS repeated_messages,
    CAST(SUM(repeated_estimated_messages) AS BIGINT) AS repeated_estimated_messages,
    CAST(SUM(waiting_messages) AS BIGINT) AS waiting_messages,
    CAST(SUM(queues_moved) AS BIGINT) AS queues_moved
FROM rebalances
WHERE event_time >= CAST(:since AS TIMESTAMP) AND event_time < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
GROUP BY trigger
ORDER BY queue_pause_s DESC, trigger
LIMIT :limit
