"""Shell: every table of the monitor: its name, columns, types, comments, keys and properties, once. No I/O.

Everything that needs a schema (Delta, Arrow, Spark SQL, the README) derives it from here. Rows travel through the
shell as plain dicts in which times are epoch milliseconds, as in the core; `arrow_rows.py` makes TIMESTAMPs of them.
"""

from __future__ import annotations

from streaming.tables.annotation_table import ANNOTATIONS
from streaming.tables.audit_columns import AUDITED
from streaming.tables.columns import (
    APPENDED_FILE_BYTES,
    COUNT,
    EARLIER,
    LONG,
    MAX_EARLIER,
    OUTAGES,
    QUEUES,
    TEXT,
    TEXTS,
    TIME,
    TRIGGERS,
    TRUTH,
    Column,
    Row,
    Table,
)
from streaming.tables.episode_table import EPISODES
from streaming.tables.finding_columns import ADDRESS, CLIENT, FINDING_NAMES
from streaming.tables.group_columns import PROTOCOL_AND_VERDICT
from streaming.tables.shared_columns import (
    BROKER,
    CLUSTER,
    GROUP,
    IDLE,
    INSTANCE,
    MEMBER,
    OBSERVED_BY,
    QUEUE,
    REBALANCE,
    SPAN,
    SPREAD,
    SYSTEM,
    TOPIC,
    UNASSIGNED,
    costs,
    described,
    outage,
)
from udfs.model.journal import UNDER_WAY
from udfs.model.member_fields import SHOWN
from udfs.model.queue_outages import MAX_LISTED_OUTAGES

__all__ = [
    "ANNOTATIONS", "ASSIGNMENTS", "AUDITS", "CHANGES", "COUNT", "EPISODES", "FINDINGS", "GROUPS", "GROUP_MINUTES",
    "LONG", "MEMBERS", "QUEUES", "QUEUE_PROGRESS", "REBALANCES", "REJECTED_EVENTS", "TABLES", "TEXT", "TIME",
    "TOPICS", "TRIGGERS", "TRUTH", "Row", "Table",
]  # fmt: skip

