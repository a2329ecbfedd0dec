"""Shell: the columns with the outcome of an audit. No I/O."""

from __future__ import annotations

from streaming.tables.columns import COUNT, DIFFERING, TEXT, TIME, Column

AUDITED = (
    Column("audited_at", TIME, "Event time at which the assignments were compared"),
    Column("strategy", TEXT, "Strategy that was recomputed, by its qualified name"),
    Column(
        "library",
        TEXT,
        "Library, or broker's release, whose assignment was recomputed; null = not known, or not Kafka's",
    ),
    Column("verdict", TEXT, "agrees, differs or not_recomputable"),
    Column("reason", TEXT, "Likely reason why it differs, or why it could not be recomputed"),
    Column("detail", TEXT, "The evidence for the reason"),
    Column("members", COUNT, "Members"),
    Column("queues", COUNT, "Queues of subscribed, known topics"),
    Column("queues_differing", COUNT, "Queues that differ; the next three are its parts"),
    Column("missing", COUNT, "Queues of which an expected owner reports nothing"),
    Column("duplicate", COUNT, "Queues with several reported owners"),
    Column("unexpected_owner", COUNT, "Queues with another reported owner than the expected one"),
    Column(
        "differing",
        DIFFERING,
        "The differing queues, in order, at most 50 of them; expected is empty where nothing could be recomputed",
    ),
)
