-- Which groups rebalance most?
-- Number of rebalances of each group within the span, the most first, with how many failed and how many queues
-- moved from one owner to another.
-- parameters: since, until, cluster, limit
SELECT
    cluster,
    group_id,
    COUNT(*) AS rebalances,
    COUNT(*) FILTER (WHERE status = 'failed') AS failed,
    CAST(SUM(queues_moved) AS BIGINT) AS queues_moved,
    MAX(event_time) AS last_rebalance_at
FROM rebalances
WHERE event_time >= CAST(:since AS TIMESTAMP) AND event_time < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
GROUP BY cluster, group_id
ORDER BY rebalances DESC, cluster, group_id
LIMIT :limit
