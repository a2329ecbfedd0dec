-- Who owned a queue, one after the other?
-- All spans of ownership of one queue that touch the span, oldest first, with the rebalance that began each.
-- parameters: topic, queue, since, until, cluster, group, limit
SELECT
    valid_from,
    valid_to,
    cluster,
    group_id,
    broker,
    origin,
    member_id,
    generation,
    rebalance_id
FROM assignments
WHERE topic = :topic
    AND queue_id = :queue
    AND valid_from < CAST(:until AS TIMESTAMP)
    AND (valid_to IS NULL OR valid_to > CAST(:since AS TIMESTAMP))
    AND (:cluster = '' OR cluster = :cluster)
    AND (:group = '' OR group_id = :group)
ORDER BY valid_from, cluster, group_id, broker NULLS FIRST, origin, member_id
LIMIT :limit
