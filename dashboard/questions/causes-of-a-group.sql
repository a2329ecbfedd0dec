-- What caused the rebalances of a group?
-- Every cause of each rebalance of a group, not only the main one: which member or topic, and what is known of
-- it, newest first. A rebalance with several causes has several rows.
-- parameters: since, until, cluster, group, limit
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
    CROSS JOIN UNNEST(triggers) AS causes (cause)
WHERE event_time >= CAST(:since AS TIMESTAMP) AND event_time < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
    AND (:group = '' OR group_id = :group)
ORDER BY event_time DESC, cluster, group_id, rebalance_id, cause_kind, cause_member_id NULLS LAST, cause_topic NULLS LAST
LIMIT :limit
