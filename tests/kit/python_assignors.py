"""The assignors of kafka-python and aiokafka as oracles: called in this process, in the form of the Java ones.

`PYTHONHASHSEED=7 python -m tests.kit.python_assignors PACKAGE < CASE` computes one case under another order of sets.
"""

import contextlib
import json
import logging
import os
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AioRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AioSticky
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from aiokafka.structs import TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer import ConsumerProtocolSubscription, JoinGroupResponse

from tests.kit.allocation_cases import Case
from tests.kit.oracles import OracleResult

_NO_GENERATION = -1
_SEEDS = 24  # that are tried


class PythonOracle(NamedTuple):
    """A package and what it knows."""

    package: str
    strategies: tuple[str, ...]

    @property
    def library(self) -> str:
        """Return the library's name here."""
        return self.package.rpartition("-")[0]


PYTHON_ORACLES = (
    PythonOracle(
        "kafka-python-3.0.12", ("kafka.cooperative-sticky", "kafka.range", "kafka.roundrobin", "kafka.sticky")
    ),
    PythonOracle("aiokafka-0.14.0", ("kafka.range", "kafka.roundrobin", "kafka.sticky")),
)


def for_library(library: str, case: Case) -> Case:
    """Return a case as the library's members can put it: no racks, and partitions by topic."""
    members = []
    for member in case["members"]:
        of_library = {name: value for name, value in member.items() if name != "rack"}
        if case["strategy"] == "kafka.cooperative-sticky":
            of_library.pop("generation", None)
        if member.get("owned"):
            topics = list(dict.fromkeys(queue["topic"] for queue in member["owned"]))
            of_library["owned"] = sorted(member["owned"], key=lambda queue: topics.index(queue["topic"]))
        members.append(of_library)
    return {**case, "members": members, "settings": {"library": library}}


def claims_two_generations(case: Case) -> bool:
    """Return whether members claim partitions of different generations: these libraries then take any, as in a set."""
    return len({member.get("generation") for member in case["members"] if member.get("owned")}) > 1


class RunningInProcess:
    """An oracle that is asked in this process."""

    def __init__(self, oracle: PythonOracle) -> None:
        self._is_aiokafka = oracle.library == "aiokafka"

    def __enter__(self) -> Self:
        self._stack = contextlib.ExitStack()
        for name in ("kafka", "aiokafka"):
            logger = logging.getLogger(name)
            self._stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def allocate(self, cases: Sequence[Case]) -> list[OracleResult]:
        """Request the real class each case."""
        return [self._one(case) for case in cases]

    def _one(self, case: Case) -> OracleResult:
        try:
            found = _aiokafka(case) if self._is_aiokafka else _kafka_python(case)
        except (KeyError, IndexError) as error:
            return OracleResult(0, error=f"builtins.{type(error).__name__}")
        held = {member["member_id"]: sorted(found.get(member["member_id"], [])) for member in case["members"]}
        return OracleResult(0, held=held)


def is_answered_under_a_seed(oracle: PythonOracle, case: Case, held: object) -> bool:
    """Return whether the library gives this assignment in a process in which Python's sets have another order."""
    command = [sys.executable, "-m", "tests.kit.python_assignors", oracle.package]
    for seed in range(_SEEDS):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        finished = subprocess.run(
            command, env=environment, input=json.dumps(case), capture_output=True, text=True, check=True
        )
        found = json.loads(finished.stdout)
        if found == json.loads(json.dumps(held)):
            return True
    return False


class _Cluster:
    """What a leader knows of the topics to which its group subscribes."""

    def __init__(self, case: Case) -> None:
        subscribed = {name for member in case["members"] for name in member["subscriptions"]}
        self._counts = {
            name: topic["queue_count"] if "queue_count" in topic else len(topic["queues"])
            for name, topic in case["topics"].items()
            if name in subscribed
        }

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self._counts[topic])) if self._counts.get(topic) else None

    def topics(self, **_: object) -> set[str]:
        return set(self._counts)


_Found = dict[str, list[tuple[str, str, int]]]


def _kafka_python(case: Case) -> _Found:
    name = case["strategy"].removeprefix("kafka.")
    members = []
    for member in case["members"]:
        user_data = b""
        if name == "sticky" and _has_owned(member):
            user_data = b"\0\1" + _partitions(member.get("owned") or []) + struct.pack(">i", _generation(member))
        subscription = struct.pack(">hi", int(name == "cooperative-sticky"), len(member["subscriptions"]))
        subscription += b"".join(map(_text, member["subscriptions"])) + struct.pack(">i", len(user_data)) + user_data
        if name == "cooperative-sticky":
            subscription += _partitions(member.get("owned") or [])
        members.append(
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member["member_id"],
                group_instance_id=member.get("instance_id"),
                metadata=ConsumerProtocolSubscription.decode(subscription),
            )
        )
    assignor = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }[name]()
    found: Mapping[str, Any] = assignor.assign(_Cluster(case), members)
    return {
        member: [(topic, "", number) for topic, numbers in assignment.assigned_partitions for number in numbers]
        for member, assignment in found.items()
    }


def _aiokafka(case: Case) -> _Found:
    name = case["strategy"].removeprefix("kafka.")
    members = {}
    for member in case["members"]:
        topics = list(member["subscriptions"])
        if name == "sticky":
            owned = [TopicPartition(queue["topic"], queue["queue_id"]) for queue in member.get("owned") or []]
            claimed = owned if _has_owned(member) else None
            members[member["member_id"]] = AioSticky._metadata(topics, claimed, _generation(member))
        else:
            members[member["member_id"]] = ConsumerProtocolMemberMetadata(0, topics, b"")
    assignor: Any = {"range": AioRange, "roundrobin": AioRoundRobin, "sticky": AioSticky}[name]
    return {
        member: [(topic, "", number) for topic, numbers in assignment.assignment for number in numbers]
        for member, assignment in assignor.assign(_Cluster(case), members).items()
    }


def _has_owned(member: Mapping[str, Any]) -> bool:
    return member.get("owned") is not None or member.get("generation") is not None


def _generation(member: Mapping[str, Any]) -> int:
    generation = member.get("generation")
    return _NO_GENERATION if generation is None else int(generation)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _partitions(owned: Sequence[Mapping[str, Any]]) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for queue in owned:
        by_topic.setdefault(queue["topic"], []).append(queue["queue_id"])
    return struct.pack(">i", len(by_topic)) + b"".join(
        _text(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers) for topic, numbers in by_topic.items()
    )


def main() -> None:
    """Write what the library gives in the case in the input."""
    (oracle,) = [candidate for candidate in PYTHON_ORACLES if candidate.package == sys.argv[1]]
    with RunningInProcess(oracle) as running:
        (answer,) = running.allocate([json.load(sys.stdin)])
    sys.stdout.write(json.dumps(answer.held))


if __name__ == "__main__":
    main()
