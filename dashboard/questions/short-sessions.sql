-- Which hosts come and go?
-- Ended sessions of members by host: how many, how many expired without a goodbye, and the shortest: crash loops
-- and processes that are killed.
-- parameters: since, until, cluster, limit
SELECT
    cluster,
    group_id,
    address,
    COUNT(*) AS sessions,
    COUNT(*) FILTER (WHERE left_reason = 'expired') AS expired,
    ROUND(MIN(DATE_DIFF('millisecond', joined_at, left_at)) / 1000e0, 1) AS shortest_s,
    ROUND(AVG(DATE_DIFF('millisecond', joined_at, left_at)) / 1000e0, 1) AS mean_s
FROM members
WHERE left_at IS NOT NULL
    AND joined_at >= CAST(:since AS TIMESTAMP)
    AND joined_at < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
GROUP BY cluster, group_id, address
ORDER BY sessions DESC, cluster, group_id, address NULLS LAST
LIMIT :limit
