-- Which members cause most rebalances?
-- Members named by a cause, with the number of rebalances that they took part in causing, and how many of these
-- were expired sessions: hosts to look at first.
-- parameters: since, until, cluster, limit
SELECT
    cluster,
    group_id,
    cause.member_id AS member_id,
    COUNT(DISTINCT rebalance_id) AS rebalances,
    COUNT(DISTINCT CASE WHEN cause.kind = 'session_expired' THEN rebalance_id END) AS by_expired_session,
    MAX(event_time) AS last_at
FROM rebalances
    CROSS JOIN UNNEST(triggers) AS causes (cause)
WHERE cause.member_id IS NOT NULL
    AND event_time >= CAST(:since AS TIMESTAMP) AND event_time < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
GROUP BY cluster, group_id, cause.member_id
ORDER BY rebalances DESC, cluster, group_id, member_id
LIMIT :limit
