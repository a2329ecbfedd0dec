-- Which groups are skewed?
-- Groups now whose members own different numbers of queues: the spread (most minus fewest queues of a member)
-- beside the mean. A spread of 1 cannot be avoided where queues do not divide evenly, so it is left out.
-- parameters: cluster, limit
SELECT
    cluster,
    group_id,
    strategy,
    members,
    queues,
    spread,
    ROUND(1e0 * queues / members, 1) AS mean_queues
FROM groups
WHERE spread > 1
    AND members > 0
    AND (:cluster = '' OR cluster = :cluster)
ORDER BY spread DESC, cluster, group_id
LIMIT :limit
