-- Which rebalances paused their group longest?
-- Single rebalances by the length of their pause, observed or estimated, with cause and size. Rebalances without
-- a known pause are left out.
-- parameters: since, until, cluster, limit
SELECT
    event_time,
    cluster,
    group_id,
    trigger,
    COALESCE(pause_ms, pause_estimated_ms) AS pause_ms,
    pause_ms IS NULL AS is_estimated,
    members_after,
    queues_after,
    rebalance_id
FROM rebalances
WHERE COALESCE(rebalances.pause_ms, rebalances.pause_estimated_ms) IS NOT NULL
    AND event_time >= CAST(:since AS TIMESTAMP) AND event_time < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
ORDER BY COALESCE(rebalances.pause_ms, rebalances.pause_estimated_ms) DESC, event_time, rebalance_id
LIMIT :limit
