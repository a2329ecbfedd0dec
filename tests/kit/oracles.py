"""The real strategies: Java programs that ask the real jars, compiled once, started once, asked line by line."""

import subprocess
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote, unquote_plus

from streaming.setup.java import find_java
from tests.kit.jars import compiled, kit_jars

_SOURCES = Path(__file__).resolve().parent / "java" / "oracle"
_SHARED = ("Case", "Answers")
LIMIT_MS = 5_000

_ROCKETMQ = (
    "rocketmq.AVG",
    "rocketmq.AVG_BY_CIRCLE",
    "rocketmq.CONFIG",
    "rocketmq.CONSISTENT_HASH",
    "rocketmq.MACHINE_ROOM",
    "rocketmq.MACHINE_ROOM_NEARBY",
)
_CLIENTS = ("kafka.cooperative-sticky", "kafka.range", "kafka.roundrobin", "kafka.sticky")
_COORDINATORS = ("kafka.server.range", "kafka.server.uniform")


class Oracle(NamedTuple):
    """A set of jars, the program that asks it, and what it knows."""

    jars: str
    program: str
    strategies: tuple[str, ...]


ORACLES = (
    Oracle("rocketmq-client-5.5.0", "RocketMqStrategies", _ROCKETMQ),
    Oracle("rocketmq-client-4.9.8", "RocketMqStrategies", _ROCKETMQ),
    Oracle("metamorphosis-client-1.4.6.2", "MetaqStrategies", ("metaq.consistent-hash", "metaq.default")),
    Oracle("kafka-4.1.1", "KafkaAssignors", _CLIENTS),
    Oracle("kafka-clients-3.9.1", "KafkaAssignors", _CLIENTS),
    Oracle("kafka-clients-3.7.1", "KafkaAssignors", ("kafka.cooperative-sticky", "kafka.sticky")),
    Oracle("kafka-1.0.2", "KafkaOldAssignors", ("kafka.range", "kafka.roundrobin")),
    Oracle("kafka-4.1.1", "KafkaServerAssignors", _COORDINATORS),
    Oracle("kafka-4.0.0", "KafkaServerAssignors", _COORDINATORS),
    Oracle("kafka-3.9.1", "KafkaServerAssignors", _COORDINATORS),
    Oracle("kafka-4.1.1", "KafkaVote", ("kafka.vote",)),
    Oracle("kafka-1.0.2", "KafkaVoteOld", ("kafka.vote",)),
)


class OracleResult(NamedTuple):
    """What a real class returned.

    Attributes:
        held: Member id -> (topic, broker, queue id), sorted.
        text: The winner of a vote.
        error: Class of what it threw; its message is nobody's promise.
        past: It had not ended after the limit.
    """

    micros: int
    held: dict[str, list[tuple[str, str, int]]] | None = None
    text: str | None = None
    error: str | None = None
    past: bool = False


