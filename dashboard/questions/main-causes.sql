-- Why do groups rebalance?
-- Main causes of the rebalances within the span, by system and cluster: how many, in how many groups, and their
-- share of the cluster's rebalances.
-- parameters: since, until, cluster, limit
SELECT
    cluster,
    trigger,
    COUNT(*) AS rebalances,
    COUNT(DISTINCT group_id) AS in_groups,
    ROUND(100e0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY cluster), 1) AS percent_of_cluster
FROM rebalances
WHERE event_time >= CAST(:since AS TIMESTAMP) AND event_time < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
GROUP BY cluster, trigger
ORDER BY rebalances DESC, cluster, trigger
LIMIT :limit
