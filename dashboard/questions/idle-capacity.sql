-- Where are consumers idle?
-- Groups now with members that own no queue: more consumers than queues, or a strategy that cannot use them.
-- parameters: cluster, limit
SELECT
    cluster,
    group_id,
    members,
    idle_members,
    queues,
    ROUND(100e0 * idle_members / members, 1) AS percent_idle
FROM groups
WHERE idle_members > 0
    AND members > 0
    AND (:cluster = '' OR cluster = :cluster)
ORDER BY idle_members DESC, cluster, group_id
LIMIT :limit
