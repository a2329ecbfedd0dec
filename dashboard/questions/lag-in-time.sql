-- How old is the next unread message of each queue?
-- Queues in which messages wait, the oldest first: between which two ages, in seconds, their next unread message was
-- when the tables were known last. It was written after the last end that is not beyond the commit, and by the first
-- that is; the greater age is null where no earlier end is known.
-- parameters: cluster, group, limit
WITH ranked AS (
    SELECT
        cluster,
        group_id,
        topic,
        broker,
        queue_id,
        committed_offset,
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
        waiting.known_until
)
SELECT
    cluster,
    group_id,
    topic,
    broker,
    queue_id,
    lag,
    ROUND(DATE_DIFF('millisecond', beyond_at, known_until) / 1000e0, 1) AS age_min_s,
    CASE
        -- Ends are read once a minute at least, so a row of later than that may hide an earlier growth.
        WHEN read_up_to_at <= beyond_at THEN ROUND(
            DATE_DIFF(
                'millisecond',
                LEAST(GREATEST(read_up_to_at, beyond_from - INTERVAL '60' SECOND), beyond_at),
                known_until
            ) / 1000e0,
            1
        )
    END AS age_max_s
FROM bounds
ORDER BY age_min_s DESC, cluster, group_id, topic, broker NULLS FIRST, queue_id
LIMIT :limit
