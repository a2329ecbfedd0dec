"""For how long queues stand still where members take them over by themselves: seen, else estimated."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from tests.udfs.group.group_script import T0, Script
from udfs.group.state.group import MAX_IDLE_QUEUES
from udfs.model.events import AssignmentReported, Departure, HeldQueue, Observation
from udfs.model.spans import QueueAssigned, QueueResumed

A, B = [("t", 0), ("t", 1)], [("t", 2), ("t", 3)]


def pair(system: str = "rocketmq", **described: Any) -> Script:
    """AVG gives a the queues 0 and 1, b 2 and 3, and so they hold them, long since."""
    script = Script(system)
    script.queues(0, "t", 4)
    script.snapshot(10, None, {"a": ["t"], "b": ["t"]}, describe={"a": described, "b": described})
    script.holds(1_000, "a", A, dict.fromkeys(A, 900))
    script.holds(1_000, "b", B, dict.fromkeys(B, 900))
    return script


def pauses(script: Script, since: int) -> list[str]:
    """Return what reported spans show: time, queue, owner: observed/estimated; ``+`` what was observed only later."""
    reported = []
    for change in script.changes:
        body = change.body
        if change.event_time < T0 + since:
            continue
        if isinstance(body, QueueAssigned) and body.origin == "reported":
            reported.append(
                f"{change.event_time - T0} {body.queue_id} {body.member_id}: {body.pause_ms}/{body.pause_estimated_ms}"
            )
        if isinstance(body, QueueResumed):
            reported.append(f"{change.event_time - T0} {body.queue_id} {body.member_id}: +{body.pause_ms}")
    return reported


def row(script: Script) -> tuple[int | None, int | None, int | None, int | None]:
    last = script.rebalances[-1]
    return last.pause_ms, last.queue_pause_ms, last.pause_estimated_ms, last.queue_pause_estimated_ms


def expired(member: str, at: int) -> tuple[Departure, ...]:
    return (Departure(member_id=member, kind="expired", at=T0 + at),)


def test_a_new_owners_first_pull_ends_what_the_departure_of_the_old_one_began() -> None:
    script = pair()
    departures = (Departure(member_id="b", kind="left", at=T0 + 99_000),)
    script.poll(100_000, "a", departures=departures)
    script.holds(103_000, "a", A + B, {("t", 2): 101_500, ("t", 3): 102_000})
    script.run(110_000)
    assert pauses(script, 100_000) == ["103000 2 a: 2500/None", "103000 3 a: 3000/None"]


def test_it_is_the_report_without_the_queue_however_young_the_last_pull_is() -> None:
    script = pair()
    # What arrived after this pull was given to b at once: the broker held it.
    script.holds(99_000, "b", B, dict.fromkeys(B, 98_000))
    script.poll(100_000, "a", "b", "c")
    script.holds(101_000, "b", [("t", 2)])
    script.holds(121_000, "c", [("t", 3)], {("t", 3): 120_000})
    script.run(130_000)
    assert pauses(script, 100_000) == ["121000 3 c: 19000/None"]


def test_a_member_that_hung_released_its_queues_with_its_last_pull() -> None:
    script = pair()
    script.holds(99_000, "b", B, {("t", 2): 98_000})
    script.poll(225_000, "a", departures=expired("b", 224_000))
    script.holds(240_000, "a", A + B, dict.fromkeys(B, 238_000))
    script.run(250_000)
    # Of queue 3 nothing is known but a pull before it hung, too long ago to be the last.
    assert pauses(script, 225_000) == [f"240000 2 a: {238_000 - 98_000}/None", "240000 3 a: 14000/None"]


def test_a_queue_that_was_taken_and_not_read_is_resumed_when_it_is_read() -> None:
    script = pair()
    script.poll(100_000, "a", departures=(Departure(member_id="b", kind="left", at=T0 + 99_000),))
    script.holds(100_500, "a", A + B, {("t", 2): 100_200})
    script.holds(105_000, "a", A + B, {("t", 2): 104_000, ("t", 3): 103_500})
    script.holds(110_000, "a", A + B, dict.fromkeys(B, 109_000))
    script.run(120_000)
    assert pauses(script, 100_000) == [
        "100500 2 a: 1200/None",
        "100500 3 a: None/1000",
        "105000 3 a: +4500",
    ]
    assert script.group.idle_queues == {}


def test_a_handover_between_two_polls_is_estimated() -> None:
    script = pair(client_version="4.9.7")
    script.holds(99_000, "b", B, dict.fromkeys(B, 98_000))
    script.poll(100_000, "a", "b", "c")
    # Its old owner is not seen without it before the new one has it.
    script.holds(101_000, "c", [("t", 3)], {("t", 3): 100_500})
    script.holds(101_000, "b", [("t", 2)])
    script.run(130_000)
    assert pauses(script, 100_000) == ["101000 3 c: None/1000"]  # c reported no version


def test_a_queue_read_before_its_release_was_observed_is_estimated_once_and_for_all() -> None:
    script = pair()
    script.poll(100_000, "a")
    script.holds(100_010, "a", A + B, dict.fromkeys(B, 98_500))
    # A later pull is not its first.
    script.holds(105_010, "a", A + B, dict.fromkeys(B, 105_000))
    script.run(130_000)
    assert pauses(script, 100_000) == ["100010 2 a: None/1000", "100010 3 a: None/1000"]
    assert script.group.idle_queues == {}


def test_the_takers_version_decides_what_is_estimated() -> None:
    script = pair(client_version="4.9.7")
    script.poll(100_000, "a")
    script.holds(101_000, "a", A + B)
    script.run(110_000)
    assert row(script) == (None, None, 0, 0)
    assert pauses(script, 100_000) == ["101000 2 a: None/0", "101000 3 a: None/0"]


@pytest.mark.parametrize(
    ("described", "kind", "whole", "queues"),
    [
        ({"client_version": "V5_5_0"}, "left", 1_000, 2_000),
        ({"client_version": "V5_5_0"}, "expired", 11_000, 22_000),
        ({"client_version": "4.9.7"}, "expired", 10_000, 20_000),
        ({"client_version": "4.9.7", "ordered": True}, "gone", 60_000, 120_000),
        ({"client_version": "V5_5_0", "ordered": True}, "left", 1_000, 2_000),
    ],
)
def test_a_rebalance_is_estimated_by_how_its_members_learn(
    described: dict[str, Any], kind: Any, whole: int, queues: int
) -> None:
    script = pair(**described)
    script.poll(100_000, "a", departures=(Departure(member_id="b", kind=kind),))
    script.run(110_000)
    assert row(script) == (None, None, whole, queues)


def test_an_event_time_that_shows_all_of_a_rebalance_measures_it() -> None:
    script = pair()
    script.poll(100_000, "a", departures=(Departure(member_id="b", kind="left", at=T0 + 95_000),))
    script.holds(100_000, "a", A + B, {("t", 2): 96_000, ("t", 3): 99_500})
    script.run(110_000)
    assert row(script) == (4_500, 1_000 + 4_500, None, None)
    assert script.rebalances[-1].agrees is True
    assert pauses(script, 100_000) == ["100000 2 a: 1000/None", "100000 3 a: 4500/None"]


def test_metaqs_owner_nodes_are_the_owning_itself() -> None:
    script = Script("metaq")
    script.queues(0, "t", 2)
    both, owned = {"a": ["t"], "b": ["t"]}, {"a": [("t", 0)], "b": [("t", 1)]}
    script.snapshot(10, None, both, owned)
    script.snapshot(50_000, None, {"a": ["t"]}, {"a": [("t", 0)]}, departures=expired("b", 49_900))
    script.snapshot(51_200, None, {"a": ["t"]}, {"a": [("t", 0), ("t", 1)]})
    script.run(60_000)
    assert row(script) == (None, None, 1_000, 1_000)
    assert pauses(script, 50_000) == ["51200 1 a: 1300/None"]


def test_metaqs_owners_may_report_since_when() -> None:
    script = Script("metaq")
    script.queues(0, "t", 2)
    script.poll(10, "a", "b")
    script.holds(20, "a", [("t", 0)])
    script.holds(20, "b", [("t", 1)])
    script.poll(50_000, "a", departures=expired("b", 49_000))
    owned = (HeldQueue("t", 0), HeldQueue("t", 1, held_since=T0 + 49_700))
    script.event(AssignmentReported, 52_000, member_id="a", queues=owned)
    script.run(60_000)
    assert pauses(script, 50_000) == ["52000 1 a: 700/None"]


def test_a_whole_assignment_of_one_event_time_measures_only_what_it_shows() -> None:
    script = Script("metaq")
    script.queues(0, "t", 2)
    both, owned = {"a": ["t"], "b": ["t"]}, {"a": [("t", 0)], "b": [("t", 1)]}
    script.snapshot(10, None, both, owned)
    # When a let go and when b took over lies between the two polls.
    script.snapshot(50_000, None, both, {"a": [], "b": [("t", 0), ("t", 1)]})
    script.snapshot(60_000, None, {"b": ["t"]}, {"b": [("t", 0), ("t", 1)]})
    script.run(70_000)
    assert pauses(script, 50_000) == ["50000 0 b: None/None"]
    # What should have moved, before, did by then.
    assert row(script) == (None, None, 1_000, 1_000)


def test_a_queue_that_comes_back_to_its_owner_stood_still_meanwhile() -> None:
    script = pair()
    script.holds(50_000, "b", [("t", 2)])
    script.holds(60_000, "b", B, {("t", 3): 59_000})
    script.run(70_000)
    assert pauses(script, 40_000) == ["60000 3 b: 9000/None"]


def test_so_many_queues_stand_still_at_once_and_those_of_no_topic_are_forgotten() -> None:
    count = MAX_IDLE_QUEUES + 10
    script = Script("rocketmq")
    script.queues(0, "t", count)
    script.poll(10, "a")
    script.holds(20, "a", [("t", number) for number in range(count)])
    script.holds(1_000, "a", [])
    script.run(2_000)
    assert len(script.group.idle_queues) == MAX_IDLE_QUEUES
    script.queues(3_000, "t", 3)
    script.run(4_000)
    assert len(script.group.idle_queues) == 3


# ---- the law

_TIMES = st.integers(0, 24).map(lambda n: n * 5_000)
_MEMBERS = st.sampled_from(["a", "b", "c"])
_HELD = st.dictionaries(
    st.integers(0, 3).map(lambda n: ("t", n)), st.none() | st.sampled_from([0, -3_000, -40_000, 1_000]), max_size=4
)
_DEPARTURES = st.lists(
    st.tuples(_MEMBERS, st.sampled_from(["left", "expired", "gone"]), st.sampled_from([None, 0, -2_000])), max_size=2
)
_OBSERVED = st.none() | st.sets(st.sampled_from(["brokers_disagree", "idle_members", "x"]), max_size=2)
_HISTORIES = st.lists(
    st.one_of(
        st.tuples(st.just("poll"), _TIMES, st.sets(_MEMBERS), _DEPARTURES, _OBSERVED),
        st.tuples(st.just("holds"), _TIMES, _MEMBERS, _HELD, st.sampled_from([None, "h"])),
        st.tuples(st.just("reported"), _TIMES, st.sets(_MEMBERS, min_size=1), st.integers(0, 4)),
        st.tuples(st.just("class"), _TIMES, _MEMBERS, st.sampled_from(["AVG", "AVG_BY_CIRCLE", "com.example.X"])),
        st.tuples(st.just("queues"), _TIMES, st.integers(0, 4)),
        st.tuples(st.just("settings"), _TIMES, st.sampled_from(["broadcasting", "clustering"])),
        st.tuples(st.just("delete"), _TIMES),
    ),
    max_size=25,
)


def _feed(script: Script, history: list[tuple[Any, ...]]) -> None:
    script.queues(0, "t", 4)
    for kind, at, *rest in history:
        if kind == "poll":
            members, departures, observed = rest
            script.poll(
                at,
                *sorted(members),
                departures=tuple(
                    Departure(member_id=member, kind=how, at=None if ago is None else T0 + at + ago)
                    for member, how, ago in departures
                ),
                observations=None if observed is None else tuple(Observation(kind=one) for one in sorted(observed)),
            )
        elif kind == "holds":
            pulls = {queue: at + ago for queue, ago in rest[1].items() if ago is not None}
            script.holds(at, rest[0], rest[1], pulls, host=rest[2])
        elif kind == "reported":
            members = sorted(rest[0])
            held = {m: [("t", n) for n in range(rest[1]) if n % len(members) == i] for i, m in enumerate(members)}
            script.snapshot(at, None, dict.fromkeys(members, ("t",)), held)
        elif kind == "class":
            script.beat(at, rest[0], strategies=(rest[1],), subscriptions=("t",), session_timeout_ms=30_000)
        elif kind == "queues":
            script.queues(at, "t", rest[0])
        elif kind == "settings":
            script.settings(at, mode=rest[0])
        else:
            script.delete(at)


@settings(max_examples=300)
@given(
    history=_HISTORIES,
    cuts=st.sets(st.integers(0, 130_000), max_size=12),
    system=st.sampled_from(["rocketmq", "metaq"]),
    settle_ms=st.sampled_from([0, 7_000]),
)
def test_how_the_events_were_cut_into_batches_leaves_no_trace(
    history: list[tuple[Any, ...]], cuts: set[int], system: str, settle_ms: int
) -> None:
    rules = {"settle_ms": settle_ms, "forget_after_ms": 60_000}
    whole, cut = Script(system, **rules), Script(system, **rules)
    for script in (whole, cut):
        _feed(script, history)
    whole.run(300_000)
    for number, clock in enumerate([*sorted(cuts), 300_000]):
        cut.run(clock, batch_ms=number)
    assert [msgspec.structs.replace(one, detected_at=0) for one in cut.rebalances] == whole.rebalances
    assert cut.written == whole.written
    assert (cut.last.wake_at, cut.group) == (whole.last.wake_at, whole.group)
    for script in (whole, cut):
        script.spans("computed")
        script.spans("reported")
        script.sessions()
        script.findings()
    for reported in whole.rebalances:
        assert (reported.queue_pause_ms is None) or reported.queue_pause_estimated_ms is None
        assert all(value is None or value >= 0 for value in (reported.pause_ms, reported.queue_pause_ms))
    for change in whole.changes:
        if isinstance(change.body, QueueAssigned | QueueResumed) and change.body.pause_ms is not None:
            assert change.body.pause_ms >= 0
