"""A group as a whole: what its source sees wrong with it, settings that were concluded."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.udfs.group.group_script import T0, Script, assigned
from tests.udfs.group.record_script import RecordScript
from udfs.group.batch.findings import MAX_DETAIL_LENGTH, stuck_found
from udfs.group.batch.observed_findings import MAX_OBSERVATIONS, OBSERVED
from udfs.model.events import GroupDeleted, MemberInfo, Observation
from udfs.model.journal import FindingOpened


def observed(*kinds: str) -> tuple[Observation, ...]:
    return tuple(Observation(kind=kind, detail=f"{kind} it is") for kind in kinds)


def opened(script: Script) -> list[FindingOpened]:
    return [change.body for change in script.changes if isinstance(change.body, FindingOpened)]


@pytest.mark.parametrize(("ends_at", "found"), [(1_030, []), (1_031, ["rebalance_stuck 1030..1031"])])
def test_a_rebalance_that_lasts_too_long_is_stuck_until_it_ends(ends_at: int, found: list[str]) -> None:
    script = RecordScript(stuck_after_ms=1_000)
    script.first_member()
    script.member(30, "b")
    script.epoch(30, 2)
    script.target(40, 2, {"a": "0 1", "b": "2 3"})
    script.current(40, "b", 2, "", "unreleased")
    script.current(50, "a", 1, "0 1", "unrevoked", "2 3")
    assert script.run(60).last.wake_at == T0 + 1_030
    script.current(ends_at, "a", 2, "0 1")
    script.current(ends_at, "b", 2, "2 3")
    assert script.run(2_000).findings() == found
    for body in opened(script):
        assert body.message == (
            "The group has been rebalancing (reconciling) since 2023-11-14T22:13:20.030Z:"
            " a has yet to revoke t-2, t-3; b waits for t-2, t-3 of a."
        )


def test_a_classic_group_that_polls_show_preparing_for_too_long_is_stuck() -> None:
    script = Script(stuck_after_ms=1_000)
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    for at, state in ((20, "PreparingRebalance"), (500, "CompletingRebalance"), (1_500, "PreparingRebalance")):
        script.snapshot(at, None, {}, state=state)
    script.snapshot(1_600, 2, {"b": ["t"]}, assigned(b="0 1"), strategy="range")
    script.snapshot(1_700, None, {}, state="PreparingRebalance")
    assert script.run(2_699).findings() == ["rebalance_stuck 1020..1600"]
    assert script.run(2_701).findings() == ["rebalance_stuck 1020..1600", "rebalance_stuck 2700.."]


def of_streams(script: RecordScript, at: int, kind: str, **fields: Any) -> None:
    script.record(at, kind, protocol="streams", **fields)


def test_a_streams_group_that_reconciles_for_too_long_is_stuck_and_a_deleted_group_is_not() -> None:
    script = RecordScript(stuck_after_ms=1_000)
    of_streams(script, 10, "group", epoch=2)
    of_streams(script, 10, "member", member_id="a", member=MemberInfo(member_id="a"))
    of_streams(script, 10, "target", epoch=1)
    assert script.run(2_000).findings() == ["rebalance_stuck 1010.."]
    # What comes next of it does not begin the finding anew.
    of_streams(script, 2_100, "member", member_id="b", member=MemberInfo(member_id="b"))
    script.run(2_200).queues(2_300, "t", 5)
    script.snapshot(2_400, None, {}, state="not_followed")
    assert script.run(2_450).findings() == ["rebalance_stuck 1010.."]
    script.event(GroupDeleted, 2_500)
    assert script.run(9_000).findings() == ["rebalance_stuck 1010..2500"]
    assert script.group.under_way_since is None


def test_a_streams_group_without_tasks_or_partly_recorded_is_not_stuck() -> None:
    script = RecordScript(stuck_after_ms=1_000)
    of_streams(script, 10, "group", epoch=2)
    of_streams(script, 10, "member", member_id="a", member=MemberInfo(member_id="a"))
    of_streams(script, 10, "member_current", member_id="a", epoch=1, state="stable", partitions=())
    of_streams(script, 10, "target", epoch=2)
    assert script.run(5_000).findings() == []
    listed = RecordScript(stuck_after_ms=1_000)
    listed.snapshot(5, None, {}, state="not_followed")
    of_streams(listed, 10, "member_current", member_id="a", epoch=1, state="stable", partitions=())
    assert listed.run(5_000).findings() == []


def test_the_timer_of_a_group_that_is_at_rest_runs_once() -> None:
    script = Script(stuck_after_ms=1_000)
    script.join(10, "a")
    script.run(20)
    script.group.under_way_since = T0 + 20
    assert script.run(5_000).findings() == []
    assert script.group.under_way_since is None


def test_a_group_that_is_a_classic_one_again_is_not_stuck() -> None:
    script = RecordScript(stuck_after_ms=1_000)
    script.first_member(instance_id="i")
    script.current(20, "a", -2, "0 1 2 3")  # it is away
    script.run(30)
    assert script.row().protocol == "consumer"
    script.record(40, "group", deleted=True)
    script.snapshot(40, 1, {"a": ["t"]}, assigned(a="0 1 2 3"), strategy="range")
    script.run(5_000)
    row = script.row()
    assert (row.state, row.protocol, row.epoch, row.member_epochs) == ("stable", None, None, None)
    assert script.findings() == []


def test_a_long_message_is_cut_between_two_queues() -> None:
    message = stuck_found(T0, "reconciling", "a waits for " + ", ".join(f"t-{number}" for number in range(900))).message
    assert len(message) < MAX_DETAIL_LENGTH + 100
    assert re.search(r", t-\d+, …\.$", message)


def test_an_observation_stays_open_until_a_snapshot_comes_without_it() -> None:
    script = Script("rocketmq")
    script.poll(10, "a", observations=observed("brokers_disagree", "something_new"))
    script.poll(20, "a")  # says nothing of it
    script.poll(30, "a", observations=observed("brokers_disagree", "not_polled"))
    script.poll(40, "a", observations=())
    script.poll(50, "a", observations=observed("not_polled"))
    script.run(60)
    assert script.findings() == [
        "brokers_disagree 10..40",
        "not_polled 30..40",
        "not_polled 50..",
        "something_new 10..30",
    ]
    reported = {body.finding: (body.severity, body.message) for body in opened(script)}
    assert reported["something_new"] == ("info", "The source reports: something_new. something_new it is")
    assert reported["brokers_disagree"][0] == "warning"
    assert reported["brokers_disagree"][1].endswith("different assignments. brokers_disagree it is")


def test_it_makes_no_rebalance_and_closes_with_the_group() -> None:
    script = Script("metaq")
    script.poll(10, "a", observations=observed("changes_missed"))
    script.delete(100)
    script.run(200)
    assert script.decided() == ["10 #1 0->1 group_created member_joined:a", "100 #2 1->0 member_gone:a"]
    assert script.findings() == ["changes_missed 10..100"]


def test_it_is_open_beside_what_the_rules_find_under_the_same_name() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 1)
    script.poll(10, "a", "b", observations=observed("idle_members"))
    script.poll(20, "a", "b", observations=())
    script.run(30)
    assert script.findings() == ["idle_members 10..", "idle_members 10..20"]


def test_one_finding_holds_all_observations_of_one_kind_up_to_a_limit() -> None:
    script = Script("rocketmq")
    many = [Observation(kind="running_info_missing", detail=f"member-{number:03}") for number in range(200)]
    script.poll(10, "a", observations=(Observation(kind="running_info_missing"), *reversed(many)))
    script.run(20)
    [body] = opened(script)
    sentence = OBSERVED["running_info_missing"][1]
    assert body.message.startswith(f"{sentence} member-000; member-001; ")
    assert body.message.endswith("…")
    assert len(body.message) == len(sentence) + 1 + MAX_DETAIL_LENGTH


def test_so_many_things_are_taken_from_one_snapshot() -> None:
    script = Script("rocketmq")
    script.poll(10, "a", observations=observed(*(f"kind-{number:03}" for number in range(MAX_OBSERVATIONS + 9))))
    assert len(script.run(20).findings()) == MAX_OBSERVATIONS


def test_a_late_snapshot_changes_no_open_observation() -> None:
    script = Script("rocketmq")
    script.poll(10, "a")
    script.poll(1_000, "a", observations=())
    script.run(2_000)
    script.poll(500, "a", observations=observed("brokers_disagree"))
    script.run(3_000)
    assert [one for one in script.findings() if "late" not in one] == []


def test_an_inferred_strategy_is_a_change_marked_as_inferred() -> None:
    script = Script("metaq")
    script.queues(0, "t", 12)
    script.poll(10, "a", "b")
    script.settings(1_000, strategy="metaq.consistent-hash", inferred=True)
    script.settings(2_000, strategy="metaq.consistent-hash", inferred=True)
    script.run(3_000)
    assert script.decided()[1:] == ["1000 #2 2->2 strategy_changed"]
    assert script.rebalances[1].triggers[0].detail == "inferred: metaq.consistent-hash"
    assert script.row().strategy == "metaq.consistent-hash"


def test_the_default_concluded_is_no_change() -> None:
    script = Script("metaq")
    script.queues(0, "t", 4)
    script.poll(10, "a")
    script.settings(1_000, strategy="default", inferred=True)
    assert len(script.run(2_000).decided()) == 1


def test_a_reported_strategy_is_not_overruled_by_an_inferred_one_but_overrules_it() -> None:
    script = Script("metaq")
    script.queues(0, "t", 4)
    script.poll(10, "a")
    script.settings(100, strategy="consistent-hash", inferred=True)
    script.settings(200, strategy="default")
    script.settings(300, strategy="consistent-hash", inferred=True)
    script.run(1_000)
    assert script.decided()[1:] == ["100 #2 1->1 strategy_changed", "200 #3 1->1 strategy_changed"]


def test_the_default_named_after_a_failed_vote_is_a_change_of_strategy() -> None:
    for strategy in ("range", "roundrobin"):
        script = Script()
        script.queues(0, "t", 2)
        script.join(5, "b", strategies=("sticky",))
        script.join(10, "y", strategies=("range",))
        script.settings(20, strategy=strategy)
        script.run(15)
        script.run(30)
        row = script.rebalances[-1]
        assert script.decided()[1:] == ["10 #2 1->2 member_joined:y", "20 #3 2->2 strategy_changed"]
        assert (row.status, row.strategy, script.row().state) == ("completed", f"kafka.{strategy}", "stable")
        assert "strategy_failed 10..20" in script.findings()


@pytest.mark.parametrize("order", [("mode", "strategy"), ("strategy", "mode")])
def test_a_strategy_is_compared_with_the_one_before_its_event_time(order: tuple[str, str]) -> None:
    script = Script("metaq")
    script.join(10, "a", strategies=("metaq.consistent-hash",))
    script.run(15)
    for name in order:
        script.settings(20, **{name: {"mode": "broadcasting", "strategy": "metaq.default"}[name]})
    assert script.run(30).decided()[1:] == ["20 #2 1->1 strategy_changed settings_changed"]


def test_a_polled_group_with_one_member_that_leaves_within_the_same_millisecond_is_listed_as_empty() -> None:
    script = Script("metaq")
    script.poll(10, "a")
    script.leave(10, "a")
    script.run(20)
    assert script.rebalances == []
    assert (script.row().state, script.row().members) == ("empty", 0)


def test_a_mode_is_changed_by_a_newer_setting_only_and_named_in_the_cause() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 1)
    script.join(10, "a")
    script.settings(30, mode="broadcasting")
    script.run(40)
    script.settings(20, mode="clustering")
    script.run(50)
    assert script.row().mode == "broadcasting"
    script.settings(60, mode="clustering", inferred=True)
    script.run(70)
    assert script.row().mode == "clustering"
    causes = [one.detail for row in script.rebalances for one in row.triggers if one.kind == "settings_changed"]
    assert causes == ["mode clustering -> broadcasting", "inferred: mode broadcasting -> clustering"]


# ---- deletions that come late


def test_a_late_deletion_ends_nothing_that_began_after_it_and_is_not_decided_yet() -> None:
    script = Script(settle_ms=3_000)
    script.join(1_000, "a")
    script.run(4_500)
    script.join(5_500, "b")
    script.run(6_000)  # its rebalance is pending until 8500
    script.delete(3_000)
    script.run(9_000)
    assert [row.members_after for row in script.rebalances] == [1, 1]
    assert script.sessions() == ["a 1000..6000 gone", "b 5500.."]  # a has been silent since


def test_a_late_deletion_ends_no_group_that_a_newer_poll_shows() -> None:
    script = Script("rocketmq")
    script.poll(1_000, "a")
    script.poll(5_500, "a")
    script.run(6_000)
    script.delete(3_000)
    script.run(9_000)
    assert script.decided() == ["1000 #1 0->1 group_created member_joined:a"]


def test_a_late_deletion_takes_no_settings_that_are_newer() -> None:
    script = Script("rocketmq")
    script.poll(1_000)
    script.delete(2_000)
    script.settings(3_000, strategy="AVG_BY_CIRCLE")
    script.run(6_000)
    script.delete(1_500)
    script.join(7_000, "a")
    script.run(9_000)
    assert [one.strategy for one in script.rebalances] == ["rocketmq.AVG_BY_CIRCLE"]


def expired_and_deleted_late() -> Script:
    script = Script()
    script.snapshot(1_000, 1, {"a": ["t"]})
    script.beat(2_000, "a")
    script.run(60_000)
    script.delete(3_000)
    script.run(61_000)
    return script


def test_a_late_deletion_ends_a_group_that_nothing_but_an_expiry_followed() -> None:
    script = expired_and_deleted_late()
    assert script.sessions() == ["a 1000..60000 gone"]


@pytest.mark.parametrize("settle_ms", [0, 500])
def test_what_comes_after_a_deletion_and_is_older_is_of_the_group_before(settle_ms: int) -> None:
    script = Script(settle_ms=settle_ms)
    script.join(1_000, "a")
    script.delete(3_000)
    script.run(6_000)
    script.join(1_000, "a", ("u",))
    script.join(2_000, "b")
    script.snapshot(2_500, 4, {"c": ["t"]})
    script.run(9_000)
    assert script.sessions() == ["a 1000..3000 gone"]
    assert [row.members_after for row in script.rebalances][-1] == 0
    assert script.group.late_events == 3
    script.join(10_000, "a")
    assert script.run(20_000).decided()[-1].endswith("0->1 group_created member_joined:a")


def test_what_comes_after_a_late_deletion_and_is_newer_than_it_counts() -> None:
    script = expired_and_deleted_late()
    script.join(4_000, "b")
    script.run(62_000)
    assert script.sessions() == ["a 1000..60000 gone", "b 4000..49000 expired"]


def test_what_is_older_than_the_deletion_of_an_unregistered_group_is_of_the_group_before() -> None:
    script = Script()
    script.delete(2_000)
    script.run(6_000)
    script.join(1_000, "a")
    script.run(9_000)
    assert (script.decided(), script.group.late_events) == ([], 1)
    script.join(2_001, "a")
    assert script.run(9_500).decided() == ["2001 #1 0->1 group_created member_joined:a"]


def test_an_empty_group_is_listed_with_the_mode_it_has_now() -> None:
    script = Script("rocketmq")
    script.poll(1_000)
    script.settings(2_000, mode="broadcasting")
    assert script.run(3_000).row().mode == "broadcasting"
    script.join(4_000, "a")
    script.leave(5_000, "a")
    script.settings(6_000, mode="message")
    row = script.run(7_000).row()
    assert (row.state, row.mode, row.generation) == ("empty", "message", 2)
    assert len(script.rebalances) == 2


@pytest.mark.parametrize(
    ("why", "generation", "members", "number"),
    [
        ("it shows no more than that the group exists", None, (), None),
        ("it shows a generation without members", 3, (), 0),
        ("it shows members without a generation", None, ("v", "w"), 2),
    ],
)
def test_a_group_that_is_not_followed_has_as_many_members_as_its_snapshot_shows(
    why: str, generation: int | None, members: tuple[str, ...], number: int | None
) -> None:
    script = Script()
    script.snapshot(10, generation, dict.fromkeys(members, ()), state="not_followed")
    assert script.run(20).row().members == number, why
    script.snapshot(30, generation, {"x": ()}, state="not_followed")
    assert script.run(40).row().members == 1


def test_a_snapshot_without_members_takes_their_number_out_of_the_row() -> None:
    script = Script()
    script.snapshot(10, None, {"x": ()}, state="not_followed", protocol="connect")
    script.snapshot(20, None, {}, state="not_followed")
    assert script.run(30).row().members is None


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


@pytest.mark.parametrize("settle_ms", [0, 500])
def test_a_late_deletion_ends_who_was_silent_since(settle_ms: int) -> None:
    script = Script("rocketmq", settle_ms=settle_ms)
    script.beat(43_000, "silent")
    script.join(51_700, "a")
    script.run(60_000)
    script.delete(51_500)
    script.run(61_000)
    assert script.sessions() == ["a 51700..", "silent 43000..60000 gone"]


def test_the_row_of_an_empty_group_shows_the_strategy_that_was_set_late() -> None:
    script = Script("rocketmq")
    script.join(20_000, "a", session_timeout_ms=6_000)
    script.run(30_000)
    script.settings(22_000, strategy="CONSISTENT_HASH", mode="message")
    script.run(31_000)
    row = script.group.row
    assert row is not None
    assert (row.state, row.strategy, row.mode) == ("empty", "rocketmq.CONSISTENT_HASH", "message")