REBALANCES = Table(
    "rebalances",
    "One row per rebalance: its time, its causes and its effects",
    (
        Column("rebalance_id", TEXT, "Identity: the same input gives the same id"),
        CLUSTER,
        SYSTEM,
        GROUP,
        Column("generation", LONG, "Number of the rebalance within its group"),
        Column("generation_source", TEXT, "reported (by the source) or counted (by the monitor)"),
        Column("event_time", TIME, "When it was complete, in event time"),
        Column("detected_at", TIME, "Processing time: the timestamp of the batch that decided it"),
        Column("trigger", TEXT, "Main cause: the first of its kind in the order of docs/groups.md"),
        Column("triggers", TRIGGERS, "Every cause that it takes in"),
        Column("strategy", TEXT, "Strategy that computed the assignment, by its qualified name"),
        Column("leader", TEXT, "Member that computed the assignment, where the source reports it"),
        Column("mode", TEXT, "clustering, broadcasting or message"),
        Column("status", TEXT, "completed or failed"),
        Column("error", TEXT, "Why it failed, or why it could not be recomputed"),
        Column("members_before", COUNT, "Members before"),
        Column("members_after", COUNT, "Members after; 0 = the group became empty"),
        Column("queues_before", COUNT, "Queues of subscribed, known topics of the generation before"),
        Column("queues_after", COUNT, "Queues of subscribed, known topics after"),
        Column("queues_kept", COUNT, "Owners that kept their queue"),
        Column("queues_assigned", COUNT, "Queues that had no owner and got one"),
        Column("queues_revoked", COUNT, "Queues that lost an owner and got none"),
        Column("queues_moved", COUNT, "Queues that moved from one owner to another"),
        Column("generations_missed", LONG, "Generations between the last one observed and this one; null = unknown"),
        IDLE,
        UNASSIGNED,
        SPREAD,
        Column("agrees", TRUTH, "Whether computed and reported assignment are equal; null = nothing to compare"),
        Column("queues_differing", COUNT, "Queues on which computed and reported assignment differ"),
        Column(
            "pause_ms",
            LONG,
            "Phases: from the first evidence that the coordinator had begun to the completed assignment; null = not"
            " observed. Outages have what its consumers lost",
        ),
        Column("queue_pause_ms", LONG, "Phases: pause_ms summed over the queues that it stopped; null = not observed"),
        Column("pause_estimated_ms", LONG, "Estimate of pause_ms where it was not observed"),
        Column("queue_pause_estimated_ms", LONG, "Estimate of queue_pause_ms where it was not observed"),
        Column(
            "library",
            TEXT,
            "Library, or broker's release, whose assignment was computed; null = not known, or not Kafka's",
        ),
        Column(
            "agrees_reason",
            TEXT,
            "Why agrees is null; growth_not_due where it is true but for the new queues of a topic",
        ),
        OBSERVED_BY,
        Column("logical_id", TEXT, "rebalance_id of the first generation of the same logical (cooperative) rebalance"),
        Column("began_at", TIME, "First evidence that it began; null = not observed"),
        Column("joined_at", TIME, "End of the join phase, or when the target was computed; null = not reported"),
        Column("completed_at", TIME, "When the source had completed it; null = not reported"),
        *costs("; summed over the queues that got an owner and of which it is known"),
        *outage(
            "the queues that stopped, from the former owner's last progress to the new one's first possible; summed"
        ),
        *outage("the queue with the longest outage", "queue_outage"),
        Column("outage_queues", COUNT, "Queues that stopped: all of an eager rebalance, else those that changed owner"),
        Column(
            "outage_unknown_queues",
            COUNT,
            "Queues without an upper bound, in both sums with their lower one; no maximum if no queue has one",
        ),
        Column("outage_evidence", TEXT, "What the bounds rest on: progress (commits, pulls), sessions, or both"),
        Column(
            "outages",
            OUTAGES,
            f"Outages, first those without an upper bound, then the longest; at most {MAX_LISTED_OUTAGES}",
        ),
        Column("episode_id", TEXT, "Episode that it was known to belong to when it was decided; null = none then"),
        Column(
            "settings",
            TEXT,
            "Set for the group, as JSON: strategy, inferred or not; polled, as polls show it; settings; null = unknown",
        ),
    ),
    key=("rebalance_id",),
    append_only=True,
    unique_texts=("rebalance_id",),
    file_bytes=APPENDED_FILE_BYTES,
)

CHANGES = Table(
    "changes",
    "One row per change: the journal from which the tables of spans and of the current state are built",
    (
        CLUSTER,
        Column("group_id", TEXT, "Group whose history this belongs to; null = of a topic or of the cluster"),
        Column(
            "subject", TEXT, "Topic or other thing of the cluster whose history this belongs to, where group_id is null"
        ),
        Column("number", LONG, "Position within that history: fixes the order"),
        Column("kind", TEXT, "member_opened, queues_reassigned, group_changed, ...: the type of body"),
        Column("event_time", TIME, "Event time"),
        Column("batch", LONG, "Batch of the job that decided it"),
        Column("body", TEXT, "The change itself, as JSON; times in epoch milliseconds"),
    ),
    key=("cluster", "group_id", "subject", "number"),
    file_bytes=APPENDED_FILE_BYTES,
    unique_texts=("body",),
)

REJECTED_EVENTS = Table(
    "rejected_events",
    "One row per input that was not applied as sent",
    (
        Column("cluster", TEXT, "Name of the cluster, where the input names it"),
        Column("group_id", TEXT, "Name of the group, where the input names it"),
        Column("source", TEXT, "Source: folder or topic"),
        Column("position", TEXT, "Position in the source: partition and offset, or file and line"),
        Column("raw", TEXT, "Text of the input, cut at limits.raw_limit_bytes"),
        Column("reason", TEXT, "Stable code, e.g. not_json, missing_field, late"),
        Column("detail", TEXT, "Explanation of the reason"),
        Column("seen_at", TIME, "Time of the batch that read it"),
        Column("raw_length", LONG, "Full length of the input in bytes"),
        Column("raw_sha256", TEXT, "SHA-256 of the full input, in hex"),
    ),
    key=("source", "position", "reason"),
    cluster_by=("seen_at",),
    append_only=True,
    unique_texts=("position", "raw", "raw_sha256"),
    file_bytes=APPENDED_FILE_BYTES,
)

