"""In which order the events of one time apply."""

import pytest

from tests.udfs.shard.shard_script import beat, count, join, leave
from tests.udfs.shard.state_samples import snapshot
from udfs.group.batch.event_queue import EXPIRY
from udfs.group.events.event_order import is_bare, order_of, snapshot_order_of
from udfs.model.events import AnyEvent
from udfs.model.group_api import DueEvent


def test_bare_heartbeats_apply_after_described_ones_and_before_expiries() -> None:
    events = [
        count("t", 1, 0),
        snapshot(0, "g", 1, ("a",)),
        leave("a", 0),
        join("a", 0),
        beat("a", 0, host="h"),
        beat("a", 0),
    ]
    orders = [order_of(DueEvent(event, "e")) for event in events]
    assert orders == sorted(set(orders))
    assert orders[-1] < EXPIRY


@pytest.mark.parametrize(
    ("event", "bare"),
    [
        (beat("a", 0), True),
        (beat("a", 0, event_id="e"), True),
        (beat("a", 0, rack="r"), False),
        # Empty is not absent.
        (beat("a", 0, subscriptions=()), False),
        (join("a", 0), False),
    ],
)
def test_a_heartbeat_is_bare_when_it_describes_nothing(event: AnyEvent, bare: bool) -> None:
    assert is_bare(event) is bare


def test_snapshots_apply_by_their_generations_and_polls_last() -> None:
    poll = snapshot(0, "g", 0, ())
    poll.generation = None
    snapshots = (snapshot(0, "g", 9, ()), snapshot(0, "g", 10, ()), poll)
    places = [snapshot_order_of(DueEvent(group_snapshot, "e")) for group_snapshot in snapshots]
    assert places == sorted(set(places))
    assert snapshot_order_of(DueEvent(snapshot(0, "g", 2**63 - 1, ()), "e")) < places[-1]


def test_a_rebalance_that_has_joined_is_before_its_generation_and_the_next_one_begins_after_it() -> None:
    joined, preparing = snapshot(0, "g", 9, ()), snapshot(0, "g", 9, ())
    joined.state, preparing.state = "CompletingRebalance", "PreparingRebalance"
    snapshots = (joined, snapshot(0, "g", 9, ()), preparing, snapshot(0, "g", 10, ()))
    places = [snapshot_order_of(DueEvent(group_snapshot, "e")) for group_snapshot in snapshots]
    assert places == sorted(set(places))
