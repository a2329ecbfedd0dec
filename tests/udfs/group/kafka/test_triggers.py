"""Causes of a reported generation: what was learned before it, and what it shows itself."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import T0, Script, assigned
from udfs.model.journal import TRIGGER_ORDER


def test_the_order_of_causes_is_the_one_of_the_contract() -> None:
    assert TRIGGER_ORDER == (
        "group_created",
        "session_expired",
        "member_left",
        "member_gone",
        "member_joined",
        "subscription_changed",
        "strategy_changed",
        "settings_changed",
        "queue_count_changed",
        "cooperative_follow_up",
        "coordinator_changed",
        "late_evidence",
        "unexplained",
    )


def test_joins_departures_and_changes_are_learned_from_the_members() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    script.snapshot(20, 2, {"b": ["t", "u"], "c": ["t"]}, assigned(b="0", c="1"), strategy="range")
    script.run(30)
    assert script.decided()[1] == "20 #2 2->2 member_gone:a member_joined:c subscription_changed:b"
    assert script.sessions() == ["a 10..20 absent_from_snapshot", "b 10..", "c 20.."]


@pytest.mark.parametrize(
    ("before", "now", "detail"),
    [
        (["t"], ["t", "t_re_c"], "added t_re_c"),
        (["t", "u"], ["t", "v"], "added v, dropped u"),
        (["t", "a", "b", "c", "d", "e"], ["t"], "dropped a, b, c and 2 more"),
        (["t"], [], "dropped t"),
    ],
)
def test_a_changed_subscription_names_the_topics_that_were_added_and_dropped(
    before: list[str], now: list[str], detail: str | None
) -> None:
    script = Script()
    script.snapshot(10, 1, {"a": before}, assigned(a="0"), strategy="range")
    script.snapshot(20, 2, {"a": now}, assigned(a="0"), strategy="range")
    script.run(30)
    (cause,) = script.rebalances[1].triggers
    assert (cause.kind, cause.member_id, cause.detail) == ("subscription_changed", "a", detail)


def test_a_new_generation_in_which_nothing_changed_is_unexplained() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0"), strategy="range")
    script.snapshot(20, 2, {"a": ["t"]}, assigned(a="0"), strategy="range")
    assert script.run(30).decided()[1] == "20 #2 1->1 unexplained"


@pytest.mark.parametrize(
    ("generation", "leader", "reason", "detail"),
    [
        (2, "a", None, "inferred: its leader a joined again, or a member came and left within the rebalance"),
        (2, "a", "broker log: Leader a re-joining", "broker log: Leader a re-joining"),
        (2, "b", None, None),
        (3, "a", None, None),
    ],
)
def test_a_generation_without_a_change_names_its_likely_reason(
    generation: int, leader: str, reason: str | None, detail: str | None
) -> None:
    script = Script()
    members = {"a": ["t"], "b": ["t"]}
    script.snapshot(10, 1, members, assigned(a="0", b="1"), strategy="range", leader="a")
    if reason is not None:
        script.snapshot(15, 1, {}, state="PreparingRebalance", reason=reason)
    script.snapshot(20, generation, members, assigned(a="0", b="1"), strategy="range", leader=leader)
    (trigger,) = script.run(30).rebalances[1].triggers
    assert (trigger.kind, trigger.member_id, trigger.detail) == ("unexplained", None, detail)


def test_growth_is_a_cause_of_the_generation_that_uses_the_new_queues() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    script.queues(20, "t", 3, event_id="grown")
    script.snapshot(30, 2, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    script.snapshot(40, 3, {"a": ["t"], "b": ["t"]}, assigned(a="0 1", b="2"), strategy="range")
    script.run(50)
    assert script.decided()[1:] == ["30 #2 1->2 member_joined:b", "40 #3 2->2 queue_count_changed:t"]
    assert [row.agrees for row in script.rebalances] == [True, True, True]
    assert script.rebalances[2].triggers[0].event_id == "grown"
    assert [row.queues_after for row in script.rebalances] == [2, 2, 3]


@pytest.mark.parametrize("deleted_at", [15, 20])
def test_a_deletion_that_one_generation_does_not_show_is_a_cause_of_the_next(deleted_at: int) -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.queues(0, "u", 1)
    both = {"a": ["t", "u"], "b": ["t", "u"]}
    script.snapshot(10, 1, {"a": ["t", "u"]}, {"a": [("t", 0), ("t", 1), ("u", 0)]}, strategy="range")
    script.queues(deleted_at, "t", 0, event_id="gone")
    script.snapshot(20, 2, both, {"a": [("t", 0), ("u", 0)], "b": [("t", 1)]}, strategy="range")
    script.snapshot(30, 3, both, {"a": [("u", 0)], "b": []}, strategy="range")
    script.run(40)
    assert script.decided()[1:] == ["20 #2 1->2 member_joined:b", "30 #3 2->2 queue_count_changed:t"]
    assert [(one.detail, one.event_id) for one in script.rebalances[2].triggers] == [("2 -> 0", "gone")]
    assert [row.agrees for row in script.rebalances] == [True] * 3
    assert script.findings() == ["idle_members 30.."]


def test_an_assignment_that_names_partitions_not_shown_yet_proves_growth() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0 1"), strategy="range")
    script.snapshot(20, 2, {"a": ["t"]}, assigned(a="0 1 2 3"), strategy="range")
    script.queues(30, "t", 4)
    script.snapshot(40, 3, {"a": ["t"]}, assigned(a="0 1 2 3"), strategy="range")
    script.run(50)
    assert script.decided()[1:] == ["20 #2 1->1 queue_count_changed:t", "40 #3 1->1 unexplained"]
    assert script.owners(20) == {f"t/{number}": "a" for number in range(4)}


@pytest.mark.parametrize(
    ("last_commit", "kind"),
    [
        (None, "member_gone"),
        (2_000, "session_expired"),
        (4_000, "session_expired"),  # exactly a session timeout before
        (4_001, "member_gone"),  # a heartbeat may have been a little older than the commit
        (6_000, "member_gone"),
        (6_001, "member_left"),
        (9_999, "member_left"),
        (10_000, "member_gone"),  # at the generation's own moment: no more of the member's own
    ],
)
def test_commits_distinguish_a_leave_from_an_expiry(last_commit: int | None, kind: str) -> None:
    script = Script()
    described = {"a": {"session_timeout_ms": 6_000}}
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), described, strategy="range")
    if last_commit is not None:
        times = (last_commit - 1_900, last_commit - 950, last_commit)
        for time in times if last_commit < 10_000 else times[2:]:
            script.observe(time, "t", 0, committed=time)
    for time in range(3_000, 10_000, 1_000):
        script.observe(time, "t", 1, committed=time)
    script.snapshot(10_000, 2, {"b": ["t"]}, assigned(b="0 1"), strategy="range")
    trigger = script.run(20_000).rebalances[1].triggers[0]
    assert trigger.kind == kind
    assert (trigger.detail or "").startswith("inferred: last commit") == (kind != "member_gone")


def test_commits_of_an_earlier_owner_are_no_evidence() -> None:
    script = Script()
    script.commit(900, "t", 0)
    script.snapshot(1_000, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    script.snapshot(100_000, 2, {"b": ["t"]}, assigned(b="0 1"), strategy="range")
    assert script.run(200_000).decided()[1] == "100000 #2 2->1 member_gone:a"


def test_a_reported_leave_is_the_cause_of_the_generation_that_shows_it() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    script.leave(50, "a", event_id="bye")
    script.snapshot(100, 2, {"b": ["t"]}, assigned(b="0 1"), strategy="range")
    row = script.run(200).rebalances[1]
    assert (row.triggers[0].kind, row.triggers[0].event_id) == ("member_left", "bye")
    assert script.sessions()[0] == "a 10..50 left"
    assert row.pause_ms == 50


def test_a_leave_at_the_very_time_of_the_generation_counts_too() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, strategy="range")
    script.leave(100, "a")
    script.snapshot(100, 2, {"b": ["t"]}, strategy="range")
    assert script.run(200).decided()[1] == "100 #2 2->1 member_left:a"


def test_evidence_reported_after_its_generation_was_written_causes_nothing() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, strategy="range")
    script.snapshot(100, 2, {"b": ["t"]}, strategy="range")
    script.run(200)
    script.leave(50, "a")
    script.run(300)
    script.snapshot(400, 3, {"b": ["t"]}, strategy="range")
    assert script.run(500).decided()[1:] == ["100 #2 2->1 member_gone:a", "400 #3 1->1 unexplained"]


def test_a_leave_that_a_late_generation_overtakes_is_no_cause_of_a_later_end() -> None:
    script = Script()
    script.snapshot(100, 6, {"a": ["t"], "b": ["t"]}, strategy="range")
    script.leave(205, "b")
    script.run(300)
    script.snapshot(204, 7, {"a": ["t"]}, strategy="range")
    script.snapshot(400, 8, {"a": ["t"], "b": ["t"]}, strategy="range")
    script.snapshot(500, 9, {"a": ["t"]}, strategy="range")
    assert script.run(600).decided()[1:] == [
        "204 #7 2->1 member_gone:b", "400 #8 1->2 member_joined:b", "500 #9 2->1 member_gone:b"
    ]  # fmt: skip


def test_a_late_leave_from_before_a_session_is_no_cause_of_its_end() -> None:
    script = Script()
    script.snapshot(100, 6, {"a": ["t"], "b": ["t"]}, strategy="range")
    script.run(200)
    script.leave(50, "a")
    script.run(300)
    script.snapshot(400, 7, {"b": ["t"]}, strategy="range")
    assert script.run(500).decided()[1] == "400 #7 2->1 member_gone:a"


def test_each_cause_names_the_event_that_shows_it() -> None:
    script = Script()
    six_seconds = {"a": {"session_timeout_ms": 6_000}}
    script.snapshot(1_000, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), six_seconds, strategy="range")
    for time in (1_100, 2_050, 3_000):
        script.observe(time, "t", 0, committed=time)
    for time in (5_000, 8_000, 9_500):
        script.observe(time, "t", 1, committed=time)
    script.join(9_000, "c", event_id="hello")
    members = {"b": ["t"], "c": ["t"], "d": ["t"]}
    owned = assigned(b="0 1", c="", d="")
    script.snapshot(10_000, 2, members, owned, strategy="range", event_id="second")
    script.run(20_000)
    assert [(one.kind, one.member_id, one.event_id) for one in script.rebalances[1].triggers] == [
        ("session_expired", "a", "second"), ("member_joined", "c", "hello"), ("member_joined", "d", "second")
    ]  # fmt: skip
    assert script.rebalances[1].began_at == T0 + 9_000


def test_strategies_of_members_that_change_are_causes_with_their_event() -> None:
    script = Script()
    for at, generation, strategies in ((10, 1, ("range",)), (20, 2, ("range", "sticky"))):
        described = {"a": {"strategies": ("range",)}, "b": {"strategies": strategies}}
        script.snapshot(at, generation, {"a": ["t"], "b": ["t"]}, None, described, event_id=f"e{generation}")
    (cause,) = script.run(30).rebalances[1].triggers
    assert (cause.kind, cause.member_id, cause.event_id) == ("strategy_changed", "b", "e2")


@pytest.mark.parametrize("own_reason", [None, "closing"])
def test_a_reason_of_the_coordinator_follows_an_inferred_one_and_yields_to_the_own_one_of_a_member(
    own_reason: str | None,
) -> None:
    script = Script()
    members, six_seconds = {"a": ["t"], "b": ["t"]}, {"a": {"session_timeout_ms": 6_000}}
    script.snapshot(1_000, 1, members, assigned(a="0", b="1"), six_seconds, strategy="range")
    for time in (1_100, 2_050, 3_000):
        script.observe(time, "t", 0, committed=time)
    for time in (5_000, 8_000, 8_900):
        script.observe(time, "t", 1, committed=time)
    if own_reason is not None:
        script.leave(8_000, "a", reason=own_reason)
    script.snapshot(9_000, 1, {}, state="PreparingRebalance", reason="removing member a")
    script.snapshot(10_000, 2, {"b": ["t"]}, assigned(b="0 1"), strategy="range")
    (cause,) = script.run(20_000).rebalances[1].triggers
    assert cause.detail is not None
    if own_reason is None:
        assert cause.detail.startswith("inferred: last commit")
        assert cause.detail.endswith("; removing member a")
    else:
        assert cause.detail == own_reason


def test_another_strategy_is_a_cause_with_both_names() -> None:
    script = Script()
    script.snapshot(10, 1, {"a": ["t"]}, assigned(a="0"), strategy="range")
    script.snapshot(20, 2, {"a": ["t"]}, assigned(a="0"), strategy="sticky", event_id="e2")
    (cause,) = script.run(30).rebalances[1].triggers
    assert (cause.kind, cause.detail, cause.event_id) == ("strategy_changed", "kafka.range -> kafka.sticky", "e2")


@pytest.mark.parametrize(
    ("reason", "about"), [("removing member m-1", "m-1"), ("adding new member m-4", "m-4"), ("metadata changed", "m-1")]
)
def test_a_coordinators_reason_is_of_the_member_that_it_names_or_else_of_the_main_cause(
    reason: str, about: str
) -> None:
    script = Script()
    script.snapshot(10, 1, {"m-1": ["t"], "m-2": ["t"]}, strategy="range")
    script.snapshot(15, 1, {}, state="PreparingRebalance", reason=reason)
    script.snapshot(20, 2, {"m-2": ["t"], "m-3": ["t"], "m-4": ["t"]}, strategy="range")
    causes = script.run(30).rebalances[1].triggers
    assert [one.member_id for one in causes] == ["m-1", "m-3", "m-4"]
    assert {one.member_id: one.detail for one in causes if one.detail is not None} == {about: reason}


def test_an_expiry_that_a_generation_disproves_is_no_cause_of_a_later_one() -> None:
    script = Script()
    both = {"a": ["t"], "b": ["t"]}
    script.snapshot(10, 1, both, assigned(a="0", b="1"), strategy="range")
    script.leave(50, "a", how="expired")
    script.snapshot(100, 2, both, assigned(a="0", b="1"), strategy="range")
    script.snapshot(200, 3, {"b": ["t"]}, assigned(b="0 1"), strategy="range")
    assert script.run(300).decided()[1:] == ["100 #2 2->2 unexplained", "200 #3 2->1 member_gone:a"]
