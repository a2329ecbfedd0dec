-- How long do findings stay open?
-- Closed findings by kind: how many, and how long they stayed open on average and at most. A kind that stays
-- open for hours is one that nobody acts on.
-- parameters: since, until, cluster, limit
SELECT
    kind,
    severity,
    COUNT(*) AS closed,
    ROUND(AVG(DATE_DIFF('millisecond', opened_at, closed_at)) / 1000e0, 1) AS mean_s,
    ROUND(MAX(DATE_DIFF('millisecond', opened_at, closed_at)) / 1000e0, 1) AS longest_s
FROM findings
WHERE closed_at IS NOT NULL
    AND opened_at >= CAST(:since AS TIMESTAMP) AND opened_at < CAST(:until AS TIMESTAMP)
    AND (:cluster = '' OR cluster = :cluster)
GROUP BY kind, severity
ORDER BY closed DESC, kind, severity
LIMIT :limit