ASSIGNMENTS = Table(
    "assignments",
    "One row per owner of one queue for one span; owner at T: valid_from <= T and (valid_to is null or T < valid_to)",
    (
        CLUSTER,
        GROUP,
        TOPIC,
        BROKER,
        QUEUE,
        MEMBER,
        INSTANCE,
        Column("origin", TEXT, "computed (by the strategy) or reported (by clients or coordinator)"),
        Column("generation", LONG, "Generation that began the span"),
        REBALANCE,
        *SPAN,
        Column("inferred", TRUTH, "Whether the start was inferred and not observed"),
        Column(
            "pause_ms",
            LONG,
            "Reported spans: from the old owner's release of the queue to this one's first pull, as observed",
        ),
        Column(
            "pause_estimated_ms", LONG, "Estimate of pause_ms where it was not observed, by the clients' own timings"
        ),
        *costs(""),
        *outage("the queue before this span"),
    ),
    key=("cluster", "group_id", "topic", "broker", "queue_id", "member_id", "origin", "valid_from"),
    ends="valid_to",
)

MEMBERS = Table(
    "members",
    "One row per session of one member",
    (
        CLUSTER,
        GROUP,
        MEMBER,
        *described("client_id", "host", "instance_id", "rack", "subscriptions", "strategies"),
        Column("joined_at", TIME, "Start of the session"),
        Column("last_heartbeat_at", TIME, "Last heartbeat of an ended session; null while it is open"),
        Column("left_at", TIME, "End of the session; null = still a member"),
        Column("left_reason", TEXT, "left, expired, gone, absent_from_snapshot or replaced"),
        Column("lives_by", TEXT, "heartbeats (expires without them) or snapshots"),
        *described("session_timeout_ms"),
        Column("former_member_id", TEXT, "Previous id of a static member that rejoined under this one"),
        *described(*SHOWN[SHOWN.index("client_version") : SHOWN.index("client_library")]),
        CLIENT,
        ADDRESS,
        *described("client_library", "strategy_settings"),
        Column(
            "earlier",
            EARLIER,
            "Earlier descriptions in this session, oldest first: until when each held, in epoch ms, and what decides an"
            f" assignment; null = it never changed; the newest {MAX_EARLIER} changes",
        ),
    ),
    key=("cluster", "group_id", "member_id", "joined_at"),
    ends="left_at",
)

GROUPS = Table(
    "groups",
    "One row per group as it is now",
    (
        CLUSTER,
        SYSTEM,
        GROUP,
        Column(
            "state",
            TEXT,
            "stable, empty, failed, not_followed (a kind that is not recomputed), or of a rebalance under way: "
            + ", ".join(UNDER_WAY),
        ),
        Column("mode", TEXT, "clustering, broadcasting or message"),
        Column("strategy", TEXT, "Strategy that computes the assignment, by its qualified name"),
        Column("generation", LONG, "Last generation"),
        Column("generation_source", TEXT, "reported or counted"),
        Column("members", COUNT, "Members; null = not known, of a kind that is not followed"),
        Column("queues", COUNT, "Queues of subscribed, known topics"),
        IDLE,
        UNASSIGNED,
        SPREAD,
        Column("last_rebalance_at", TIME, "Time of the last rebalance"),
        Column("last_rebalance_id", TEXT, "That rebalance"),
        OBSERVED_BY,
        *PROTOCOL_AND_VERDICT,
    ),
    key=("cluster", "group_id"),
)

TOPICS = Table(
    "topics",
    "One row per span in which a topic had the same queues and the same id",
    (
        CLUSTER,
        TOPIC,
        Column("queue_count", LONG, "Number of queues"),
        Column("queues", QUEUES, "The queues, with the racks of their replicas where known"),
        *SPAN,
        Column("topic_id", TEXT, "Kafka's UUID of the topic; null = not reported"),
    ),
    key=("cluster", "topic", "valid_from"),
    ends="valid_to",
    cluster_by=("cluster", "topic"),
)

