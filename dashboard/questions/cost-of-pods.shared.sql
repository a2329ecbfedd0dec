WITH caused AS (
    SELECT
        named.rebalance_id,
        named.cluster,
        named.member_id,
        MAX(members.joined_at) AS joined_at,
        MAX_BY(members.address, members.joined_at) AS address
    FROM (
        SELECT DISTINCT rebalance_id, cluster, group_id, event_time, {cause}.member_id AS member_id
        FROM rebalances
            {causes}
        WHERE {cause}.member_id IS NOT NULL
            AND event_time >= CAST(:since AS TIMESTAMP) AND event_time < CAST(:until AS TIMESTAMP)
            AND (:cluster = '' OR cluster = :cluster)
    ) AS named
        LEFT JOIN members ON members.cluster = named.cluster AND members.group_id = named.group_id
            AND members.member_id = named.member_id AND members.joined_at <= named.event_time
    GROUP BY named.rebalance_id, named.cluster, named.member_id
),
lives AS (
    SELECT
        life.annotation_id,
        life.cluster,
        life.platform,
        {value} AS {column},
        life.began_at,
        life.ended_at,
        COALESCE(GREATEST(known.ended_at, life.written_at), life.written_at) AS known_until,
        host
    FROM annotations AS life
        LEFT JOIN annotations AS known ON known.kind = 'pods_followed' AND known.platform = life.platform
            AND known.began_at <= life.written_at
        {hosts}
    WHERE life.kind = 'pod'
),
placed AS (
    SELECT
        caused.rebalance_id,
        caused.member_id,
        CASE WHEN COUNT(DISTINCT lives.annotation_id) = 1 THEN MAX(lives.platform) END AS platform,
        COALESCE(CASE WHEN COUNT(DISTINCT lives.annotation_id) = 1 THEN MAX(lives.{column}) END, 'unknown') AS {column}
    FROM caused
        LEFT JOIN lives ON lives.host = caused.address AND (lives.cluster IS NULL OR lives.cluster = caused.cluster)
            AND lives.began_at <= caused.joined_at
            AND (caused.joined_at < lives.ended_at OR (lives.ended_at IS NULL AND caused.joined_at <= lives.known_until))
    GROUP BY caused.rebalance_id, caused.member_id
),
numbered AS (
    SELECT
        rebalance_id,
        member_id,
        platform,
        {column},
        ROW_NUMBER() OVER (PARTITION BY rebalance_id, platform, {column} ORDER BY member_id) AS nth
    FROM placed
)
SELECT
    numbered.platform,
    numbered.{column},
    COUNT(DISTINCT numbered.rebalance_id) AS rebalances,
    COUNT(DISTINCT numbered.member_id) AS member_ids,
    ROUND(SUM(outage_min_ms) / 1000e0, 3) AS outage_min_s,
    ROUND(SUM(outage_max_ms) / 1000e0, 3) AS outage_max_s,
    CAST(SUM(outage_unknown_queues) AS BIGINT) AS outage_unknown_queues,
    CAST(SUM(repeated_messages) AS BIGINT) AS repeated_messages,
    CAST(SUM(repeated_estimated_messages) AS BIGINT) AS repeated_estimated_messages,
    CAST(SUM(waiting_messages) AS BIGINT) AS waiting_messages,
    CAST(SUM(waiting_estimated_messages) AS BIGINT) AS waiting_estimated_messages,
    CAST(SUM(queues_moved) AS BIGINT) AS queues_moved
FROM numbered
    LEFT JOIN rebalances ON rebalances.rebalance_id = numbered.rebalance_id AND numbered.nth = 1
GROUP BY numbered.platform, numbered.{column}
ORDER BY
    COALESCE(SUM(outage_max_ms), 0) DESC,
    COUNT(DISTINCT numbered.rebalance_id) DESC,
    numbered.platform NULLS LAST,
    numbered.{column}
LIMIT :limit
