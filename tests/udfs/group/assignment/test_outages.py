"""For how long nobody read queues that changed or lost their owner: at least, and at most."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import T0, Script, assigned
from tests.udfs.group.record_script import RecordScript
from udfs.group.assignment.client_timings import FIRST_TAKE_OVER_MS, TAKE_OVER_MS
from udfs.group.assignment.outages import Outage, listed
from udfs.model.events import Departure
from udfs.model.journal import MemberReplaced
from udfs.model.queue_outages import MAX_LISTED_OUTAGES, QueueOutage
from udfs.model.spans import QueueAssigned

BOTH = {"a": ["t"], "b": ["t"]}
SESSION_MS = 9_000


def two_owners(describe: dict[str, dict[str, object]] | None = None) -> Script:
    """A group of two members that own two queues each, and have committed."""
    script = Script()
    script.queues(0, "t", 4)
    held = assigned(a="0 1", b="2 3")
    script.snapshot(1_000, 1, BOTH, held, describe, strategy="range", joined_at=T0 + 990)
    for queue in range(4):
        script.observe(15_000 + queue, "t", queue, committed=100)
        script.observe(20_000 + queue, "t", queue, committed=200)
    return script


def outages_of(script: Script, row: int = -1) -> dict[int, tuple[int | None, int | None]]:
    return {one.queue_id: (one.outage_min_ms, one.outage_max_ms) for one in script.rebalances[row].outages}


def test_a_crash_lasts_until_it_is_noticed_and_not_as_long_as_the_coordinator_takes() -> None:
    script = two_owners({"b": {"session_timeout_ms": SESSION_MS}})
    for queue in (0, 1):  # the one that stays commits as it joins again
        script.observe(31_990, "t", queue, committed=300)
    left = (Departure(member_id="b", kind="expired", at=T0 + 31_900),)
    script.snapshot(
        32_000, 2, {"a": ["t"]}, assigned(a="0 1 2 3"), strategy="range", joined_at=T0 + 31_995, departures=left
    )
    [*_, row] = script.run(33_000).rebalances
    assert row.pause_ms == 100
    # It had committed at 20,002, and owed a heartbeat at 25,900 at the latest.
    lost = (32_000 - (31_900 - SESSION_MS + SESSION_MS // 3), 32_000 + TAKE_OVER_MS - 20_002)
    kept = (5, 10 + TAKE_OVER_MS)
    assert outages_of(script) == {0: kept, 1: kept, 2: lost, 3: (lost[0], lost[1] - 1)}
    assert (row.queue_outage_min_ms, row.queue_outage_max_ms) == lost
    assert (row.outage_min_ms, row.outage_max_ms) == (2 * kept[0] + 2 * lost[0], 2 * kept[1] + 2 * lost[1] - 1)
    assert (row.outage_queues, row.outage_unknown_queues, row.outage_evidence) == (4, 0, "progress")
    bodies = [change.body for change in script.changes if isinstance(change.body, QueueAssigned)]
    spans = [one for one in bodies if one.origin == "reported" and one.valid_from == T0 + 32_000]
    assert {(one.queue_id, one.outage_min_ms, one.outage_max_ms) for one in spans} == {
        (2, *lost),
        (3, lost[0], lost[1] - 1),
    }


def test_a_member_without_evidence_may_have_read_until_it_was_missing() -> None:
    script = two_owners()
    script.snapshot(32_000, 2, {"a": ["t"]}, assigned(a="0 1 2 3"), strategy="range", joined_at=T0 + 31_995)
    script.run(33_000)
    assert outages_of(script)[2] == (5, 32_000 + TAKE_OVER_MS - 20_002)


def test_without_any_evidence_it_is_unknown_and_not_small() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(1_000, 1, BOTH, assigned(a="0", b="1"), strategy="range", joined_at=T0 + 990)
    script.snapshot(32_000, 2, {"a": ["t"]}, assigned(a="0 1"), strategy="range", joined_at=T0 + 31_995)
    [*_, row] = script.run(33_000).rebalances
    assert (row.outage_min_ms, row.outage_max_ms, row.queue_outage_max_ms) == (10, None, None)
    assert (row.outage_queues, row.outage_unknown_queues, row.outage_evidence) == (2, 2, None)


def test_a_cooperative_move_stops_only_what_moves_until_it_has_its_new_owner() -> None:
    script = Script()
    how = {"strategy": "cooperative-sticky"}
    script.queues(0, "t", 4)
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1 2 3"), joined_at=T0 + 990, **how)
    for queue in range(4):
        script.observe(4_000, "t", queue, committed=100)
    script.snapshot(5_000, 2, BOTH, assigned(a="0 1", b=""), joined_at=T0 + 4_950, **how)
    script.observe(5_100, "t", 2, committed=110)  # as it gave it up
    script.snapshot(5_800, 3, BOTH, assigned(a="0 1", b="2 3"), joined_at=T0 + 5_790, **how)
    script.run(6_000)
    assert outages_of(script, 1) == {}
    assert script.rebalances[1].outage_max_ms == 0
    assert outages_of(script) == {2: (10, 700 + FIRST_TAKE_OVER_MS), 3: (10, 1_800 + FIRST_TAKE_OVER_MS)}


def test_a_queue_without_a_new_owner_is_unknown_until_it_has_one() -> None:
    script = two_owners()
    script.snapshot(25_000, 2, {}, {}, strategy="range", joined_at=T0 + 24_990)
    script.snapshot(90_000, 3, {"c": ["t"]}, assigned(c="0 1 2 3"), strategy="range", joined_at=T0 + 89_990)
    _, emptied, again = script.run(99_000).rebalances
    assert (emptied.outage_queues, emptied.outage_unknown_queues, emptied.outage_max_ms) == (4, 4, None)
    assert outages_of(script)[0] == (65_000, 70_000 + FIRST_TAKE_OVER_MS)
    assert again.outage_unknown_queues == 0


def test_a_static_member_that_comes_back_has_an_outage_without_a_rebalance() -> None:
    script = Script()
    script.queues(0, "t", 2)
    static: dict[str, object] = {"instance_id": "i"}
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1"), {"a": static}, strategy="range")
    script.observe(5_000, "t", 0, committed=7)
    script.snapshot(9_000, 1, {"a2": ["t"]}, assigned(a2="0 1"), {"a2": static}, strategy="range")
    script.run(20_000)
    assert len(script.rebalances) == 1
    [replaced] = script.bodies(MemberReplaced)
    assert {(one.queue_id, one.outage_min_ms, one.outage_max_ms) for one in replaced.outages} == {
        (0, 0, 4_000 + FIRST_TAKE_OVER_MS),
        (1, 0, None),
    }


def test_the_longest_are_listed_and_unknown_ones_first() -> None:
    many = {("t", None, number): Outage(0, number) for number in range(MAX_LISTED_OUTAGES + 5)}
    found = listed(many | {("t", None, 7): Outage()})
    assert len(found) == MAX_LISTED_OUTAGES
    assert found[:2] == [QueueOutage("t", None, 7), QueueOutage("t", None, MAX_LISTED_OUTAGES + 4, None, None, 0, 104)]


def test_of_the_new_protocol_each_queue_stops_from_its_release_to_its_new_owner() -> None:
    script = RecordScript()
    script.first_member()
    for queue in range(4):
        script.observe(15, "t", queue, committed=5)
    script.second_member()
    script.run(60)
    # Given up at 30, long after its target was there, and given to the other one at 35.
    lasting = (5, 35 - 15 + FIRST_TAKE_OVER_MS)
    assert outages_of(script) == {2: lasting, 3: lasting}


@pytest.mark.parametrize("cut_at", [None, 21_300])
def test_while_changes_settle_heartbeats_count_whichever_batch_they_come_in(cut_at: int | None) -> None:
    script = Script("metaq", settle_ms=500)
    script.queues(1_000, "t", 2)
    script.join(14_000, "a")
    script.run(20_000)
    script.beat(20_003, "a")
    script.join(21_004, "b")
    script.beat(21_005, "a")
    script.beat(21_600, "a")  # after it has settled: of no account
    if cut_at is not None:
        script.run(cut_at)
    script.run(30_000)
    assert outages_of(script) == {1: (0, 5_000)}
