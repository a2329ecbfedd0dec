-- How long do findings stay open?
SELECT
    kind,
    severity,
    COUNT(*) AS closed,
    ROUND(AVG(TIMESTAMPDIFF(MILLISECOND, opened_at, closed_at)) / 1000e0, 1) AS mean_s,
    ROUND(MAX(TIMESTAMPDIFF(MILLISECOND, opened_at, closed_at)) / 1000e0, 1) AS longest_s
FROM findings
WHERE closed_at IS NOT NULL
    AND opened_at >= CAST(:since AS TIMESTAMP) AND opened_at < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
GROUP BY kind, severity
ORDER BY closed DESC, kind, severity
LIMIT :limit
