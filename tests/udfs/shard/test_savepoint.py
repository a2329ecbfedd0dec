"""A shard's state as events of the contract, and back."""

from __future__ import annotations

import msgspec
import pytest

from tests.udfs.shard.plain_group import PlainLogic
from tests.udfs.shard.random_streams import GROUPS, moved, run
from tests.udfs.shard.shard_script import CLUSTER, beat, clock, count, join
from udfs.model.events import AnyEvent, Clock, GroupSnapshot, TopicQueues
from udfs.model.journal import Rejected
from udfs.packets.packet import carry_event, group_key, shard_of
from udfs.shard import savepoint
from udfs.shard.savepoint import export_shard


def test_an_export_is_events_of_the_contract_that_are_marked_as_restored() -> None:
    cluster = run(PlainLogic(), [[join("a", 0), beat("b", 5_000, "h"), count("t", 3, 0), clock(5_000)]], shards=2)
    _, exported = moved(cluster, 3)
    restored = [event for event in exported if isinstance(event, Clock | TopicQueues | GroupSnapshot)]
    assert [(type(event), event.restored) for event in restored] == [
        (Clock, True),
        (GroupSnapshot, True),
        (TopicQueues, True),
    ]
    # What its clock has not reached is exported as it came.
    assert [event for event in exported if event not in restored] == [beat("b", 5_000, "h")]
    for event in exported:
        assert msgspec.json.decode(msgspec.json.encode(event), type=AnyEvent) == event


def test_a_restored_group_that_exists_already_is_left_as_it_is_and_listed() -> None:
    cluster = run(PlainLogic(), [[join("a", 0), clock(5_000)]])
    _, exported = moved(cluster, 1)
    rows = cluster.batch(*exported)
    assert [row.reason for row in rows if isinstance(row, Rejected)] == ["restored_known_already"]


@pytest.mark.parametrize("damage", ["!", "AAAA", ""])
def test_a_damaged_export_is_rejected_and_stops_nothing(damage: str) -> None:
    cluster = run(PlainLogic(), [[join("a", 0), clock(5_000)]])
    target, exported = moved(cluster, 1)
    [snapshot] = [event for event in exported if isinstance(event, GroupSnapshot)]
    snapshot.restored_group = damage
    [row] = [row for row in target.batch(*exported) if isinstance(row, Rejected)]
    assert row.reason == "restored_unreadable"
    assert "cannot be read" in row.detail or "differs from what was exported" in row.detail


def test_an_export_of_a_newer_version_is_rejected_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = run(PlainLogic(), [[join("a", 0), clock(5_000)]])
    with monkeypatch.context() as newer:
        newer.setattr(savepoint, "STATE_VERSION", 99)
        target, exported = moved(cluster, 1)
    rows = [row for row in target.batch(*exported) if isinstance(row, Rejected)]
    assert {row.reason for row in rows} == {"restored_unreadable"}
    assert all("encoding 99" in row.detail for row in rows)
    assert len(rows) == len(exported)


def test_a_group_is_kept_by_the_shard_of_its_key() -> None:
    cluster = run(PlainLogic(), [[join("a", 0, name) for name in GROUPS], [clock(5_000)]], shards=3)
    for name in GROUPS:
        home = shard_of(group_key(CLUSTER, name), 3)
        state = cluster.states[home]
        assert state is not None
        names = [
            event.group
            for event in export_shard(CLUSTER, home, state, cluster.config, cluster.logic)
            if isinstance(event, GroupSnapshot)
        ]
        assert name in names


def test_an_events_content_is_the_same_after_an_export() -> None:
    event = join("a", 0, subscriptions=("t",))
    carried = carry_event(event, "", "")
    again = carry_event(msgspec.json.decode(carried.content, type=AnyEvent), "", "")
    assert (again.event_id, again.content) == (carried.event_id, carried.content)
