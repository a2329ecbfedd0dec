"""Compares the strategies with the real classes over fresh random cases: `python -m tests.kit.differential CASES`.

The real classes are Java's, and those of kafka-python and aiokafka.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from streaming.allocation.cases import Case as AllocationCase
from streaming.allocation.cases import answer_case
from tests.kit.allocation_cases import CHAIN_STEPS, CHAINED, Case, next_case, random_case
from tests.kit.oracles import LIMIT_MS, ORACLES, Oracle, OracleResult, Running
from tests.kit.python_assignors import (
    PYTHON_ORACLES,
    PythonOracle,
    RunningInProcess,
    claims_two_generations,
    for_library,
    is_answered_under_a_seed,
)
from udfs.strategies.kafka.coordinator_release import assigns_in_rounds

_BATCH = 500
# A real class that has not ended after this many times its slowest ended case is taken not to end.
_PAST_FACTOR = 10
# What each exception of the real classes is called here.
ERROR_CODES = {
    "java.lang.IllegalArgumentException": {"illegal_argument", "no_common_strategy"},
    "java.lang.IllegalStateException": {"illegal_state", "no_members"},
    "java.lang.NullPointerException": {"null_pointer"},
    "java.lang.ArrayIndexOutOfBoundsException": {"array_index_out_of_bounds"},
    "org.apache.kafka.coordinator.group.api.assignor.PartitionAssignorException": {"partition_assignor"},
    # Kafka 1.0 reduces over no members.
    "java.lang.UnsupportedOperationException": {"no_members"},
    # Kafka 1.0 asserts that a member lists something.
    "java.lang.AssertionError": {"no_common_strategy"},
}

Held = dict[str, list[tuple[str, str, int]]]


class Ours(NamedTuple):
    """What the strategies here say, in the form of ``OracleResult``."""

    held: Held | None
    strategy: str | None
    error: tuple[str, str] | None


def our_answer(case: Case) -> Ours:
    """Return a case as the command ``allocate`` does."""
    answer = answer_case(msgspec.convert(case, AllocationCase))
    if answer.error is not None:
        return Ours(None, answer.strategy, (answer.error.code, answer.error.message))
    held = {
        member: sorted((queue.topic, queue.broker or "", queue.queue_id) for queue in queues)
        for member, queues in answer.assignments.items()
    }
    return Ours(held, answer.strategy, None)


def agrees(ours: Ours, real: OracleResult) -> bool:
    """Whether both gave the same queues to the same members, or failed for the same reason."""
    if real.past:
        return ours.error is not None and ours.error[0] == "does_not_end"
    if real.error is not None:
        if ours.error is None:
            return False
        if (ours.strategy or "").startswith("rocketmq."):
            # Clients ask topic by topic: which of two failing topics is asked first is nobody's promise.
            return {ours.error[0]} <= ERROR_CODES.get(real.error, set()) | {"illegal_argument", "null_pointer"}
        return ours.error[0] in ERROR_CODES.get(real.error, set())
    if real.text is not None:
        # The winner counts, whether or not it is a strategy that is known here.
        return ours.strategy == f"kafka.{real.text}"
    return ours.error is None and ours.held == real.held


def for_oracle(oracle: Oracle, case: Case) -> Case:
    """Report the strategies here which version the oracle is."""
    settings = dict(case.get("settings", {}))
    if oracle.program == "KafkaOldAssignors":
        settings["library"] = "java-1.0"
    elif oracle.jars.startswith("kafka-clients-"):
        settings["library"] = oracle.jars.replace("kafka-clients", "java")
    elif oracle.program == "KafkaVoteOld":
        settings["tie_order"] = "1.0"
    elif oracle.program == "KafkaServerAssignors":
        settings["coordinator"] = oracle.jars.removeprefix("kafka-")
        if not assigns_in_rounds(settings):
            case = {**case, "members": _without_repeated_claims(case["members"])}
    return {**case, "settings": settings}


def _without_repeated_claims(members: Sequence[Case]) -> list[Case]:
    """Return members of which no two claim a partition: no coordinator gives one to two members."""
    claimed: set[tuple[str, int]] = set()
    found = []
    for member in members:
        owned = [queue for queue in member.get("owned") or () if (queue["topic"], queue["queue_id"]) not in claimed]
        claimed |= {(queue["topic"], queue["queue_id"]) for queue in owned}
        found.append({**member, "owned": owned} if "owned" in member else member)
    return found


def batches(oracle: Oracle, strategy: str, cases: int, rng: random.Random) -> Iterator[tuple[list[Case], list[Ours]]]:
    """Make cases, in chains where owned queues count: each answer is owned in the next step."""
    steps = CHAIN_STEPS if strategy in CHAINED else 1
    made = 0
    while made < cases:
        batch = [for_oracle(oracle, random_case(rng, strategy)) for _ in range(min(_BATCH, cases - made))]
        for step in range(steps):
            ours = [our_answer(case) for case in batch]
            yield batch, ours
            made += len(batch)
            if step + 1 < steps:
                batch = [
                    for_oracle(oracle, next_case(rng, case, answer.held))
                    for case, answer in zip(batch, ours, strict=True)
                    if answer.held is not None and case["members"]
                ]


def compare(oracle: Oracle, strategy: str, cases: int, seed: int) -> int:
    """Compare one strategy with one set of jars; print and return the number of differences."""
    rng = random.Random(f"{seed} {oracle.jars} {strategy}")
    start = time.monotonic()
    done = differences = failures = without_end = 0
    slowest_ms = 0.0
    past: list[Case] = []
    with Running(oracle) as running:
        for batch, answers in batches(oracle, strategy, cases, rng):
            for case, ours, real in zip(batch, answers, running.allocate(batch), strict=True):
                done += 1
                failures += real.error is not None
                if real.past:
                    past.append(case)
                    continue
                slowest_ms = max(slowest_ms, real.micros / 1000)
                if not agrees(ours, real):
                    differences += 1
                    if differences <= 3:
                        _print(f"  difference in {json.dumps(case)}\n    ours {ours}\n    real {real}")
    for case in past:
        # Asked again, alone and for as long as proves that it does not end.
        limit_ms = max(LIMIT_MS, int(_PAST_FACTOR * slowest_ms))
        with Running(oracle, limit_ms) as running:
            (real,) = running.allocate([case])
        if real.past:
            _print(f"  has not ended after {limit_ms} ms: {json.dumps(case)}")
        without_end += real.past
        differences += not agrees(our_answer(case), real)
    seconds = time.monotonic() - start
    _print(
        f"{oracle.jars:30} {strategy:30} {done:8} cases {differences:4} differences "
        f"{failures:6} errors {without_end:3} without end {seconds:6.0f} s"
    )
    return differences


def compare_python(oracle: PythonOracle, strategy: str, cases: int, seed: int) -> int:
    """Compare one strategy with a Python library; print and return the number of differences.

    A case in which its leader fails has no answer, and one that the library answers in any order, none to compare.
    """
    rng = random.Random(f"{seed} {oracle.package} {strategy}")
    done = differences = failures = 0
    start = time.monotonic()
    with RunningInProcess(oracle) as running:
        while done < cases:
            batch = [for_library(oracle.library, random_case(rng, strategy)) for _ in range(min(_BATCH, cases - done))]
            for _ in range(CHAIN_STEPS if strategy in CHAINED else 1):
                batch = [case for case in batch if not claims_two_generations(case)]
                real = running.allocate(batch)
                following = []
                for case, answer in zip(batch, real, strict=True):
                    done += 1
                    if answer.held is None:
                        failures += 1
                        continue
                    ours = our_answer(case)
                    if ours.held != answer.held and not is_answered_under_a_seed(oracle, case, ours.held):
                        differences += 1
                        if differences <= 3:
                            _print(f"  difference in {json.dumps(case)}\n    ours {ours}\n    real {answer}")
                    if case["members"]:
                        following.append(for_library(oracle.library, next_case(rng, case, answer.held)))
                batch = following
    seconds = time.monotonic() - start
    _print(
        f"{oracle.package:30} {strategy:30} {done:8} cases {differences:4} differences {failures:6} errors"
        f" {0:3} without end {seconds:6.0f} s"
    )
    return differences


def main(arguments: Sequence[str]) -> int:
    """Compare each strategy with each real class that there is of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=int, help="for each strategy and set of jars")
    parser.add_argument("--only", default="", help="a strategy, or a part of its name or of the jars'")
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time, printed")
    real = parser.parse_args(arguments)
    seed: Any = random.SystemRandom().randrange(10**6) if real.seed is None else real.seed
    _print(f"seed {seed}")
    differences = 0
    for oracle in ORACLES:
        for strategy in oracle.strategies:
            if real.only in strategy or real.only in oracle.jars:
                differences += compare(oracle, strategy, real.cases, seed)
    for package in PYTHON_ORACLES:
        for strategy in package.strategies:
            if real.only in strategy or real.only in package.package:
                differences += compare_python(package, strategy, real.cases, seed)
    return 1 if differences else 0


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
