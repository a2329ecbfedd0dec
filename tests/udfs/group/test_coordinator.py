"""Counted generations: who is a member, what is a rebalance, and that batches leave no trace."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.udfs.group.group_script import Script

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
def test_results_do_not_depend_on_how_events_are_cut_into_batches(
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
