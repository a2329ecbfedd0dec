-- Is this week worse than the last?
-- Rebalances, failures and queue seconds (outages, at most) of each group in the seven days before a time, and in the seven days
-- before those. The largest growth first.
-- parameters: at, cluster, limit
SELECT
    cluster,
    group_id,
    COUNT(*) FILTER (WHERE event_time >= CAST(:at AS TIMESTAMP) - INTERVAL '7' DAY) AS this_week,
    COUNT(*) FILTER (WHERE event_time < CAST(:at AS TIMESTAMP) - INTERVAL '7' DAY) AS week_before,
    COUNT(*) FILTER (WHERE event_time >= CAST(:at AS TIMESTAMP) - INTERVAL '7' DAY AND status = 'failed')
        AS failed_this_week,
    COUNT(*) FILTER (WHERE event_time < CAST(:at AS TIMESTAMP) - INTERVAL '7' DAY AND status = 'failed')
        AS failed_week_before,
    ROUND(COALESCE(SUM(outage_max_ms)
        FILTER (WHERE event_time >= CAST(:at AS TIMESTAMP) - INTERVAL '7' DAY), 0) / 1000e0, 3) AS outage_max_s_this_week,
    ROUND(COALESCE(SUM(outage_max_ms)
        FILTER (WHERE event_time < CAST(:at AS TIMESTAMP) - INTERVAL '7' DAY), 0) / 1000e0, 3) AS outage_max_s_week_before
FROM rebalances
WHERE event_time >= CAST(:at AS TIMESTAMP) - INTERVAL '14' DAY
    AND event_time < CAST(:at AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
GROUP BY cluster, group_id
ORDER BY
    COUNT(*) FILTER (WHERE event_time >= CAST(:at AS TIMESTAMP) - INTERVAL '7' DAY)
        - COUNT(*) FILTER (WHERE event_time < CAST(:at AS TIMESTAMP) - INTERVAL '7' DAY) DESC,
    cluster,
    group_id
LIMIT :limit
