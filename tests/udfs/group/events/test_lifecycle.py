"""A group as a whole: what its source sees wrong with it, settings that were concluded."""

from __future__ import annotations

import re

import pytest

from tests.udfs.group.group_script import T0, Script
from udfs.group.batch.findings import MAX_DETAIL_LENGTH, stuck_found
from udfs.group.batch.observed_findings import MAX_OBSERVATIONS
from udfs.group.state.writing import assign
from udfs.model.events import Observation


def observed(*kinds: str) -> tuple[Observation, ...]:
    return tuple(Observation(kind=kind, detail=f"{kind} it is") for kind in kinds)


def test_the_timer_of_a_group_that_is_at_rest_runs_once() -> None:
    script = Script(stuck_after_ms=1_000)
    script.join(10, "a")
    script.run(20)
    assign(script.group, under_way_since=T0 + 20)
    assert script.run(5_000).findings() == []
    assert script.group.under_way_since is None


def test_a_long_message_is_cut_between_two_queues() -> None:
    message = stuck_found(T0, "reconciling", "a waits for " + ", ".join(f"t-{number}" for number in range(900))).message
    assert len(message) < MAX_DETAIL_LENGTH + 100
    assert re.search(r", t-\d+, …\.$", message)


def test_so_many_things_are_taken_from_one_snapshot() -> None:
    script = Script("rocketmq")
    script.poll(10, "a", observations=observed(*(f"kind-{number:03}" for number in range(MAX_OBSERVATIONS + 9))))
    assert len(script.run(20).findings()) == MAX_OBSERVATIONS


# ---- deletions that come late


@pytest.mark.parametrize(("heartbeat_at", "ended"), [(50_000, True), (52_000, False)])
def test_an_expiry_after_a_late_deletion_shows_no_group(heartbeat_at: int, ended: bool) -> None:
    script = Script("rocketmq")
    script.join(1_000, "a", session_timeout_ms=4_000)
    script.run(10_000)
    script.beat(heartbeat_at, "a")  # it joins again, and expires
    script.run(60_000)
    script.delete(51_000)
    script.run(61_000)
    assert (script.group.row is None) is ended
