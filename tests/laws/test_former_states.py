"""States and exports of the release before are read, upgraded and continued."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.core_config import core_config
from tests.udfs.shard.random_streams import moved, run
from tests.udfs.shard.shard_script import CLUSTER, FAR, T0, Cluster, beat, clock, count, of_group, packet_for
from tests.udfs.shard.state_samples import COUNTED, KINDS, REPORTED, RULES, commit, described, sample, snapshot
from udfs.group import coordinator as group_logic
from udfs.ingest.parser import parse
from udfs.model.errors import StateVersionError
from udfs.model.events import GroupSnapshot, MemberInfo, QueueRef, RevokedQueue
from udfs.model.journal import Change, ClusterObserved, MemberOpened, Rebalance, Rejected
from udfs.model.queue_progress import QueueProgress
from udfs.model.rejection import Rejection
from udfs.model.spans import QueuesReassigned
from udfs.shard.shard import Shard
from udfs.shard.state_format import STATE_VERSION, unpack_state

# Made by commit a863199 of the batches in `state_samples`: each kind's state, and the first events of its export.
FORMER: dict[str, Any] = json.loads((Path(__file__).parent / "states_of_version_2.json").read_text())["states"]
# Made of the same batches by the last commit before commits had offsets, which is 40f93a1.
WITHOUT_OFFSETS = json.loads((Path(__file__).parent / "states_of_version_3.json").read_text())["states"]


def former(kind: str, states: dict[str, Any] = FORMER) -> Cluster:
    cluster = Cluster(group_logic, RULES)
    cluster.states[0] = base64.b64decode(states[kind]["state"])
    return cluster


def go_on(cluster: Cluster) -> list[Any]:
    rows = cluster.batch(*COUNTED[2:40], *REPORTED[1:3], clock(12_000))  # all of it again
    rows += cluster.batch(beat("m1", 13_000, "g"), described("late-comer", 13_500, "group-7"), clock(20_000))
    rows += cluster.batch(snapshot(21_000, "live", 7, ("a",)), clock(60_000))
    return [*rows, *cluster.batch(clock(200_000))]


def without_numbers(rows: list[Any]) -> list[Any]:
    """Return rows without the numbers of changes: the release before wrote a change for each span.

    And without the progress of queues: it did not remember their offsets.
    """
    rows = [row for row in rows if not isinstance(row, QueueProgress)]
    return [msgspec.structs.replace(row, number=0) if isinstance(row, Change) else row for row in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_of_the_release_before_is_continued_as_one_of_this_release(kind: str) -> None:
    before, now = former(kind), sample(kind)
    assert without_numbers(go_on(before)) == without_numbers(go_on(now))
    assert before.states[0] is not None
    assert before.states[0][0] == STATE_VERSION
    header, _ = unpack_state(before.states[0])
    assert header.batches > 4


@pytest.mark.parametrize("kind", WITHOUT_OFFSETS)
def test_a_state_without_offsets_is_continued_and_learns_them(kind: str) -> None:
    before, now = former(kind, WITHOUT_OFFSETS), sample(kind)
    assert without_numbers(go_on(before)) == without_numbers(go_on(now))
    learned = before.batch(commit(200_500, "live", 0), commit(200_600, "g", 3), clock(400_000))
    assert [row.queues for row in learned if isinstance(row, QueueProgress)] == [
        row.queues
        for row in now.batch(commit(200_500, "live", 0), commit(200_600, "g", 3), clock(400_000))
        if isinstance(row, QueueProgress)
    ]


@pytest.mark.parametrize("kind", WITHOUT_OFFSETS)
def test_an_export_without_offsets_is_taken_in(kind: str) -> None:
    events = [parse(line.encode(), FAR, RULES) for line in WITHOUT_OFFSETS[kind]["export"]]
    cluster, whole = Cluster(group_logic, RULES), former(kind, WITHOUT_OFFSETS)
    cluster.batch(*(event for event in events if not isinstance(event, Rejection)))
    moved = without_numbers(cluster.batch(snapshot(8_000, "live", 7, ("a",)), clock(60_000)))
    expected = without_numbers(whole.batch(snapshot(8_000, "live", 7, ("a",)), clock(60_000)))
    assert [row for row in moved if isinstance(row, Rebalance)] == [
        row for row in expected if isinstance(row, Rebalance)
    ]


def test_ids_that_the_release_before_remembered_are_repeats_still() -> None:
    cluster = former("counted")
    assert [row for row in cluster.batch(*COUNTED[2:], clock(12_000)) if not isinstance(row, Rejected)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_export_of_the_release_before_is_taken_in(kind: str) -> None:
    events = [parse(line.encode(), FAR, RULES) for line in FORMER[kind]["export"]]
    assert not any(isinstance(event, Rejection) for event in events)
    cluster = Cluster(group_logic, RULES)
    assert cluster.batch(*(event for event in events if not isinstance(event, Rejection))) == []
    # A restored member does not join a second time.
    restored = {getattr(event, "group", None) for event in events}
    opened = [row for row in go_on(cluster) if isinstance(row, Change) and isinstance(row.body, MemberOpened)]
    assert {row.body.member_id for row in opened if row.group_id in restored} <= {"late-comer"}


def within_a_rebalance(at: int, generation: int, **held: Sequence[int]) -> GroupSnapshot:
    """Return a generation of a cooperative group: which partitions of ``t`` each member has."""
    return GroupSnapshot(
        **of_group(at, "g"),
        generation=generation,
        state="Stable",
        strategy="cooperative-sticky",
        members=tuple(MemberInfo(member_id=member, subscriptions=("t",)) for member in held),
        assignments={one: tuple(QueueRef("t", number) for number in numbers) for one, numbers in held.items()},
    )


def cooperative_cluster() -> Cluster:
    """Return a cluster whose group took queues from a member and has not given them to another yet."""
    halves = [
        within_a_rebalance(1_000, 1, a=range(4)),
        within_a_rebalance(2_000, 2, a=range(2), b=()),
        within_a_rebalance(3_000, 3, a=range(2), b=(), c=()),
    ]
    return run(group_logic, [[count("t", 4, 0), *halves, clock(9_000)]])


def given_out(cluster: Cluster) -> list[tuple[Any, ...]]:
    """Have the next generation give all queues out; return its row and the pauses of the spans that begin."""
    rows = cluster.batch(within_a_rebalance(10_000, 4, a=range(2), b=(2,), c=(3,)), clock(20_000))
    found = [(row.trigger, row.logical_id, row.queue_pause_ms) for row in rows if isinstance(row, Rebalance)]
    bodies = [row.body for row in rows if isinstance(row, Change) and isinstance(row.body, QueuesReassigned)]
    return found + [(body.origin, msgspec.json.encode(body)) for body in bodies]


def test_an_export_within_a_cooperative_rebalance_is_continued() -> None:
    source = cooperative_cluster()
    target, exported = moved(source, 3)
    lines = [parse(msgspec.json.encode(event), FAR, source.config) for event in exported]
    assert target.batch(*(event for event in lines if not isinstance(event, Rejection))) == []
    expected = given_out(source)
    assert expected[0][0] == "cooperative_follow_up"
    assert given_out(target) == expected


def test_an_export_that_names_no_queues_on_the_move_is_continued_by_its_state() -> None:
    # Made by commit fd078aa of the same cluster, before exports named them: its hash holds.
    lines = (Path(__file__).parent / "export_within_a_cooperative_rebalance.jsonl").read_bytes().splitlines()
    source = cooperative_cluster()
    target, now = moved(source, 1)
    [snapshot_now] = [event for event in now if isinstance(event, GroupSnapshot)]
    assert snapshot_now.revoked == tuple(RevokedQueue("t", number, None, T0 + 2_000) for number in (2, 3))
    assert b'"revoked"' not in b"".join(lines)
    events = [parse(line, FAR, source.config) for line in lines]
    assert target.batch(*(event for event in events if not isinstance(event, Rejection))) == []
    assert given_out(target) == given_out(source)


def test_a_newer_export_names_the_version_that_it_needs() -> None:
    line = json.loads(FORMER["counted"]["export"][0])
    line["restored_cluster"] = base64.b64encode(bytes([0x91, STATE_VERSION + 1])).decode()
    event = parse(json.dumps(line).encode(), FAR, RULES)
    assert not isinstance(event, Rejection)
    [row] = Cluster(group_logic, RULES).batch(event)
    assert isinstance(row, Rejected)
    assert f"encoding {STATE_VERSION + 1}" in row.detail


def test_the_error_names_checkpoint_cluster_shard_and_remedy() -> None:
    from tests.udfs.test_stateful import frame, group_state
    from udfs.stateful import shard_function

    state = sample("counted").states[0]
    assert state is not None
    function = shard_function(RULES, checkpoint="/var/lib/monitor/check point")
    with pytest.raises(StateVersionError) as refused:
        list(function(("c", 3), [frame()], group_state(state[:-1])))
    output = str(refused.value)
    for part in ("checkpoint /var/lib/monitor/check point,", "cluster 'c'", "shard 3", "damaged", "state rollback"):
        assert part in output
    assert "--checkpoint '/var/lib/monitor/check point'" in output
    assert "\n" not in output


NOT_LATE = core_config(shards=1, allowed_lateness_ms=0)


# Topic t of 4 queues; m joined @1000, described anew @9000; a join @20500 waits; the clock stands at 20500.
WRITTEN_BEFORE_FIELDS_HAD_TIMES = (
    "eNptVItS4kgUbQggTAJCkLeuGERFYgYCEkI5mhkgJhAQcOUhj+UtsoDsyICWOvvr21G0nHFvVd/qSvU9J/fc061sKMBzoJlsmjHU6XGKQvujy4"
    "D3NPgQGV1eAaAq37FsbU2K+edUhZ39gQBjs33V+6cQ3SftsU7O4rJx16HvjQuEobjzcerQXJRqrEKgUZ5yAH9F7SmNbLGbptcVMYCL6TATL2KV"
    "zzfDPGKcuyLdVMazSNfoZR3dfcXPK7gYVQnOCl9uI4YdcedMfCgaamwGMRrvw1V6nLCYGcOq6L1Rexjs0oWLWX9RqmrxegO16uvhSfZpv085mF"
    "k/+JMs+F74JzZxt2dBSvC/b8PiUYxyRno1vZ/XwC6NUAS3CqYEXFwXpulBIb3bedxkdG6wDA68BY4sN6rXL3d6mAbD7aDWO7Y9fX2kagC0dQTe"
    "r9ODkLekDkUOyks975N7wHx8RAPR6tV4beGNZlaxHVXaA00uXkg78F5u7PwXrAEgGD1ZDNxtQxYO89FAiSr2tO4m19IVYyabVA31rCrtFhExBo"
    "WWac5L9kPJYi5qMLrPV4JmTTbIjLDQXKO3d0bGUIho/tlpXNzCudDursrdUq6If+cW4ZihHmiXLehLd0gWuCU1P8AWGfUc71jVaH1/fpCWfFER"
    "V3tXl82qCVkvxVKvd6EEv+vifgis+k4BOMZfvKZ9fxwhXnV3/wLDveEA44cNqEyNeVx1ss4AkCPJn/ft93zPYfLjRfZMCI6GGU9JWjfFEpj5W1"
    "Kg5ynWs0Dr4XFKlzf39bLiCoTH7IdQU6LrYG+GX83EqRAiytrrIukK9rpPKV7SbhBl6GNJayX6+niRrAb+GkH/UZfMJDHQxZMC+yORce1Qzuiz"
    "X7PajWoiZy6gqOn2O+QnXZCffL5XEHfLtlqjidkbfmF+4GR6gu564QBAYT2mDLbkyN3uOs41BrrVTuiQHQN9OMwFebLs6ktJNs5jzhDf24pgvl"
    "ivn0c+gd/9C3C4ooVGyzXf1SRX/s+/woc52eXxrD3FPymf/SsJOsAJia0ylpqE4FzJx9q6Eyi0QIPJVTJmU649knFRmT1x/oVUQr6r6rbtjL8/"
    "mdBA8cEWSmCfpmtgJJ7kxRWQ39QMchRIJXubnyEs93Z+j5cv0wpQiTQaMdRf36GqO/vN39dX4P1OPmKwH3TTdpomhsw0xfr5USkwA64fRUrW9Q"
    "XqP8CVzpU="
)


def test_a_state_of_groups_without_times_of_fields_and_clusters_without_a_time_is_continued() -> None:
    state = zlib.decompress(base64.b64decode(WRITTEN_BEFORE_FIELDS_HAD_TIMES))
    shard = Shard(CLUSTER, 0, state, NOT_LATE, group_logic)
    events = [beat("m", 500, subscriptions=("u",)), beat("m", 30_000), clock(31_000)]
    rows = list(shard.advance([packet_for(0, events, NOT_LATE)], FAR))

    assert [(row.event_time - T0, row.trigger) for row in rows if isinstance(row, Rebalance)] == [
        (20_500, "member_joined")
    ]
    assert [row.reason for row in rows if isinstance(row, Rejected)] == ["late"]  # older than m's join
    again = Shard(CLUSTER, 0, shard.encode(), NOT_LATE, group_logic)
    assert again.state.header.clock == T0 + 31_000
    rows = list(again.advance([packet_for(0, [clock(32_000)], NOT_LATE)], FAR))
    assert [row for row in rows if not isinstance(row, ClusterObserved)] == []
