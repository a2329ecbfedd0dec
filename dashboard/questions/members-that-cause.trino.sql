-- Which clients cause most rebalances?
SELECT
    cluster,
    group_id,
    client,
    COUNT(DISTINCT rebalance_id) AS rebalances,
    COUNT(DISTINCT CASE WHEN kind = 'session_expired' THEN rebalance_id END) AS by_expired_session,
    COUNT(DISTINCT member_id) AS member_ids,
    MAX(event_time) AS last_at
FROM rebalances
    CROSS JOIN UNNEST(triggers) AS causes (kind, member_id, topic, detail, event_id, client, host, part_of)
WHERE client IS NOT NULL
    AND event_time >= CAST(:since AS TIMESTAMP) AND event_time < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
GROUP BY cluster, group_id, client
ORDER BY rebalances DESC, cluster, group_id, client
LIMIT :limit
