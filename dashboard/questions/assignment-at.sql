-- How were queues spread over members at a time?
-- How many queues each member of a group owned at a time, by topic, as computed and as reported.
-- parameters: at, cluster, group, limit
SELECT
    cluster,
    group_id,
    origin,
    member_id,
    topic,
    COUNT(*) AS queues
FROM assignments
WHERE valid_from <= CAST(:at AS TIMESTAMP) AND (valid_to IS NULL OR valid_to > CAST(:at AS TIMESTAMP))
    AND (:cluster = '' OR cluster = :cluster)
    AND (:group = '' OR group_id = :group)
GROUP BY cluster, group_id, origin, member_id, topic
ORDER BY cluster, group_id, origin, queues DESC, member_id, topic
LIMIT :limit
