"""Shell: columns that several tables have, with one comment each. No I/O."""

from __future__ import annotations

from streaming.tables.columns import COUNT, LONG, TEXT, TEXTS, TIME, TRUTH, Column
from udfs.model.member_fields import TRAITS, kind_of
from udfs.model.systems import SYSTEMS

CLUSTER = Column("cluster", TEXT, "Name of the cluster")
SYSTEM = Column("system", TEXT, f"{', '.join([*SYSTEMS][:-1])} or {[*SYSTEMS][-1]}")
GROUP = Column("group_id", TEXT, "Name of the consumer group")
TOPIC = Column("topic", TEXT, "Name of the topic")
BROKER = Column("broker", TEXT, "Broker of the queue where queues are numbered per broker, else null")
QUEUE = Column("queue_id", LONG, "Number of the queue (partition); -1 = shared by message, without a single owner")
MEMBER = Column("member_id", TEXT, "Id of the member within its group")
INSTANCE = Column("instance_id", TEXT, TRAITS["instance_id"].comment)
REBALANCE = Column("rebalance_id", TEXT, "The rebalance, see table rebalances")
SPAN = (
    Column("valid_from", TIME, "Start of the span"),
    Column("valid_to", TIME, "End of the span, not part of it; null = now"),
)
IDLE = Column("idle_members", COUNT, "Members with a subscription and without queues")
UNASSIGNED = Column("unassigned_queues", COUNT, "Subscribed queues without an owner")
OBSERVED_BY = Column(
    "observed_by", TEXT, "polls: known by admin calls alone; what happened between two polls is one generation"
)
SPREAD = Column("spread", COUNT, "Most minus fewest queues of a subscribing member")

KINDS = {str: TEXT, int: LONG, bool: TRUTH, tuple: TEXTS, dict: TEXT}


def costs(of_which: str) -> list[Column]:
    """Return the columns for the costs of moved queues; ``of_which`` is added to each comment."""
    return [
        Column(
            "repeated_messages",
            LONG,
            "Messages that the new owner reads again: the former owner's position less its last commit; null = unknown"
            + of_which,
        ),
        Column(
            "repeated_estimated_messages",
            LONG,
            "Estimate of repeated_messages where the position is not known: by the last two commits" + of_which,
        ),
        Column(
            "waiting_messages",
            LONG,
            "Messages that waited for the new owner: the end of the queue when it was given to it, less the committed"
            " offset; null = that end was not observed" + of_which,
        ),
        Column(
            "waiting_estimated_messages",
            LONG,
            "Estimate of waiting_messages: the end as last observed, and as many more as were read in that time before"
            + of_which,
        ),
    ]


COST_NAMES = tuple(column.name for column in costs(""))


def outage(of_what: str, name: str = "outage") -> list[Column]:
    """Return the two bounds of an outage; ``of_what`` is added to their comments."""
    return [
        Column(f"{name}_min_ms", LONG, f"For how long nobody read {of_what}, at least; null = unknown"),
        Column(f"{name}_max_ms", LONG, f"For how long nobody read {of_what}, at most; null = unknown, or not over"),
    ]


def described(*names: str) -> list[Column]:
    """Return the columns of a member's description."""
    return [Column(name, KINDS[kind_of(name)], TRAITS[name].comment) for name in names]
