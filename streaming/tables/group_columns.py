"""Shell: the columns of a group's protocol, and of the audits of its strategy. No I/O."""

from __future__ import annotations

from streaming.tables.columns import COUNT, LONG, MEMBER_EPOCHS, RECONCILING, TEXT, TIME, Column
from udfs.model.journal import MAX_MEMBER_EPOCHS, MAX_RECONCILING_MEMBERS, MAX_RECONCILING_QUEUES

PROTOCOL_AND_VERDICT = (
    Column("protocol", TEXT, "consumer, share or streams: a group of Kafka's newer protocols; connect, ...: another"),
    Column("epoch", LONG, "Newest group epoch, of a group of a newer protocol"),
    Column("assignment_epoch", LONG, "Epoch of its newest target assignment"),
    Column("waits", TEXT, "Members that have yet to revoke queues or wait for some; topics an epoch waits for"),
    Column("strategy_verdict", TEXT, "What audits find of the strategy: proven, contradicted or not_recomputable"),
    Column("verdict_generations", COUNT, "How many generations it rests on"),
    Column("verdict_from", TIME, "Event time of the first of them"),
    Column("verdict_reason", TEXT, "Why it is contradicted or not recomputable, as in table audits"),
    Column("library", TEXT, "Library, or broker's release, that assigned last; null = not known, or not Kafka's"),
    Column(
        "member_epochs",
        MEMBER_EPOCHS,
        "Of a group of a newer protocol: members at another epoch than assignment_epoch (-2: static, and away;"
        " null: no record shows one); the others are at that one. null = not known, or more than"
        f" {MAX_MEMBER_EPOCHS}",
    ),
    Column(
        "reconciling",
        RECONCILING,
        "All members while it assigns or reconciles, as the coordinator has them: epoch, state, what each has, has"
        f" yet to revoke, and shall have. null = it does neither, or more than {MAX_RECONCILING_MEMBERS} members or"
        f" {MAX_RECONCILING_QUEUES} queues",
    ),
)
