-- What caused the rebalances of a group?
SELECT
    event_time,
    cluster,
    group_id,
    generation,
    cause.kind AS cause_kind,
    cause.member_id AS cause_member_id,
    cause.client AS cause_client,
    cause.topic AS cause_topic,
    cause.detail AS cause_detail,
    rebalance_id
FROM rebalances
    LATERAL VIEW EXPLODE(triggers) causes AS cause
WHERE event_time >= CAST(:since AS TIMESTAMP) AND event_time < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
    AND (:group = '' OR group_id = :group)
ORDER BY event_time DESC, cluster, group_id, rebalance_id, cause_kind, cause_member_id NULLS LAST, cause_topic NULLS LAST
LIMIT :limit
