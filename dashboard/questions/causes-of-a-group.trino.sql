-- What caused the rebalances of a group?
SELECT
    event_time,
    cluster,
    group_id,
    generation,
    kind AS cause_kind,
    member_id AS cause_member_id,
    client AS cause_client,
    topic AS cause_topic,
    detail AS cause_detail,
    rebalance_id
FROM rebalances
    CROSS JOIN UNNEST(triggers) AS causes (kind, member_id, topic, detail, event_id, client, host, part_of)
WHERE event_time >= CAST(:since AS TIMESTAMP) AND event_time < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
    AND (:group = '' OR group_id = :group)
ORDER BY event_time DESC, cluster, group_id, rebalance_id, cause_kind, cause_member_id NULLS LAST, cause_topic NULLS LAST
LIMIT :limit