FINDINGS = Table(
    "findings",
    "One row per finding, open or closed",
    (
        Column("finding_id", TEXT, "Identity of the finding"),
        CLUSTER,
        Column("group_id", TEXT, "Affected group; null = the whole cluster"),
        Column("kind", TEXT, "source_silent, generations_missed, strategy_failed, events_late, expected_differs, ..."),
        Column("severity", TEXT, "info, warning or critical"),
        Column("message", TEXT, "What is wrong"),
        Column("advice", TEXT, "What to do about it"),
        Column("evidence", TEXTS, "Ids of the events that prove it"),
        Column("opened_at", TIME, "Since when"),
        Column("closed_at", TIME, "Time when it closed; null = still open"),
        *FINDING_NAMES,
    ),
    key=("finding_id",),
    ends="closed_at",
)

GROUP_MINUTES = Table(
    "group_minutes",
    "One row per minute of a group in which anything changed; a minute without a row is like the last row before it,"
    " with no rebalances",
    (
        CLUSTER,
        GROUP,
        Column("minute", TIME, "Start of the minute"),
        Column("members", COUNT, "Members at the end of the minute; null = not known"),
        Column("rebalances", COUNT, "Rebalances in the minute"),
        Column("queues_moved", LONG, "Queues moved in the minute"),
        Column(
            "queue_pause_ms",
            LONG,
            "Queue pauses of its rebalances, or that ended in it where members take over by themselves, if observed;"
            " null = of none of them",
        ),
        Column("idle_members", COUNT, "Idle members at the end of the minute"),
        Column("unassigned_queues", COUNT, "Unassigned queues at the end of the minute"),
        Column("spread", COUNT, "Spread at the end of the minute"),
        *outage("queues, summed over its rebalances and over members that came back without one"),
    ),
    key=("cluster", "group_id", "minute"),
)

QUEUE_PROGRESS = Table(
    "queue_progress",
    "One row per queue of a group and span of event time (time.queue_progress_ms) in which its commit or its end moved;"
    " offsets as of its end; the last one after the group or its commit was deleted has none."
    " While a group rebalances, and until it has committed since, lag is not reliable",
    (
        CLUSTER,
        GROUP,
        TOPIC,
        BROKER,
        QUEUE,
        Column("event_time", TIME, "Start of the span"),
        Column("committed_offset", LONG, "Committed offset: the next message that a new owner reads"),
        Column("committed_at", TIME, "Time of that commit, or of its deletion; null = before the first observed"),
        Column("end_offset", LONG, "End of the queue, where the source reports it: the offset of the next new message"),
        Column("end_at", TIME, "Time when that was observed"),
        Column("start_offset", LONG, "Where its log begins, where the source reports it: older messages are deleted"),
        Column("written_offset", LONG, "A message at the commit or before it, of which brokers gave the time"),
        Column("written_at", TIME, "When it was written, by the brokers"),
        Column("lag", LONG, "end_offset minus committed_offset; null where one is not known, or the end is less"),
    ),
    key=("cluster", "group_id", "topic", "broker", "queue_id", "event_time", "committed_at", "end_at"),
    file_bytes=APPENDED_FILE_BYTES,
)

AUDITS = Table(
    "audits",
    "One row per generation that was audited: whether the reported assignment is the recomputed one, and why not",
    (
        REBALANCE,
        CLUSTER,
        SYSTEM,
        GROUP,
        Column("generation", LONG, "Number of the rebalance within its group"),
        Column("event_time", TIME, "Event time of the rebalance"),
        *AUDITED,
    ),
    key=("rebalance_id",),
    unique_texts=("rebalance_id",),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        REBALANCES,
        ASSIGNMENTS,
        MEMBERS,
        GROUPS,
        TOPICS,
        FINDINGS,
        REJECTED_EVENTS,
        CHANGES,
        GROUP_MINUTES,
        QUEUE_PROGRESS,
        AUDITS,
        ANNOTATIONS,
        EPISODES,
    )
}
