"""The strategies here against the real Java classes, warmed up, on the same groups, in one run.

`python -m bench.strategies [PART OF A NAME]` prints a line for each strategy and group: our time, Java's, the ratio.

Both compute the same allocation repeatedly. Before Java's time is taken, its image of the topics is there, its
message queues are made and sorted, and the target assignment before is a map of sets. Here a topic keeps the names of
its queues once they are made; what members owned before is read in each call. The ratio is that of such calls. What a
first call takes, one that makes the names as well, is printed beside it.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from streaming.allocation.cases import Case as AllocationCase
from streaming.allocation.cases import answer_case, read_problem
from tests.kit.oracles import ORACLES, Oracle, Running
from udfs.strategies.problem import Problem
from udfs.strategies.registry import strategy

# Newest jars of each system; a vote takes no time worth measuring.
_JARS = ("rocketmq-client-5.5.0", "metamorphosis-client-1.4.6.2", "kafka-4.1.1")
_OURS_BUDGET_S = 3.0
_OURS_REPEATS = (2, 40)
_FIRST_REPEATS = 5
_JAVA_BUDGET_S = 6.0
_JAVA_REPEATS = (4, 40)
# Java has so long for two calls.
_LIMIT_MS = 60_000
_OWNED = ("kafka.sticky", "kafka.cooperative-sticky", "kafka.server.uniform")


class Group(NamedTuple):
    """One group to allocate."""

    name: str
    members: int
    topics: int
    queues: int
    mixed: bool = False
    incremental: bool = False


def groups(name: str) -> Iterator[Group]:
    """Return the groups that a strategy is measured on."""
    fresh = [
        Group("100 × 1,000", 100, 1, 1_000),
        Group("1,000 × 10,000", 1_000, 1, 10_000),
        Group("2,000 × 2,000 × 10", 2_000, 2_000, 10),
    ]
    yield from fresh
    if name.startswith("kafka."):
        yield fresh[2]._replace(name="the same, mixed", mixed=True)
    if name in _OWNED:
        yield from (each._replace(name=f"{each.name}, one left, three joined", incremental=True) for each in fresh)
        yield fresh[2]._replace(name="the same, mixed, one left, three joined", mixed=True, incremental=True)


def case_of(name: str, group: Group) -> dict[str, Any]:
    """Make the question, in the form of ``allocate``'s input."""
    system = name.split(".", 1)[0]
    topics: dict[str, Any] = {}
    for number in range(group.topics):
        if system == "kafka":
            topics[f"topic-{number:05}"] = {"queue_count": group.queues}
        else:
            topics[f"topic-{number:05}"] = {
                "queues": [{"broker": f"room1@b{queue % 4}", "queue_id": queue // 4} for queue in range(group.queues)]
            }
    ids = [f"room1@consumer-{number * 7919 % 100_003:06}" for number in range(group.members)]
    members = [_member(number, member_id, topics, group) for number, member_id in enumerate(ids)]
    case = {
        "strategy": name,
        "group": "g",
        "members": members,
        "topics": topics,
        "settings": {"rooms": ["room1"], "machines": ["room1"], "queues": []},
    }
    return _after_a_change(case, topics, group) if group.incremental else case


def _member(number: int, member_id: str, topics: dict[str, Any], group: Group) -> dict[str, Any]:
    names = list(topics)
    if group.mixed:
        # Each member leaves out a tenth of the topics, another one than its neighbour.
        names = [name for place, name in enumerate(names) if (place + number) % 10]
    return {"member_id": member_id, "subscriptions": names}


def _after_a_change(case: dict[str, Any], topics: dict[str, Any], group: Group) -> dict[str, Any]:
    held = answer_case(msgspec.convert(case, AllocationCase)).assignments
    members = [
        {
            **member,
            "generation": 1,
            "owned": [{"topic": queue.topic, "queue_id": queue.queue_id} for queue in held[member["member_id"]]],
        }
        for member in case["members"][1:]
    ]
    members += [_member(group.members + number, f"room1@new-{number}", topics, group) for number in range(3)]
    return {**case, "members": members}


class Ours(NamedTuple):
    """The medians of our calls, in seconds."""

    first: float
    later: float


def our_times(name: str, case: AllocationCase) -> Ours:
    """Measure first calls with new problems, and later calls with the same one."""
    answer = strategy(name, name.split(".", 1)[0])

    def called(problem: Problem) -> float:
        start = time.perf_counter()
        answer(problem)
        return time.perf_counter() - start

    # As timeit does: collections of what others made are not ours to pay.
    gc.collect()
    gc.disable()
    try:
        problem = read_problem(case)
        firsts = [called(problem)]
        while len(firsts) < _FIRST_REPEATS and sum(firsts) < _OURS_BUDGET_S:
            firsts.append(called(read_problem(case)))
        laters: list[float] = []
        least, most = _OURS_REPEATS
        while len(laters) < least or (len(laters) < most and sum(laters) < _OURS_BUDGET_S):
            laters.append(called(problem))
    finally:
        gc.enable()
    return Ours(statistics.median(firsts), statistics.median(laters))


def java_time_s(running: Running, case: dict[str, Any]) -> float | None:
    """Return the median of Java's calls after as many to warm up; None where two take longer than the limit."""
    once = running.time_ns(case, 2)
    if once is None:
        return None
    repeats = int(max(_JAVA_REPEATS[0], min(_JAVA_REPEATS[1], _JAVA_BUDGET_S / max(once / 1e9, 1e-6))))
    # Four more calls of what takes so long would prove nothing more.
    measured = running.time_ns(case, repeats) if once < _JAVA_BUDGET_S * 1e9 else once
    return None if measured is None else measured / 1e9


def measure(oracle: Oracle, name: str) -> None:
    """Measure one strategy on each of its groups; print how both times grow from one size to the next."""
    before: dict[tuple[bool, bool], tuple[float, float]] = {}
    for group in groups(name):
        case = case_of(name, group)
        first, ours = our_times(name, msgspec.convert(case, AllocationCase))
        with Running(oracle, _LIMIT_MS) as running:
            java = java_time_s(running, case)
        theirs, ratio, growth = f"> {_LIMIT_MS / 2:8.0f}", f"< {ours / _LIMIT_MS * 2e3:6.4f}", ""
        if java is not None:
            theirs, ratio = f"{java * 1e3:10.2f}", f"{ours / java:8.4f}"
            kind = (group.mixed, group.incremental)
            if kind in before:
                growth = f"   ours × {ours / before[kind][0]:.1f}, Java × {java / before[kind][1]:.1f}"
            before[kind] = (ours, java)
        line = f"ours {ours * 1e3:9.2f} ms (first {first * 1e3:9.2f})   Java {theirs} ms   ratio {ratio}{growth}"
        print(f"{name:30} {group.name:42} {line}")
        sys.stdout.flush()


def main() -> None:
    """Measure what the argument names; everything without one."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    for oracle in ORACLES:
        for name in oracle.strategies:
            if oracle.jars in _JARS and wanted in name and name != "kafka.vote":
                measure(oracle, name)


if __name__ == "__main__":
    main()
