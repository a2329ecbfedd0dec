-- Who owned a queue at a time?
-- The owners of one queue at a time, in each group, as computed by the strategy and as reported by clients;
-- since when, and until when.
-- parameters: topic, queue, at, cluster, group, limit
SELECT
    cluster,
    group_id,
    topic,
    broker,
    queue_id,
    origin,
    member_id,
    generation,
    valid_from,
    valid_to
FROM assignments
WHERE topic = :topic
    AND queue_id = :queue
    AND valid_from <= CAST(:at AS TIMESTAMP) AND (valid_to IS NULL OR valid_to > CAST(:at AS TIMESTAMP))
    AND (:cluster = '' OR cluster = :cluster)
    AND (:group = '' OR group_id = :group)
ORDER BY cluster, group_id, broker NULLS FIRST, origin, member_id
LIMIT :limit
