"""A group with more to do than fits into a batch: it stops between two moments and goes on, and nothing shows it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.core_config import core_config
from tests.udfs.shard.random_streams import LATENESS, Dice, bag, moved
from tests.udfs.shard.shard_script import FAR, T0, Cluster, clock, count, join
from udfs.group import coordinator as group_logic
from udfs.model.errors import StateVersionError
from udfs.model.events import AnyEvent
from udfs.model.journal import Rebalance, Unfinished
from udfs.shard.backlog import Backlog, Held
from udfs.shard.shard import Row

UNBOUNDED = 10**12


def run(batches: Sequence[Sequence[AnyEvent]], work: int, shards: int = 1) -> list[bytes]:
    """Feed batches, the last of them a flush, then drain; return all rows as a bag, without what may differ."""
    cluster = Cluster(group_logic, core_config(shards=shards, allowed_lateness_ms=LATENESS, max_group_work=work))
    rows: list[Row] = []
    for number, batch in enumerate(batches):
        rows += cluster.batch(*batch, batch_ms=FAR + number)
    rows += drain(cluster, cluster.batch(clock(200_000), flush=True, batch_ms=2 * FAR))
    return bag([row for row in rows if not isinstance(row, Unfinished)])


def drain(cluster: Cluster, rows: Sequence[Row]) -> list[Row]:
    """Make empty batches until no group has to go on; return all rows, these ones first."""
    found, last = list(rows), list(rows)
    while any(isinstance(row, Unfinished) for row in last):
        last = cluster.batch(batch_ms=2 * FAR)
        found += last
    return found


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(
    work=st.sampled_from([1, 3, 40]),
    dice=st.integers(0, 2**64).map(Dice),
    length=st.integers(1, 60),
    shards=st.integers(1, 2),
)
# A late deletion of a group that was made again.
@example(work=1, dice=Dice(562_949_953_421_313), length=53, shards=1)
@example(work=3, dice=Dice(562_949_953_421_313), length=53, shards=1)
@example(work=40, dice=Dice(562_949_953_421_313), length=53, shards=1)
def test_rows_do_not_depend_on_how_much_a_group_may_do_in_a_batch(
    work: int, dice: Dice, length: int, shards: int
) -> None:
    batches = dice.cut(dice.stream(length, dice.choice((LATENESS, 3 * LATENESS, 20 * LATENESS))))
    assert run(batches, work, shards) == run(batches, UNBOUNDED, shards)


def joins(number: int) -> list[AnyEvent]:
    return [join(f"m{at:03d}", at * 10, subscriptions=("t",)) for at in range(number)]


def test_a_batch_continues_until_the_work_is_done_and_then_to_the_end_of_the_event_time() -> None:
    cluster = Cluster(group_logic, core_config(shards=1, allowed_lateness_ms=0, max_group_work=50))
    rows = cluster.batch(count("t", 16, 0), *joins(30), clock(10_000))
    found = [row for row in rows if isinstance(row, Rebalance)]
    # Each takes in its event, its members and its 16 queues, and those of them that change hands.
    assert [row.members_after for row in found] == [1, 2]
    [left] = [row for row in rows if isinstance(row, Unfinished)]
    assert left.groups == 1
    rows = drain(cluster, cluster.batch())
    assert [row.members_after for row in rows if isinstance(row, Rebalance)] == list(range(3, 31))


def test_another_group_does_not_wait() -> None:
    cluster = Cluster(group_logic, core_config(shards=1, allowed_lateness_ms=0, max_group_work=60))
    cluster.batch(count("t", 16, 0), *joins(30), join("x", 0, "h", subscriptions=("t",)), clock(10_000))
    rows = cluster.batch(join("y", 11_000, "h"), join("y", 11_000, "g"), clock(12_000))
    times = {row.group_id: row.event_time - T0 for row in rows if isinstance(row, Rebalance)}
    # What is new for the group that lags stands behind what came before.
    assert times["h"] == 11_000
    assert times["g"] < 300


def test_a_mass_expiry_is_bounded_too() -> None:
    cluster = Cluster(group_logic, core_config(shards=1, allowed_lateness_ms=0, max_group_work=1))
    cluster.batch(count("t", 4, 0), clock(1))
    drain(cluster, cluster.batch(*joins(20), clock(1_000)))
    rows = cluster.batch(clock(500_000))
    assert sum(isinstance(row, Rebalance) for row in rows) == 1
    assert sum(isinstance(row, Rebalance) for row in drain(cluster, rows)) == 20


def test_an_export_carries_what_waits() -> None:
    cluster = Cluster(group_logic, core_config(shards=1, allowed_lateness_ms=LATENESS, max_group_work=1))
    before = cluster.batch(count("t", 16, 0), *joins(12), clock(20_000))
    target, exported = moved(cluster, 2)
    after = [row for row in target.batch(*exported) if isinstance(row, Rebalance)]
    assert [row.members_after for row in [*before, *after] if isinstance(row, Rebalance)] == list(range(1, 13))


def test_the_state_keeps_nothing_of_a_backlog_that_is_done() -> None:
    bounded = Cluster(group_logic, core_config(shards=1, allowed_lateness_ms=0, max_group_work=1))
    drain(bounded, bounded.batch(count("t", 4, 0), *joins(9), clock(1_000)))
    plain = Cluster(group_logic, core_config(shards=1, allowed_lateness_ms=0))
    plain.batch(count("t", 4, 0), *joins(9), clock(1_000))
    sizes = [len(cluster.states[0] or b"") for cluster in (bounded, plain)]
    assert abs(sizes[0] - sizes[1]) <= 8


def test_a_damaged_backlog_is_refused() -> None:
    backlog = Backlog()
    backlog.put(7, [Held(0, None, 5, [], [], [("m", 3)], {})])
    data = backlog.encode()
    assert Backlog(data).of(7) == [Held(0, None, 5, [], [], [("m", 3)], {})]
    with pytest.raises(StateVersionError, match="damaged"):
        Backlog(bytes(data)[:-1])
