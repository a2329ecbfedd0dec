-- When do groups rebalance?
-- Rebalances of each group in each hour: what a heat map of churn shows. Hours without any have no row.
-- parameters: since, until, cluster, group, limit
SELECT
    DATE_TRUNC('hour', minute) AS hour,
    cluster,
    group_id,
    CAST(SUM(rebalances) AS BIGINT) AS rebalances,
    CAST(SUM(queues_moved) AS BIGINT) AS queues_moved
FROM group_minutes
WHERE minute >= CAST(:since AS TIMESTAMP) AND minute < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
    AND (:group = '' OR group_id = :group)
GROUP BY DATE_TRUNC('hour', minute), cluster, group_id
HAVING SUM(rebalances) > 0
ORDER BY hour DESC, rebalances DESC, cluster, group_id
LIMIT :limit
