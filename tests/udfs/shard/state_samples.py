"""States of several kinds, as batches of events make them: for tests of what becomes of bytes."""

from __future__ import annotations

from tests.core_config import core_config
from tests.udfs.shard.shard_script import Cluster, beat, clock, count, join, leave, of_group
from udfs.group import coordinator as group_logic
from udfs.model.events import AnyEvent, GroupSnapshot, MemberInfo, Progress, QueueOffset, QueueRef

RULES = core_config(shards=1, allowed_lateness_ms=2_000)
# Their keys have the same upper 40 bits: their group has no rows, its members are known by name.
COLLIDING = ("member-2731569", "member-686697")


def snapshot(at: int, group: str, generation: int, members: tuple[str, ...]) -> GroupSnapshot:
    return GroupSnapshot(
        **of_group(at, group),
        generation=generation,
        state="Stable",
        strategy="range",
        members=tuple(
            MemberInfo(member_id=member_id, subscriptions=("orders",), host=f"/10.0.0.{len(member_id)}")
            for member_id in members
        ),
        assignments={member_id: (QueueRef("orders", number),) for number, member_id in enumerate(members)},
    )


def commit(at: int, group: str, *queues: int) -> Progress:
    reported = tuple(QueueOffset("orders", queue, offset=at) for queue in queues)
    return Progress(**of_group(at, group), queues=reported)


def described(member: str, at: int, group: str, **fields: object) -> AnyEvent:
    reported = {"client_id": member, "host": "/10.0.0.1", "subscriptions": ("orders",), "strategies": ("range",)}
    return join(member, at, group, **{**reported, **fields})


COUNTED: list[AnyEvent] = [
    count("orders", 12, 0),
    count("bills", 3, 0),
    *(described(f"consumer-{group}-{n}", 10 + n, f"group-{group}") for group in range(140) for n in range(4)),
    *(
        beat(f"consumer-{group}-{n}", 3_000 + 37 * group + n, f"group-{group}")
        for group in range(140)
        for n in range(4)
    ),
    leave("consumer-3-1", 3_400, "group-3"),
    clock(7_000),
]
REPORTED: list[AnyEvent] = [
    count("orders", 6, 0),
    snapshot(100, "live", 5, ("a", "b", "c")),
    snapshot(2_000, "live", 6, ("a", "b")),
    commit(2_500, "live", 0, 1),
    commit(6_900, "live", 2),
    clock(7_000),
]
BY_NAME: list[AnyEvent] = [
    count("orders", 4, 0),
    *(described(member, 5, "twins", session_timeout_ms=30_000) for member in COLLIDING),
    described("other", 6, "twins"),
    clock(5_000),
]
# What the clock has not reached yet: heartbeats of members known and unknown, a join, a commit.
WAITING: list[AnyEvent] = [
    count("orders", 4, 0),
    *(described(f"m{n}", 5, "g") for n in range(5)),
    *(beat(f"m{n}", 9_000 + n, "g") for n in range(5)),
    beat("stranger", 9_500, "g"),
    described("new", 9_800, "g"),
    commit(9_900, "g", 3),
    clock(10_000),
]
KINDS: dict[str, list[AnyEvent]] = {
    "counted": COUNTED,
    "reported": REPORTED,
    "by_name": BY_NAME,
    "waiting": WAITING,
    "empty": [clock(0)],
}


def sample(kind: str) -> Cluster:
    """Return a cluster of one shard after a first batch of its kind's events."""
    cluster = Cluster(group_logic, RULES)
    cluster.batch(*KINDS[kind])
    if kind == "waiting":
        cluster.batch(*(beat(f"m{n}", 9_100 + n, "g") for n in range(5)), clock(10_001))
    return cluster
