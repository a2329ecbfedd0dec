"""Shell: columns that several tables have, with one comment each. No I/O."""

from __future__ import annotations

from streaming.tables.columns import (
    COUNT,
    LONG,
    NAMED_CLIENTS,
    NAMED_MEMBERS,
    NAMED_QUEUES,
    NAMED_SUBSCRIPTIONS,
    TEXT,
    TEXTS,
    TIME,
    TRUTH,
    Column,
)
from udfs.model.finding_names import MAX_NAMED, MAX_SUBSCRIPTIONS
from udfs.model.member_fields import TRAITS, kind_of
from udfs.model.systems import SYSTEMS

CLUSTER = Column("cluster", TEXT, "Name of the cluster")
SYSTEM = Column("system", TEXT, f"{', '.join([*SYSTEMS][:-1])} or {[*SYSTEMS][-1]}")
GROUP = Column("group_id", TEXT, "Name of the consumer group")
TOPIC = Column("topic", TEXT, "Name of the topic")
BROKER = Column("broker", TEXT, "Broker of the queue where queues are numbered per broker, else null")
QUEUE = Column("queue_id", LONG, "Number of the queue (partition); -1 = shared by message, without a single owner")
MEMBER = Column("member_id", TEXT, "Id of the member within its group")
CLIENT = Column(
    "client",
    TEXT,
    "What stays the same under other member ids: the instance id; else client id and host; else the host; else the"
    " member's id",
)
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

FINDING_NAMES = (
    Column(
        "queues",
        NAMED_QUEUES,
        f"Queues that it speaks of, at most {MAX_NAMED}: the member to whom the strategy assigns each, why that one does"
        " not read it (not_subscribed, not_owned), and who owns it",
    ),
    Column("queues_left_out", LONG, "How many more queues there are"),
    Column("members", NAMED_MEMBERS, f"Members that it speaks of, at most {MAX_NAMED}, and what it says of each"),
    Column("members_left_out", LONG, "How many more members there are"),
    Column(
        "clients",
        NAMED_CLIENTS,
        f"Clients that it speaks of, at most {MAX_NAMED}, and how many rebalances each caused where it counts them",
    ),
    Column("clients_left_out", LONG, "How many more clients there are"),
    Column(
        "subscriptions",
        NAMED_SUBSCRIPTIONS,
        f"Subscriptions that it speaks of, at most {MAX_SUBSCRIPTIONS}, with their members; the rarest first",
    ),
    Column("subscriptions_left_out", LONG, "How many more subscriptions there are"),
    Column("caused_by", TEXT, "finding_id of the finding that it follows from; null = none is known"),
    Column("changed_at", TIME, "Since when it says what it says, where it said something else before"),
)

KINDS = {str: TEXT, int: LONG, bool: TRUTH, tuple: TEXTS}


def costs(of_which: str) -> list[Column]:
    """Return the columns of what moves of queues cost; ``of_which``: added to each comment."""
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
            "Messages that waited for the new owner: the end of the queue, as last observed, less the committed offset"
            + of_which,
        ),
    ]


COST_NAMES = tuple(column.name for column in costs(""))


def described(*names: str) -> list[Column]:
    """Return the columns of a member's description."""
    return [Column(name, KINDS[kind_of(name)], TRAITS[name].comment) for name in names]
