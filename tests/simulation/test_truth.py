"""The script's truth equals the findings of a simple reader of its events."""

from __future__ import annotations

import pytest

from streaming.simulator import Fleet
from tests.simulation.plain_reader import read


@pytest.mark.parametrize("seed", range(8))
def test_a_plain_reader_of_all_events_finds_the_truth_of_counted_groups(seed: int) -> None:
    fleet = Fleet(seed, groups=18, members=90, speed=2.0)
    deliveries = [*fleet.deliveries_until(fleet.start_ms + 300_000), *fleet.finish()]
    expected = {
        (rebalance.cluster, rebalance.group_id, rebalance.event_time): {
            (cause.kind, cause.member_id, cause.topic) for cause in rebalance.causes
        }
        for rebalance in fleet.truth
        if rebalance.generation_source == "counted" and rebalance.required and rebalance.late_until is None
    }
    for rebalance in fleet.truth:
        if rebalance.required and rebalance.late_until is not None:
            causes = expected.setdefault((rebalance.cluster, rebalance.group_id, rebalance.event_time), set())
            causes |= {(cause.kind, cause.member_id, cause.topic) for cause in rebalance.causes}
    found = read(delivery.event for delivery in deliveries)
    for place in sorted(expected.keys() | found.keys(), key=lambda place: place[2]):
        assert found.get(place) == expected.get(place), place
    assert len(expected) > 100
