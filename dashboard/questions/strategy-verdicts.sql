-- Which strategies are proven, and which are contradicted?
-- What audits say of the strategy of each group: proven over so many generations, contradicted since then and why, or
-- not recomputable; and what the audits of the time asked for found.
-- parameters: since, until, cluster, limit
SELECT
    g.cluster,
    g.group_id,
    g.strategy,
    g.strategy_verdict,
    g.verdict_generations,
    g.verdict_from,
    g.verdict_reason,
    COUNT(*) FILTER (WHERE a.verdict = 'agrees') AS agreeing,
    COUNT(*) FILTER (WHERE a.verdict = 'differs') AS differing,
    COUNT(*) FILTER (WHERE a.verdict = 'not_recomputable') AS not_recomputable
FROM groups AS g
LEFT JOIN audits AS a
    ON a.cluster = g.cluster AND a.group_id = g.group_id
    AND a.event_time >= CAST(:since AS TIMESTAMP) AND a.event_time < CAST(:until AS TIMESTAMP)
WHERE g.strategy_verdict IS NOT NULL
    AND (:cluster = '' OR g.cluster = :cluster)
GROUP BY g.cluster, g.group_id, g.strategy, g.strategy_verdict, g.verdict_generations, g.verdict_from, g.verdict_reason
ORDER BY g.strategy_verdict, differing DESC, g.cluster, g.group_id
LIMIT :limit
