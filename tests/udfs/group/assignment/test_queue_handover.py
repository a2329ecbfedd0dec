"""For how long queues stand still where members take them over by themselves: seen, else estimated."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
from hypothesis import given, settings

from tests.udfs.group.group_script import T0, Script
from udfs.group.state.group import MAX_IDLE_QUEUES
from udfs.model.events import AssignmentReported, Departure, HeldQueue, Observation
from udfs.model.spans import QueueAssigned, QueueResumed


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


def expired(member: str, at: int) -> tuple[Departure, ...]:
    return (Departure(member_id=member, kind="expired", at=T0 + at),)


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
                observations=None
                if observed is None
                else tuple(Observation(kind=observed_kind) for observed_kind in sorted(observed)),
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
def test_results_do_not_depend_on_how_events_are_cut_into_batches(
    history: list[tuple[Any, ...]], cuts: set[int], system: str, settle_ms: int
) -> None:
    rules = {"settle_ms": settle_ms, "forget_after_ms": 60_000}
    whole, cut = Script(system, **rules), Script(system, **rules)
    for script in (whole, cut):
        _feed(script, history)
    whole.run(300_000)
    for number, clock in enumerate([*sorted(cuts), 300_000]):
        cut.run(clock, batch_ms=number)
    assert [msgspec.structs.replace(row, detected_at=0) for row in cut.rebalances] == whole.rebalances
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
