-- Do groups own what their strategy computes?
-- Rebalances whose reported assignment could be compared with the recomputed one, and how many differ, by group
-- and strategy. A difference means other client versions, other settings or a member that hangs.
-- parameters: since, until, cluster, limit
SELECT
    cluster,
    group_id,
    strategy,
    COUNT(*) FILTER (WHERE agrees = FALSE) AS differing,
    COUNT(*) FILTER (WHERE agrees IS NOT NULL) AS compared,
    CAST(SUM(queues_differing) AS BIGINT) AS queues_differing,
    MAX(CASE WHEN agrees = FALSE THEN event_time END) AS last_at
FROM rebalances
WHERE event_time >= CAST(:since AS TIMESTAMP) AND event_time < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
GROUP BY cluster, group_id, strategy
HAVING COUNT(*) FILTER (WHERE agrees IS NOT NULL) > 0
ORDER BY differing DESC, cluster, group_id, strategy NULLS LAST
LIMIT :limit
