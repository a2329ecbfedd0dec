-- What is wrong now?
-- Open findings by severity and kind: in how many groups, since when the oldest.
-- parameters: cluster, limit
SELECT
    severity,
    kind,
    cluster,
    COUNT(*) AS findings,
    COUNT(DISTINCT group_id) AS in_groups,
    MIN(opened_at) AS oldest_since
FROM findings
WHERE closed_at IS NULL
    AND (:cluster = '' OR cluster = :cluster)
GROUP BY severity, kind, cluster
ORDER BY
    CASE severity WHEN 'critical' THEN 1 WHEN 'warning' THEN 2 ELSE 3 END,
    findings DESC,
    kind,
    cluster
LIMIT :limit
