-- Which groups leave queues without an owner?
-- Groups now with queues of subscribed topics that no member owns: their messages are not consumed.
-- parameters: cluster, limit
SELECT
    cluster,
    group_id,
    state,
    members,
    queues,
    unassigned_queues,
    last_rebalance_at
FROM groups
WHERE unassigned_queues > 0
    AND (:cluster = '' OR cluster = :cluster)
ORDER BY unassigned_queues DESC, cluster, group_id
LIMIT :limit