class Running:
    """One started oracle.

    Example: ``with Running(ORACLES[0]) as oracle: oracle.allocate([case])``.
    """

    def __init__(self, oracle: Oracle, limit_ms: int = LIMIT_MS) -> None:
        self._oracle = oracle
        self._limit_ms = limit_ms

    def __enter__(self) -> Self:
        self._home = tempfile.TemporaryDirectory()
        jars = kit_jars(self._oracle.jars)[0].parent
        sources = [_SOURCES / f"{name}.java" for name in (*_SHARED, self._oracle.program)]
        classes = compiled(self._oracle.jars, self._oracle.program, sources)
        self._process = subprocess.Popen(
            [
                find_java().java,
                "-Xss4m",
                "-Dfile.encoding=UTF-8",
                # RocketMQ's client writes its log below the home folder.
                f"-Duser.home={self._home.name}",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
                f"-DlimitMs={self._limit_ms}",
                "-cp",
                f"{classes}:{jars}/*",
                self._oracle.program,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        finally:
            self._process.kill()
            assert self._process.stdout is not None
            self._process.stdout.close()
        self._home.cleanup()

    def allocate(self, cases: Sequence[Mapping[str, Any]]) -> list[OracleResult]:
        """Request the real class each case, in the form of ``allocate``'s input."""
        lines = self._exchange([line_of(case) for case in cases])
        return [_parse_result(line, case) for line, case in zip(lines, cases, strict=True)]

    def time_ns(self, case: Mapping[str, Any], repeats: int) -> int | None:
        """Return the median time of the later half of so many calls; None if all of them take longer than the limit."""
        (line,) = self._exchange([f"time\t{repeats}\t{line_of(case)}"])
        kind, *value = line.split("\t")[1:]
        if kind == "past":
            return None
        if kind != "nanos":
            raise AssertionError(f"{self._oracle.program} could not be measured: {line[:300]}")
        return int(value[0])

    def _exchange(self, lines: Sequence[str]) -> list[str]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None

        def write() -> None:
            for line in lines:
                stdin.write(line.encode() + b"\n")
            stdin.flush()

        writer = threading.Thread(target=write)
        writer.start()
        answers = [stdout.readline().decode().rstrip("\n") for _ in lines]
        writer.join()
        if answers and not answers[-1]:
            raise AssertionError(f"{self._oracle.program} on {self._oracle.jars} ended before its answers")
        return answers


def line_of(case: Mapping[str, Any]) -> str:
    """Write a case as the line of tokens that ``Case.java`` reads."""
    tokens: list[str] = [_text(case["strategy"]), _text(case.get("group", ""))]
    members = case.get("members", [])
    tokens.append(str(len(members)))
    for member in members:
        tokens += [_text(member["member_id"]), _text(member.get("instance_id")), _text(member.get("rack"))]
        generation = member.get("generation")
        tokens.append("!" if generation is None else str(generation))
        tokens += _texts(member.get("subscriptions", []))
        tokens += _texts(member.get("strategies", []))
        owned = member.get("owned")
        tokens.append("-1" if owned is None else str(len(owned)))
        for queue in owned or ():
            tokens += [_text(queue["topic"]), str(queue["queue_id"])]
    topics = case.get("topics", {})
    tokens.append(str(len(topics)))
    for name, topic in topics.items():
        queues = topic.get("queues")
        if queues is None:
            queues = [{"queue_id": number} for number in range(topic["queue_count"])]
        tokens += [_text(name), _text(topic.get("topic_id")), str(len(queues))]
        for queue in queues:
            tokens += [_text(queue.get("broker") or ""), str(queue["queue_id"]), *_texts(queue.get("racks", []))]
    settings = dict(_flat_settings(case.get("settings", {})))
    tokens.append(str(len(settings)))
    for name, values in settings.items():
        tokens += [_text(name), *_texts(values)]
    return "\t".join(tokens)


def _flat_settings(settings: Mapping[str, Any]) -> Iterable[tuple[str, list[str]]]:
    for name, value in settings.items():
        if name == "queues" and isinstance(value, dict):
            for member, queues in value.items():
                yield f"queues of {member}", _queue_texts(queues)
        elif name == "queues":
            yield name, _queue_texts(value)
        elif isinstance(value, dict):
            yield name, [text for pair in value.items() for text in pair]
        elif isinstance(value, list):
            yield name, value
        else:
            yield name, [str(value)]


def _queue_texts(queues: Sequence[Mapping[str, Any]]) -> list[str]:
    return [text for queue in queues for text in (queue["topic"], queue.get("broker") or "", str(queue["queue_id"]))]


def _text(text: str | None) -> str:
    return "!" if text is None else quote(text, safe="")


def _texts(texts: Sequence[str]) -> list[str]:
    return [str(len(texts)), *map(_text, texts)]


def _parse_result(line: str, case: Mapping[str, Any]) -> OracleResult:
    micros, kind, *tokens = line.split("\t")
    if kind == "past":
        return OracleResult(int(micros), past=True)
    if kind == "error":
        return OracleResult(int(micros), error=unquote_plus(tokens[0]))
    if kind == "text":
        return OracleResult(int(micros), text=unquote_plus(tokens[0]))
    held: dict[str, list[tuple[str, str, int]]] = {}
    place = 0
    for member in case.get("members", []):
        count = int(tokens[place])
        place += 1
        queues = []
        for _ in range(count):
            topic, broker, number = tokens[place : place + 3]
            queues.append((unquote_plus(topic), "" if broker == "!" else unquote_plus(broker), int(number)))
            place += 3
        held[member["member_id"]] = sorted(queues)
    return OracleResult(int(micros), held=held)
