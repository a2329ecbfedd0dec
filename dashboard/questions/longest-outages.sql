-- Which rebalances left a queue unread longest?
-- Single rebalances by the outage of their longest queue, at least and at most, with cause and size. Rebalances without
-- a known outage are left out.
-- parameters: since, until, cluster, limit
SELECT
    event_time,
    cluster,
    group_id,
    trigger,
    queue_outage_min_ms,
    queue_outage_max_ms,
    outage_unknown_queues,
    outage_evidence,
    members_after,
    queues_after,
    rebalance_id
FROM rebalances
WHERE (queue_outage_max_ms > 0 OR queue_outage_min_ms > 0)
    AND event_time >= CAST(:since AS TIMESTAMP) AND event_time < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
ORDER BY COALESCE(queue_outage_max_ms, queue_outage_min_ms) DESC, event_time, rebalance_id
LIMIT :limit
