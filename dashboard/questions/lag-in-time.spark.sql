-- How old is the next unread message of each queue?
WITH ranked AS (
    SELECT
        cluster,
        group_id,
        topic,
        broker,
        queue_id,
        committed_offset,
        written_offset,
        written_at,
        lag,
        ROW_NUMBER() OVER (
            PARTITION BY cluster, group_id, topic, broker, queue_id
            ORDER BY event_time DESC, committed_at DESC NULLS LAST, end_at DESC NULLS LAST
        ) AS nth,
        MAX(GREATEST(event_time, COALESCE(committed_at, event_time), COALESCE(end_at, event_time)))
            OVER (PARTITION BY cluster) AS known_until
    FROM queue_progress
    WHERE :cluster = '' OR cluster = :cluster
),
waiting AS (
    SELECT
        cluster,
        group_id,
        topic,
        broker,
        queue_id,
        committed_offset,
        written_offset,
        written_at,
        lag,
        known_until
    FROM ranked
    WHERE nth = 1
        AND lag > 0
        AND (:group = '' OR group_id = :group)
),
bounds AS (
    SELECT
        waiting.cluster,
        waiting.group_id,
        waiting.topic,
        waiting.broker,
        waiting.queue_id,
        waiting.lag,
        waiting.known_until,
        CASE WHEN waiting.written_offset = waiting.committed_offset THEN waiting.written_at END AS exact_at,
        CASE WHEN waiting.written_offset < waiting.committed_offset THEN waiting.written_at END AS earlier_at,
        MAX(CASE WHEN ends.end_offset <= waiting.committed_offset THEN ends.end_at END) AS read_up_to_at,
        MIN(CASE WHEN ends.end_offset > waiting.committed_offset THEN ends.end_at END) AS beyond_at,
        MIN(CASE WHEN ends.end_offset > waiting.committed_offset THEN ends.event_time END) AS beyond_from
    FROM waiting
    INNER JOIN queue_progress AS ends
        ON ends.cluster = waiting.cluster
        AND ends.group_id = waiting.group_id
        AND ends.topic = waiting.topic
        AND COALESCE(ends.broker, '') = COALESCE(waiting.broker, '')
        AND ends.queue_id = waiting.queue_id
    GROUP BY
        waiting.cluster,
        waiting.group_id,
        waiting.topic,
        waiting.broker,
        waiting.queue_id,
        waiting.lag,
        waiting.known_until,
        waiting.committed_offset,
        waiting.written_offset,
        waiting.written_at
)
SELECT
    cluster,
    group_id,
    topic,
    broker,
    queue_id,
    lag,
    ROUND(TIMESTAMPDIFF(MILLISECOND, COALESCE(exact_at, beyond_at), known_until) / 1000e0, 1) AS age_min_s,
    CASE
        WHEN exact_at IS NOT NULL THEN ROUND(TIMESTAMPDIFF(MILLISECOND, exact_at, known_until) / 1000e0, 1)
        WHEN earlier_at <= beyond_at AND (
            read_up_to_at IS NULL
            OR read_up_to_at > beyond_at
            OR earlier_at > GREATEST(read_up_to_at, beyond_from - INTERVAL '60' SECOND)
        ) THEN ROUND(TIMESTAMPDIFF(MILLISECOND, earlier_at, known_until) / 1000e0, 1)
        -- Ends are read once a minute at least, so a row of later than that may hide an earlier growth.
        WHEN read_up_to_at <= beyond_at THEN ROUND(
            TIMESTAMPDIFF(
                MILLISECOND,
                LEAST(GREATEST(read_up_to_at, beyond_from - INTERVAL '60' SECOND), beyond_at),
                known_until
            ) / 1000e0,
            1
        )
    END AS age_max_s
FROM bounds
ORDER BY age_min_s DESC, cluster, group_id, topic, broker NULLS FIRST, queue_id
LIMIT :limit
