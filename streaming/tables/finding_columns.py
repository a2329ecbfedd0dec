"""Shell: the columns with the names in a finding, and those of a member's client. No I/O."""

from __future__ import annotations

from streaming.tables.columns import (
    LONG,
    NAMED_CLIENTS,
    NAMED_MEMBERS,
    NAMED_QUEUES,
    NAMED_SUBSCRIPTIONS,
    TEXT,
    TIME,
    Column,
)
from udfs.model.finding_names import MAX_NAMED, MAX_SUBSCRIPTIONS

CLIENT = Column(
    "client",
    TEXT,
    "What stays the same under other member ids: the instance id; else client id and host; else the host; else the"
    " member's id",
)
ADDRESS = Column("address", TEXT, "The host without the port of its connection")
FINDING_NAMES = (
    Column(
        "queues",
        NAMED_QUEUES,
        f"Queues that it speaks of, at most {MAX_NAMED}: the member to whom the strategy assigns each, why that one"
        " does not read it (not_subscribed, not_owned), and who owns it",
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
