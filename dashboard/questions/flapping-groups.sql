-- Which groups flap?
-- Groups that rebalanced more often than is usual for them: how often that finding opened within the span, when
-- last, and whether it is open.
-- parameters: since, until, cluster, limit
SELECT
    cluster,
    group_id,
    COUNT(*) AS times_opened,
    COUNT(*) FILTER (WHERE closed_at IS NULL) > 0 AS is_open,
    MAX(opened_at) AS last_opened_at
FROM findings
WHERE kind = 'flapping'
    AND opened_at >= CAST(:since AS TIMESTAMP) AND opened_at < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
GROUP BY cluster, group_id
ORDER BY times_opened DESC, last_opened_at DESC, cluster, group_id
LIMIT :limit
