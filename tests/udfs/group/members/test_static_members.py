"""Static members of Kafka under new ids; expected rows are worked out by hand."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import Script, assigned


def of(instance: str, *members: str) -> dict[str, dict[str, str]]:
    return {member: {"instance_id": instance} for member in members}


def test_an_old_id_that_speaks_later_takes_its_place_back() -> None:
    """Two processes with one instance: the coordinator knows one of them at a time."""
    for describe in (False, True):
        script = Script()
        script.queues(0, "t", 1)
        script.join(10, "i-1", instance_id="i")
        script.join(500, "i-2", instance_id="i")
        script.beat(600, "i-1", **({"host": "h"} if describe else {}))
        script.run(700)
        assert script.decided() == ["10 #1 0->1 group_created member_joined:i-1"]
        assert script.sessions() == ["i-1 10..500 replaced", "i-1 600..", "i-2 500..600 replaced"]
        assert script.spans() == ["t/0 i-1 10..500", "t/0 i-1 600..", "t/0 i-2 500..600"]


def test_a_late_heartbeat_of_the_old_id_changes_nothing() -> None:
    script = Script()
    script.queues(0, "t", 1)
    script.join(10, "i-1", instance_id="i")
    script.join(500, "i-2", instance_id="i")
    script.run(600)
    script.beat(500, "i-1", host="h")
    script.beat(400, "i-1")
    script.join(500, "i-1", instance_id="i")
    script.run(700)
    assert len(script.decided()) == 1
    assert script.sessions() == ["i-1 10..500 replaced", "i-2 500.."]


def test_a_new_id_that_comes_late_takes_the_place_at_the_clock() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.join(10, "i-1", instance_id="i")
    script.join(2_000, "b")
    script.run(3_000)
    script.join(1_000, "i-2", instance_id="i")
    script.run(4_000)
    assert len(script.decided()) == 2
    assert script.sessions() == ["b 2000..", "i-1 10..3000 replaced", "i-2 3000.."]


def test_a_late_poll_of_the_old_id_does_not_bring_it_back() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, None, {"i-1": ["t"], "o": ["t"]}, describe=of("i", "i-1"))
    script.run(20)
    script.snapshot(30, None, {"i-2": ["t"], "o": ["t"]}, describe=of("i", "i-2"))
    script.run(40)
    reported = {"i-1": [("t", 0)], "o": [("t", 1)]}
    script.snapshot(30, None, {"i-1": ["t"], "o": ["t"]}, reported, describe=of("i", "i-1"))
    script.run(50)
    assert len(script.decided()) == 1
    assert script.sessions() == ["i-1 10..30 replaced", "i-2 30..", "o 10.."]
    assert script.owners(45, "reported") == {"t/0": "i-2", "t/1": "o"}


def test_two_static_members_that_return_at_once_keep_their_own_queues() -> None:
    script = Script()
    script.queues(0, "t", 2)
    both = {**of("i", "i-1", "i-2"), **of("j", "j-1", "j-2")}
    script.snapshot(10, None, {"i-1": ["t"], "j-1": ["t"]}, describe=both, leader="j-1")
    script.snapshot(20, None, {"j-2": ["t"], "i-2": ["t"]}, describe=both)
    script.snapshot(30, None, {"j-2": ["t"], "i-2": ["t"], "k": ["t"]}, describe=both)
    script.run(40)
    assert script.decided()[1:] == ["30 #2 2->3 member_joined:k"]
    assert script.rebalances[1].leader == "j-2"
    assert script.spans() == [
        "t/0 i-1 10..20",
        "t/0 i-2 20..",
        "t/1 j-1 10..20",
        "t/1 j-2 20..",
    ]


def test_a_member_that_returns_while_changes_settle_keeps_its_history() -> None:
    """The rebalance of 100 is written when its window closes, after i-2 came at 300."""
    for cut in (None, 200, 300, 301, 600):
        script = Script(settle_ms=500)
        script.queues(0, "t", 2)
        script.join(10, "i-1", instance_id="i")
        script.join(1_000, "j")
        script.join(1_300, "i-2", instance_id="i")
        if cut is not None:
            script.run(1_000 + cut)
        script.run(2_000)
        assert script.decided()[1:] == ["1000 #2 1->2 member_joined:j"]
        assert script.sessions() == ["i-1 10..1300 replaced", "i-2 1300..", "j 1000.."]
        assert script.spans() == ["t/0 i-1 10..1300", "t/0 i-2 1300..", "t/1 i-1 10..1000", "t/1 j 1000.."]


def test_spans_carry_the_instance_of_their_owner() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {"i-1": ["t"], "o": ["t"]}, {"i-1": [("t", 0)], "o": [("t", 1)]}, of("i", "i-1"))
    script.run(20)
    spans = [change.body for change in script.changes if hasattr(change.body, "valid_from")]
    assert sorted((span.origin, span.member_id, span.instance_id) for span in spans) == [
        ("computed", "i-1", "i"),
        ("computed", "o", None),
        ("reported", "i-1", "i"),
        ("reported", "o", None),
    ]


def test_two_restarts_of_one_event_time_leave_the_last_id_alone() -> None:
    script = Script()
    script.queues(0, "t", 1)
    script.join(10, "i-1", instance_id="i")
    script.join(10, "i-2", instance_id="i")
    script.join(10, "i-3", instance_id="i")
    script.run(20)
    assert script.decided() == ["10 #1 0->1 group_created member_joined:i-3"]
    assert script.sessions() == ["i-3 10.."]
    assert script.spans() == ["t/0 i-3 10.."]


def test_polls_of_one_event_time_that_show_two_ids_and_then_none_are_no_change() -> None:
    script = Script()
    script.queues(0, "t", 1)
    script.join(10, "o")
    script.snapshot(20, None, {"i-1": ["t"], "o": ["t"]}, describe=of("i", "i-1"))
    script.snapshot(20, None, {"i-2": ["t"], "o": ["t"]}, describe=of("i", "i-2"))
    script.snapshot(20, None, {"o": ["t"]})
    script.run(30)
    assert script.decided() == ["10 #1 0->1 group_created member_joined:o"]
    assert script.sessions() == ["o 10.."]


def test_a_member_back_at_the_time_of_a_generation_that_waits_for_a_topic_holds_what_it_held() -> None:
    for batches in ([50], [25, 50]):
        script = Script()
        script.queues(0, "t", 1)
        script.snapshot(10, 2, {"i-1": ["t"]}, strategy="range", describe=of("i", "i-1"))
        members = {"o": ["u"], "i-1": ["t"]}
        script.snapshot(20, 3, members, strategy="range", describe=of("i", "i-1"), event_id="s1")
        members = {"o": ["u"], "i-2": ["t"]}
        script.snapshot(20, 3, members, strategy="range", describe=of("i", "i-2"), event_id="s2")
        script.queues(30, "u", 1)
        for clock in batches:
            script.run(clock)
        assert script.spans() == ["t/0 i-1 10..20", "t/0 i-2 20..", "u/0 o 20.. inferred"]


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_member_that_is_replaced_while_a_rebalance_settles_starts_from_its_own_queues(is_replaced: bool) -> None:
    script = Script(settle_ms=1_000)
    script.queues(0, "t", 3)
    script.join(0, "a", strategies=("sticky",))
    script.join(0, "c", strategies=("sticky",), instance_id="i")
    script.leave(2_000, "a")
    script.join(4_000, "b", strategies=("sticky",))
    if is_replaced:
        script.join(4_500, "c-1", strategies=("sticky",), instance_id="i")
    script.run(9_000)
    row = script.rebalances[2]
    assert (row.queues_kept, row.queues_moved) == (2, 1)


def test_a_static_member_under_an_id_that_still_holds_the_same_queue_holds_it_once() -> None:
    script = Script(settle_ms=1_000)
    script.queues(0, "t", 1)
    script.settings(0, mode="broadcasting")
    script.join(10, "i-1", instance_id="i")
    script.join(10, "i-2")
    script.leave(2_000, "i-2")
    script.join(2_500, "i-2", instance_id="i")
    script.run(5_000)
    row = script.rebalances[-1]
    assert (row.queues_kept, row.queues_moved, row.queues_assigned) == (1, 0, 0)
    assert script.spans() == ["t/0 i-1 10..2500", "t/0 i-2 10.."]


# ---- within a generation


def generations(number: int | None, at: int, *, topics: tuple[str, ...] = ("t",), joins: bool = True) -> Script:
    """Return a group of ``z`` and the static ``i-1``, and a second generation with ``i-2``.

    Args:
        number: Of the first one; None: they are counted from polls. at: The time of the second one.
        topics: Of ``i-2``. joins: ``n`` joins with it.
    """
    script = Script()
    script.queues(0, "t", 4)
    script.queues(0, "u", 1)
    reported = {"strategy": "range", "leader": "z"} | ({"generation_source": "counted"} if number is None else {})
    script.snapshot(
        10, number, {"i-1": ["t"], "z": ["t"]}, assigned(**{"i-1": "0 1", "z": "2 3"}), of("i", "i-1"), **reported
    )
    members = {"i-2": topics, "z": ["t"]} | ({"n": ["t"]} if joins else {})
    held = assigned(**({"i-2": "0 1", "n": "2", "z": "3"} if joins else {"i-2": "0 1", "z": "2 3"}))
    if "u" in topics:
        held["i-2"].append(("u", 0))
    script.snapshot(at, None if number is None else number + 1, members, held, of("i", "i-2"), **reported)
    return script


@pytest.mark.parametrize("number", [1, None])
@pytest.mark.parametrize("cut", [None, 15])
def test_a_static_member_that_returns_with_a_new_generation_continues(number: int | None, cut: int | None) -> None:
    script = generations(number, 20)
    if cut is not None:
        script.run(cut)
    script.run(30)
    assert script.decided()[1:] == ["20 #2 2->3 member_joined:n"]
    assert script.sessions() == ["i-1 10..20 replaced", "i-2 20..", "n 20..", "z 10.."]
    assert script.spans("reported") == [
        *("t/0 i-1 10..20", "t/0 i-2 20..", "t/1 i-1 10..20", "t/1 i-2 20.."),
        *("t/2 n 20..", "t/2 z 10..20", "t/3 z 10.."),
    ]
    assert script.spans() == script.spans("reported")
    row = script.rebalances[1]
    assert (row.queues_kept, row.queues_moved, row.agrees) == (3, 1, True)


def test_what_a_static_member_subscribes_to_anew_is_the_cause_of_its_generation() -> None:
    script = generations(1, 20, topics=("t", "u"), joins=False).run(30)
    assert script.decided()[1:] == ["20 #2 2->2 subscription_changed:i-2"]
    assert [trigger.detail for trigger in script.rebalances[1].triggers] == ["added u"]
    assert script.sessions() == ["i-1 10..20 replaced", "i-2 20..", "z 10.."]


def test_a_generation_that_shows_nothing_but_a_static_members_return_comes_from_it() -> None:
    script = generations(1, 20, joins=False).run(30)
    assert script.decided()[1:] == ["20 #2 2->2 subscription_changed:i-2"]
    (cause,) = script.rebalances[1].triggers
    assert cause.detail == "inferred: the static member came back under another id"


@pytest.mark.parametrize("silence", [1_000, 31_000, 50_000])
def test_the_silence_of_a_static_member_before_its_return_is_no_departure(silence: int) -> None:
    script = generations(1, 5_000 + silence)
    script.commit(5_000, "t", 0)
    script.commit(4_900 + silence, "t", 2)
    script.run(60_000)
    assert script.decided()[1:] == [f"{5_000 + silence} #2 2->3 member_joined:n"]


@pytest.mark.parametrize(("how", "kind", "reason"), [(None, "member_left", "left"), ("expired",) * 3])
def test_a_static_member_that_departed_before_is_another_one_that_joins(
    how: str | None, kind: str, reason: str
) -> None:
    script = generations(1, 20)
    script.leave(15, "i-1", how=how)
    script.run(30)
    kind = "session_expired" if how else kind
    assert script.decided()[1:] == [f"20 #2 2->3 {kind}:i-1 member_joined:i-2 member_joined:n"]
    assert script.sessions()[:2] == [f"i-1 10..15 {reason}", "i-2 20.."]


def test_a_static_member_that_has_shown_itself_before_its_generation_is_no_cause_of_a_later_one() -> None:
    script = generations(1, 20)
    script.join(15, "i-2", instance_id="i")
    script.snapshot(30, 3, {"n": ["t"], "z": ["t"]}, strategy="range")
    script.snapshot(40, 4, {"i-2": ["t"], "n": ["t"], "z": ["t"]}, strategy="range")
    script.run(50)
    assert script.decided()[1:] == [
        "20 #2 2->3 member_joined:n",
        "30 #3 3->2 member_gone:i-2",
        "40 #4 2->3 member_joined:i-2",
    ]


def test_static_members_continue_where_a_coordinator_has_lost_its_state() -> None:
    script = generations(6, 20, joins=False)
    script.snapshot(30, 1, {"i-3": ["t"], "z": ["t"]}, describe=of("i", "i-3"), strategy="range")
    script.run(40)
    assert script.decided()[2:] == ["30 #1 2->2 coordinator_changed"]
    assert script.sessions()[:3] == ["i-1 10..20 replaced", "i-2 20..30 replaced", "i-3 30.."]


def test_other_strategies_that_a_static_member_returns_with_are_the_cause() -> None:
    script = Script()
    script.queues(0, "t", 1)
    for at, number, member, strategies in (
        (10, 1, "i-1", ("range",)),
        (20, 2, "i-2", ("roundrobin", "range")),
    ):
        script.snapshot(at, number, {member: ["t"]}, describe={member: {"instance_id": "i", "strategies": strategies}})
    script.run(30)
    assert script.decided()[1:] == ["20 #2 1->1 strategy_changed:i-2"]


def test_a_leader_that_was_replaced_has_its_new_id_in_a_generation_that_comes_late() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {"b": ["t"]}, assigned(b="0 1"), of("i", "b"), strategy="range", leader="b")
    held = {"b-2": [("t", 0)], "x": [("t", 1)]}
    script.snapshot(50, 3, {"b-2": ["t"], "x": ["t"]}, held, of("i", "b-2"), strategy="range", leader="b-2")
    script.run(60)
    script.snapshot(50, 2, {"b": ["t"]}, assigned(b="0 1"), of("i", "b"), strategy="range", leader="b")
    script.run(70)
    assert script.decided()[-1] == "50 #2 2->1 member_gone:x coordinator_changed"
    assert script.rebalances[-1].leader == "b-2"


def test_a_generation_that_newer_ones_overtook_has_its_leader_by_the_id_of_then() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {"b": ["t"]}, assigned(b="0 1"), of("i", "b"), strategy="range", leader="b")
    script.snapshot(50, 3, {"b-2": ["t"]}, {"b-2": [("t", 0)]}, of("i", "b-2"), strategy="range", leader="b-2")
    script.run(60)
    script.snapshot(40, 2, {"b": ["t"]}, assigned(b="0 1"), of("i", "b"), strategy="range", leader="b")
    script.run(70)
    assert (script.decided()[-1], script.rebalances[-1].leader) == ("60 #2 1->1 late_evidence", "b")
