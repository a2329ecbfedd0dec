"""Counted generations: who is a member, what is a rebalance, and that batches leave no trace."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.udfs.group.group_script import T0, Script

KAFKA_TIMEOUT = 45_000
END = 10_000_000


def test_the_first_rebalance_creates_the_group_with_the_joins_beside() -> None:
    script = Script()
    script.join(10, "a")
    script.join(10, "b")
    assert script.run(11).decided() == ["10 #1 0->2 group_created member_joined:a member_joined:b"]


# ---- sessions


@pytest.mark.parametrize(
    ("beat_at", "rebalances", "sessions"),
    [
        # One before the deadline, and at it, keeps the session; one after begins another.
        (45_009, ["10 #1 0->1", "90009 #2 1->0"], ["a 10..90009 expired"]),
        (45_010, ["10 #1 0->1", "90010 #2 1->0"], ["a 10..90010 expired"]),
        (
            45_011,
            ["10 #1 0->1", "45010 #2 1->0", "45011 #3 0->1", "90011 #4 1->0"],
            ["a 10..45010 expired", "a 45011..90011 expired"],
        ),
    ],
)
def test_a_session_ends_at_the_last_heartbeat_and_the_timeout(
    beat_at: int, rebalances: list[str], sessions: list[str]
) -> None:
    script = Script()
    script.join(10, "a")
    script.beat(beat_at, "a")
    script.run(200_000)
    assert [line.rsplit(" ", line.count(" ") - 2)[0] for line in script.decided()] == rebalances
    assert script.sessions() == sessions


@pytest.mark.parametrize(("clock", "members"), [(45_009, 1), (45_010, 1), (45_011, 0)])
def test_an_expiry_is_applied_when_the_clock_is_past_the_deadline(clock: int, members: int) -> None:
    script = Script()
    script.join(10, "a")
    assert len(script.run(clock).group.members) == members


def test_a_heartbeat_of_an_unknown_member_makes_one_that_holds_nothing_until_it_is_described() -> None:
    script = Script("metaq")
    script.queues(0, "t", 2)
    script.beat(10, "a")
    script.join(20, "a")
    script.run(30)
    assert script.decided() == ["10 #1 0->1 group_created member_joined:a", "20 #2 1->1 subscription_changed:a"]
    assert script.spans() == ["t/0 a 20..", "t/1 a 20.."]


def test_a_heartbeat_after_a_goodbye_is_a_join_with_the_last_description() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.join(10, "a", host="h1")
    script.leave(20, "a")
    script.beat(20, "a")
    script.beat(30, "a")
    script.run(40)
    assert script.decided()[1:] == ["20 #2 1->0 member_left:a", "30 #3 0->1 member_joined:a"]
    assert script.group.members["a"].host == "h1"
    assert script.owners(30) == {"t/0": "a", "t/1": "a"}


def test_a_repeated_event_changes_nothing() -> None:
    script = Script()
    script.join(10, "a", event_id="same")
    script.leave(20, "a")
    script.join(30, "a", event_id="same")
    assert script.run(40).decided() == ["10 #1 0->1 group_created member_joined:a", "20 #2 1->0 member_left:a"]


# ---- what is a rebalance


def test_heartbeats_and_foreign_topics_are_no_rebalance() -> None:
    script = Script()
    script.join(10, "a")
    script.beat(20, "a")
    script.join(30, "a")
    script.queues(40, "other", 3)
    script.settings(50, mode="clustering")
    assert len(script.run(60).decided()) == 1


def test_settings_without_members_make_no_rebalance_and_hold_when_members_come() -> None:
    script = Script("rocketmq")
    script.settings(10, mode="broadcasting")
    script.queues(10, "t", 2)
    script.join(20, "a")
    script.join(20, "b")
    script.run(30)
    assert script.decided() == ["20 #1 0->2 group_created member_joined:a member_joined:b"]
    assert script.owners(20) == {"t/0": "a+b", "t/1": "a+b"}


def test_strategy_and_mode_of_a_group_with_members_make_one_rebalance() -> None:
    script = Script("rocketmq")
    script.join(10, "a")
    script.settings(20, strategy="AVG_BY_CIRCLE", mode="broadcasting")
    assert script.run(30).decided()[1:] == ["20 #2 1->1 strategy_changed settings_changed"]
    assert script.row().strategy == "rocketmq.AVG_BY_CIRCLE"


def test_a_member_that_prefers_otherwise_is_a_strategy_changed() -> None:
    script = Script()
    script.join(10, "a", strategies=("range", "roundrobin"))
    script.join(20, "a", strategies=("roundrobin", "range"))
    script.run(30)
    assert script.decided()[1:] == ["20 #2 1->1 strategy_changed:a"]
    assert [row.strategy for row in script.rebalances] == ["kafka.range", "kafka.roundrobin"]


def test_the_last_member_leaves_an_empty_group_that_counts_on() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.join(10, "a")
    script.leave(20, "a")
    script.join(30, "b")
    script.run(25)
    assert script.row().state == "empty"
    assert script.rebalances[-1].members_after == 0
    assert script.rebalances[-1].status == "completed"
    assert script.run(40).decided()[-1] == "30 #3 0->1 member_joined:b"


# ---- folding


def test_changes_that_cancel_out_still_make_the_row() -> None:
    script = Script(settle_ms=100)
    script.join(-2_000, "a")
    script.join(10, "b")
    script.leave(20, "b")
    assert script.run(500).decided()[1:] == ["20 #2 1->1 member_left:b member_joined:b"]


# ---- strategies


# ---- counts


def test_queues_are_counted_as_kept_moved_assigned_and_revoked() -> None:
    """Range: a 0-1, b 2-3; with c: a 0-1, b 2, c 3 (one moves); without a: b 0-1, c 2-3; grown: b 0-2, c 3-4."""
    script = Script()
    script.queues(0, "t", 4)
    script.join(10, "a")
    script.join(10, "b")
    script.join(20, "c")
    script.leave(30, "a")
    script.queues(40, "t", 5)
    script.queues(50, "t", 0)
    script.run(60)
    counts = [(r.queues_kept, r.queues_moved, r.queues_assigned, r.queues_revoked) for r in script.rebalances]
    # without a: 0 and 1 from a to b, 2 from b to c, 3 stays with c
    assert counts == [(0, 0, 4, 0), (3, 1, 0, 0), (1, 3, 0, 0), (3, 1, 1, 0), (0, 0, 0, 5)]
    assert [row.spread for row in script.rebalances] == [0, 1, 0, 1, 0]


# ---- polls


def test_a_member_missing_in_a_poll_has_departed_and_members_of_polls_never_expire() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 2)
    script.snapshot(10, None, {"a": ["t"], "b": ["t"]})
    script.snapshot(5_000, None, {"a": ["t"], "b": ["t"]})
    script.snapshot(10_000, None, {"b": ["t"], "c": ["u"]})
    script.run(END)
    assert script.decided() == [
        "10 #1 0->2 group_created member_joined:a member_joined:b",
        "10000 #2 2->2 member_gone:a member_joined:c",
    ]
    assert script.sessions() == ["a 10..10000 absent_from_snapshot", "b 10..", "c 10000.."]


def test_an_assignment_reported_by_a_poll_is_kept_beside_and_counted() -> None:
    script = Script("metaq")
    script.queues(0, "t", 2)
    script.snapshot(10, None, {"a": ["t"], "b": ["t"]}, {"a": [("t", 0), ("t", 1)], "b": []})
    row = script.run(20).rebalances[0]
    assert script.owners(10) == {"t/0": "a", "t/1": "b"}
    assert script.owners(10, "reported") == {"t/0": "a", "t/1": "a"}
    assert (row.agrees, row.queues_differing, row.spread, row.idle_members) == (False, 1, 2, 1)
    # Members have a session timeout and two seconds to follow before it is wrong.
    assert script.run(40_000).findings() == ["expected_differs 32010..", "idle_members 10.."]


# ---- one id, two connections


def test_a_second_connection_with_the_same_id_is_a_second_member_that_takes_the_same_queues() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 4)
    script.join(10, "x", host="h1")
    script.join(20, "x", host="h2")
    script.join(30, "x", host="h3")
    script.beat(40, "x")
    script.run(50)
    assert list(script.group.members) == ["x", "x#2", "x#3"]
    assert [line.split(" ", 3)[3] for line in script.decided()] == [
        "group_created member_joined:x",
        "member_joined:x#2",
        "member_joined:x#3",
    ]
    assert script.last_heartbeats == {"x": T0 + 40, "x#2": T0 + 20, "x#3": T0 + 30}
    # Two ids, four queues: the first place of the id is the first for both.
    assert script.owners(20) == {"t/0": "x+x#2", "t/1": "x+x#2"}
    assert script.findings()[0] == "duplicate_ids 20.."


def test_the_lowest_free_number_is_given_again() -> None:
    script = Script("rocketmq")
    for at, host in ((10, "h1"), (20, "h2"), (30, "h3")):
        script.join(at, "x", host=host)
    script.leave(40, "x#2")
    script.join(50, "x", host="h4")
    script.leave(60, "x")
    script.join(70, "x", host="h5")
    script.run(80)
    assert {name: member.host for name, member in script.group.members.items()} == {
        "x#3": "h3",
        "x#2": "h4",
        "x": "h5",
    }


# ---- static members


def test_a_static_member_under_a_new_id_continues_without_a_rebalance() -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.join(10, "i-1", instance_id="i", client_id="x")
    script.join(10, "j-1", instance_id="j")
    script.join(500, "i-2", instance_id="i", client_id="y")
    script.beat(45_000, "j-1")
    script.run(45_500)
    assert script.decided() == ["10 #1 0->2 group_created member_joined:i-1 member_joined:j-1"]
    assert script.sessions() == ["i-1 10..500 replaced", "i-2 500..", "j-1 10.."]
    assert script.spans() == ["t/0 i-1 10..500", "t/0 i-2 500..", "t/1 j-1 10.."]
    assert script.last_heartbeats["i-2"] == T0 + 500
    script.run(45_501)
    assert script.sessions()[1] == "i-2 500..45500 expired"


def test_a_static_member_that_comes_back_for_other_topics_is_a_subscription_changed() -> None:
    script = Script()
    script.join(10, "i-1", instance_id="i")
    script.join(500, "i-2", ("t", "u"), instance_id="i")
    assert script.run(600).decided()[1:] == ["500 #2 1->1 subscription_changed:i-2"]


def test_static_members_are_recognized_in_polls_without_a_generation() -> None:
    script = Script()
    script.queues(0, "t", 2)
    for at, member in ((10, "i-1"), (20, "i-2"), (30, "k-1")):
        static = {member: {"instance_id": member[0]}}
        script.snapshot(at, None, {member: ["t"], "o": ["t"]}, describe=static)
    script.run(40)
    assert script.decided()[1:] == ["30 #2 2->2 member_gone:i-2 member_joined:k-1"]
    assert script.sessions() == ["i-1 10..20 replaced", "i-2 20..30 absent_from_snapshot", "k-1 30..", "o 10.."]


def test_outside_of_kafka_a_member_of_a_shared_instance_id_is_one_of_its_own() -> None:
    script = Script("rocketmq")
    script.join(10, "a", instance_id="i")
    script.join(20, "b", instance_id="i")
    assert script.run(30).decided()[1:] == ["20 #2 1->2 member_joined:b"]


# ---- late evidence


def test_a_late_goodbye_is_applied_at_the_clock_and_names_its_own_time() -> None:
    script = Script()
    for at, member in ((10, "a"), (20, "b"), (1_000, "c")):
        script.join(at, member, session_timeout_ms=END)
    script.run(2_000)
    script.leave(500, "b")
    script.run(3_000)
    assert script.decided()[-1] == "2000 #4 3->2 member_left:b late_evidence:b"
    detail = "reported late: happened at 2023-11-14T22:13:20.500Z, applied at 2023-11-14T22:13:22.000Z"
    assert script.rebalances[-1].triggers[1].detail == detail
    assert script.findings() == ["events_late 2000.."]
    assert script.run(2_000 + 600_000 + 1).findings() == ["events_late 2000..602000"]


def test_an_event_behind_the_clock_but_not_behind_its_group_is_applied_at_its_own_time() -> None:
    script = Script()
    script.join(10, "a")
    script.join(20, "b")
    script.run(2_000)
    script.leave(500, "b")
    assert script.run(3_000).decided()[-1] == "500 #3 2->1 member_left:b"


def test_what_is_due_beside_something_late_is_not_lost_while_the_clock_stays() -> None:
    script = Script()
    script.join(10, "a")
    script.join(500, "b")
    script.run(1_000)
    script.join(400, "c", event_id="late")
    script.leave(700, "b")
    script.run(1_000).run(3_000)
    assert script.decided()[-1] == "1000 #3 2->2 member_left:b member_joined:c late_evidence:c"


def test_late_heartbeats_that_prove_an_expiry_wrong_reopen_the_session() -> None:
    script = Script()
    script.join(10, "a")
    script.join(10, "b")
    for at in (20_000, 40_000, 60_000):
        script.beat(at, "b")
    script.run(60_001)
    assert script.decided()[-1] == "45010 #2 2->1 session_expired:a"
    script.beat(44_000, "a")
    script.run(60_002)
    assert script.decided()[-1] == "60001 #3 1->2 member_joined:a late_evidence:a"
    assert script.sessions() == ["a 10..", "b 10.."]
    assert script.last_heartbeats["a"] == T0 + 44_000
    assert script.run(89_001).sessions()[0] == "a 10..89000 expired"


def test_when_the_renewed_deadline_has_passed_too_only_the_session_is_corrected() -> None:
    script = Script()
    script.join(10, "a")
    script.run(200_000)
    script.beat(30_000, "a")
    script.run(200_001)
    assert script.decided() == ["10 #1 0->1 group_created member_joined:a", "45010 #2 1->0 session_expired:a"]
    assert script.sessions() == ["a 10..75000 expired"]


def test_late_heartbeats_with_a_description_prove_as_much_as_bare_ones() -> None:
    script = Script()
    script.join(10, "a")
    script.run(120_000)
    for at in (30_000, 60_000, 90_000):
        script.beat(at, "a", host="10.0.0.7")
    script.run(120_001)
    assert script.decided()[2:] == ["120000 #3 0->1 member_joined:a late_evidence:a"]
    assert script.sessions() == ["a 10.."]
    assert script.run(135_001).sessions() == ["a 10..135000 expired"]


@pytest.mark.parametrize(("at", "ends"), [(9, 45_010), (11, 45_011), (45_009, 90_009)])
def test_a_member_that_is_described_within_its_session_was_alive(at: int, ends: int) -> None:
    script = Script()
    script.join(10, "a")
    script.run(200_000)
    script.join(at, "a", client_id="x")
    assert script.run(200_001).sessions() == [f"a 10..{ends} expired"]


def test_the_description_in_a_late_heartbeat_applies_when_its_session_continues() -> None:
    script = Script()
    script.queues(0, "u", 1)
    script.join(10, "a")
    script.run(50_000)
    script.beat(30_000, "a", subscriptions=("t", "u"))
    script.run(50_001)
    assert script.decided()[-1] == "50000 #3 0->1 member_joined:a subscription_changed:a late_evidence:a"
    assert script.owners(50_000) == {"u/0": "a"}


def test_a_resumed_session_ends_by_the_timeout_that_its_member_had_then() -> None:
    script = Script()
    script.join(10, "a")
    script.run(50_000)
    script.beat(30_000, "a")
    script.join(60_000, "a", session_timeout_ms=10_000)
    script.join(80_000, "a")  # not before the renewed deadline
    assert script.run(81_000).sessions() == ["a 10..70000 expired", "a 80000.."]


def test_a_late_departure_of_a_member_that_was_alive_later_changes_nothing() -> None:
    script = Script()
    script.join(10, "a")
    script.join(1_000, "b")
    script.beat(900, "a")
    script.run(2_000)
    script.leave(500, "a")
    assert len(script.run(3_000).decided()) == 2


# ---- findings


# ---- the law


_TIMES = st.integers(0, 40).map(lambda n: n * 100)
_MEMBERS = st.sampled_from(["a", "b", "c"])
_TOPICS = st.sampled_from([(), ("t",), ("t", "u")])
_INSTANCES = st.sampled_from([None, None, "i"])
_HISTORIES = st.lists(
    st.one_of(
        st.tuples(
            st.just("join"), _TIMES, _MEMBERS, _TOPICS, st.sampled_from([("range",), ("roundrobin",)]), _INSTANCES
        ),
        st.tuples(st.just("beat"), _TIMES, _MEMBERS),
        st.tuples(st.just("describe"), _TIMES, _MEMBERS, _TOPICS, st.sampled_from([None, "h1", "h2"])),
        st.tuples(st.just("leave"), _TIMES, _MEMBERS),
        st.tuples(st.just("queues"), _TIMES, st.sampled_from(["t", "u"]), st.integers(0, 5)),
        st.tuples(st.just("settings"), _TIMES, st.sampled_from(["broadcasting", "clustering"])),
        st.tuples(st.just("delete"), _TIMES),
        st.tuples(st.just("poll"), _TIMES, st.sets(_MEMBERS), _TOPICS, _INSTANCES),
        st.tuples(st.just("generation"), _TIMES, st.integers(0, 6), st.sets(_MEMBERS), st.integers(0, 4)),
        st.tuples(st.just("holds"), _TIMES, _MEMBERS, st.integers(0, 4), st.sampled_from([None, 1, 2, 3])),
        st.tuples(st.just("commit"), _TIMES, st.integers(0, 4)),
    ),
    max_size=25,
)


def _feed(script: Script, history: list[tuple[Any, ...]]) -> None:
    for kind, at, *rest in history:
        if kind == "join":
            script.join(at, rest[0], rest[1], strategies=rest[2], instance_id=rest[3], session_timeout_ms=1_000)
        elif kind == "beat":
            script.beat(at, rest[0])
        elif kind == "describe":
            script.beat(at, rest[0], subscriptions=rest[1], host=rest[2])
        elif kind == "leave":
            script.leave(at, rest[0])
        elif kind == "queues":
            script.queues(at, rest[0], rest[1])
        elif kind == "settings":
            script.settings(at, mode=rest[0])
        elif kind == "delete":
            script.delete(at)
        elif kind == "poll":
            members = sorted(rest[0])
            describe = {members[-1]: {"instance_id": rest[2]}} if members else {}
            script.snapshot(at, None, dict.fromkeys(members, rest[1]), describe=describe)
        elif kind == "generation":
            members = sorted(rest[1])
            held = {m: [("t", n) for n in range(rest[2]) if n % len(members) == i] for i, m in enumerate(members)}
            script.snapshot(at, rest[0], dict.fromkeys(members, ("t",)), held, strategy="range")
        elif kind == "holds":
            script.holds(at, rest[0], [("t", rest[1])], generation=rest[2])
        elif kind == "commit":
            script.commit(at, "t", rest[0])


@settings(max_examples=600)
@given(history=_HISTORIES, cuts=st.sets(st.integers(0, 4_200), max_size=12), settle_ms=st.sampled_from([0, 150]))
@example(history=[("join", 0, "a", ("t",), ("range",), None), ("leave", 0, "a")], cuts={0, 1}, settle_ms=150)
@example(
    history=[
        ("join", 0, "a", (), ("range",), None),
        ("join", 0, "a", (), ("range",), None),
        ("join", 100, "a", (), ("range",), "i"),
        ("poll", 100, {"b"}, (), "i"),
    ],
    cuts=set(),
    settle_ms=0,
)
def test_how_the_events_were_cut_into_batches_leaves_no_trace(
    history: list[tuple[Any, ...]], cuts: set[int], settle_ms: int
) -> None:
    whole, cut = Script(settle_ms=settle_ms, forget_after_ms=2_000), Script(settle_ms=settle_ms, forget_after_ms=2_000)
    for script in (whole, cut):
        _feed(script, history)
    whole.run(5_000)
    for number, clock in enumerate([*sorted(cuts), 5_000]):
        cut.run(clock, batch_ms=number)
    ours = [msgspec.structs.replace(row, detected_at=0) for row in cut.rebalances]
    assert ours == whole.rebalances
    assert cut.written == whole.written
    assert cut.last.wake_at == whole.last.wake_at
    assert cut.last_heartbeats == whole.last_heartbeats
    # What is written fits into tables: no span opens twice, none ends before it began.
    for origin in ("computed", "reported"):
        whole.spans(origin)
    whole.sessions()


@settings(max_examples=150)
@given(batches=st.lists(st.tuples(_HISTORIES, st.integers(0, 1_500)), max_size=5))
@example(
    batches=[
        (
            [
                ("poll", 3_900, set(), (), None),
                ("delete", 0),
                ("describe", 3_900, "b", (), "h2"),
                ("join", 3_400, "b", (), ("range",), None),
            ],
            0,
        ),
        ([("join", 3_900, "b", (), ("range",), None)], 0),
    ]
)
def test_however_late_events_come_the_tables_hold_together(
    batches: list[tuple[list[tuple[Any, ...]], int]],
) -> None:
    """No span and no session opens twice, none ends before it began, and what stands is what the group knows."""
    script, clock = Script(forget_after_ms=2_000), 0
    for history, step in batches:
        _feed(script, history)
        clock += step
        script.run(clock)
    script.run(clock + 10_000)
    script.sessions()
    script.findings()
    for origin, owners in (("computed", script.group.computed), ("reported", script.group.reported)):
        current = {span.split(" ")[0] for span in script.spans(origin) if span.split(" ")[2].endswith("..")}
        assert current == {f"{topic}/{queue}" for topic, _, queue in owners}
    times = [row.event_time for row in script.rebalances]
    assert times == sorted(times)
    assert len({row.rebalance_id for row in script.rebalances}) == len(times)
    numbers = [change.number for change in script.written]
    assert numbers == list(range(1, len(numbers) + 1))
