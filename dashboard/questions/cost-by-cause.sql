-- Which causes cost most?
-- Outages at least and at most in queue seconds, messages read twice or waiting (known, and estimated beside them) and
-- moved queues by main cause: whether members that leave, expire or come cost more than new queues. Sums of what is
-- known; null = of none.
-- parameters: since, until, cluster, limit
SELECT
    trigger,
    COUNT(*) AS rebalances,
    ROUND(SUM(outage_min_ms) / 1000e0, 3) AS outage_min_s,
    ROUND(SUM(outage_max_ms) / 1000e0, 3) AS outage_max_s,
    CAST(SUM(outage_unknown_queues) AS BIGINT) AS outage_unknown_queues,
    ROUND(AVG(queue_outage_max_ms) / 1000e0, 3) AS mean_longest_outage_s,
    CAST(SUM(repeated_messages) AS BIGINT) AS repeated_messages,
    CAST(SUM(repeated_estimated_messages) AS BIGINT) AS repeated_estimated_messages,
    CAST(SUM(waiting_messages) AS BIGINT) AS waiting_messages,
    CAST(SUM(waiting_estimated_messages) AS BIGINT) AS waiting_estimated_messages,
    CAST(SUM(queues_moved) AS BIGINT) AS queues_moved
FROM rebalances
WHERE event_time >= CAST(:since AS TIMESTAMP) AND event_time < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
GROUP BY trigger
ORDER BY COALESCE(SUM(outage_max_ms), 0) DESC, trigger
LIMIT :limit
