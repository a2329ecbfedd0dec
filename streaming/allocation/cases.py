"""Shell: one case of ``allocate``, read from a line of JSON, computed by the core, written as a line of JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast, get_args

import msgspec

from streaming.settings.defaults import default
from streaming.settings.suggestions import did_you_mean
from udfs.model.errors import StrategyError
from udfs.model.events import Mode, OwnedGeneration, QueueCount, QueueInfo, QueueRef
from udfs.model.systems import KAFKA, SYSTEMS, System, system_of
from udfs.strategies.allocate import allocate
from udfs.strategies.kafka.vote import vote_of
from udfs.strategies.modes import WHOLE_BROKER
from udfs.strategies.problem import Assignment, Participant, Problem, Topic
from udfs.strategies.registry import names, qualified_name

VOTE = "kafka.vote"
# This limits all topics of a case together; more would not fit into memory with their answer.
MAX_QUEUES_OF_CASE = 1_000_000
# Some programs write this mark in front of UTF-8.
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MODES = get_args(Mode)
# Most topics use these counts, so they are made once.
_COUNTED = tuple(QueueInfo(number) for number in range(1_000))


class CaseMember(msgspec.Struct, kw_only=True):
    """A member in a case; absent fields are unknown."""

    member_id: str
    instance_id: str | None = None
    rack: str | None = None
    client_library: str | None = None
    subscriptions: tuple[str, ...] | None = None
    strategies: tuple[str, ...] | None = None
    owned: tuple[QueueRef, ...] | None = None
    generation: OwnedGeneration | None = None


class CaseTopic(msgspec.Struct, kw_only=True):
    """A topic: a count of queues, or each of them."""

    queue_count: QueueCount | None = None
    queues: tuple[QueueInfo, ...] | None = None
    topic_id: str | None = None


class Case(msgspec.Struct, kw_only=True):
    """One question."""

    strategy: str
    id: Any = None
    group: str | None = None
    mode: Mode | None = None
    members: tuple[CaseMember, ...] | None = None
    topics: dict[str, CaseTopic] | None = None
    settings: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse a case that would not fit into memory."""
        counts = sum(topic.queue_count or 0 for topic in (self.topics or {}).values() if topic.queues is None)
        if counts > MAX_QUEUES_OF_CASE:
            raise ValueError(f"at most {MAX_QUEUES_OF_CASE} queues in all topics together, not {counts}")


class AnsweredQueue(msgspec.Struct, gc=False):
    """A queue in a result; the broker is written even if there is none."""

    topic: str
    broker: str | None
    queue_id: int


class AnsweredError(msgspec.Struct):
    """The reason why there is no assignment."""

    code: str
    message: str


class CaseAnswer(msgspec.Struct, kw_only=True):
    """One answer, under the case's own id or the number of its line."""

    id: Any
    strategy: str | None
    assignments: dict[str, list[AnsweredQueue]] = {}
    unassigned: list[AnsweredQueue] = []
    error: AnsweredError | None = None


_DECODER = msgspec.json.Decoder(Case)
_ENCODER = msgspec.json.Encoder()


def answer_line(line: bytes, number: int) -> tuple[bytes, bool]:
    """Return the result line of one case, and whether the case could be read.

    Args:
        number: The line's number, from 1; replaces an id that is missing or cannot be read.
    """
    if number == 1:
        line = line.removeprefix(_BYTE_ORDER_MARK)
    try:
        case = _DECODER.decode(line)
        return _ENCODER.encode(answer_case(case, number)), True
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _unread(_id_of(line, number), str(error)), False
    except RecursionError:
        return _unread(number, "nested too deeply"), False


def _unread(case_id: Any, reason: str) -> bytes:
    return _ENCODER.encode(CaseAnswer(id=case_id, strategy=None, error=AnsweredError("cannot_be_read", reason)))


def answer_case(case: Case, number: int = 1) -> CaseAnswer:
    """Return the answer to a valid case; a strategy's own error is an answer, too."""
    answer = CaseAnswer(id=number if case.id is None else case.id, strategy=case.strategy)
    try:
        problem = read_problem(case)
        system, answer.strategy = _chosen(case, problem)
        mode = _mode(case)
        allocated = allocate(
            system=system, mode=mode, strategy=answer.strategy, problem=problem, tie_order=_tie_order(problem)
        )
    except StrategyError as error:
        meant = did_you_mean(case.strategy, names()) if error.code == "unknown_strategy" else ""
        answer.error = AnsweredError(error.code, error.message + meant)
        return answer
    answer.assignments = _by_name(problem, allocated.assignment)
    answer.unassigned = _unassigned(problem, allocated.assignment)
    return answer


def read_problem(case: Case) -> Problem:
    """Convert a case into the core's problem.

    Two members with one id are two connections of one client; if a coordinator makes the ids, the later replaces the
    earlier one in its maps.
    """
    profile = SYSTEMS.get(system_of(case.strategy) or "")
    has_distinct_ids = profile is not None and profile.makes_member_ids
    per_broker = profile is None or profile.counts_queues_per_broker
    members: dict[str, Participant] = {}
    repeats: Counter[str] = Counter()
    subscriptions: dict[tuple[str, ...], tuple[str, ...]] = {}
    for member in case.members or ():
        member_id = member.member_id
        if not has_distinct_ids:
            while member_id in members:
                repeats[member.member_id] += 1
                member_id = f"{member.member_id}#{1 + repeats[member.member_id]}"
        members[member_id] = Participant(
            member_id=member_id,
            name=member.member_id,
            instance_id=member.instance_id,
            rack=member.rack,
            client_library=member.client_library,
            # Equal lists become one object, which strategies compare at no cost.
            subscriptions=subscriptions.setdefault(member.subscriptions or (), member.subscriptions or ()),
            strategies=member.strategies or (),
            owned=member.owned,
            generation=member.generation,
        )
    topics = {
        name: Topic(name=name, queues=_queues(topic, per_broker), topic_id=topic.topic_id)
        for name, topic in (case.topics or {}).items()
    }
    return Problem(group=case.group or "", members=tuple(members.values()), topics=topics, settings=case.settings or {})


def _queues(topic: CaseTopic, per_broker: bool) -> tuple[QueueInfo, ...]:
    if topic.queues is not None:
        # Clients hold a topic's queues in a set; a broker is not part of the name of Kafka's partitions.
        distinct = {(queue.broker or "" if per_broker else "", queue.queue_id): queue for queue in topic.queues}
        return tuple(distinct[key] for key in sorted(distinct))
    count = topic.queue_count or 0
    return _COUNTED[:count] + tuple(QueueInfo(number) for number in range(len(_COUNTED), count))


def _chosen(case: Case, problem: Problem) -> tuple[System, str]:
    if case.strategy == VOTE:
        return KAFKA.name, qualified_name(vote_of(problem.members, _tie_order(problem)), KAFKA.name)
    system = system_of(case.strategy)
    if system is None:
        raise StrategyError("unknown_strategy", f"there is no strategy {case.strategy}")
    return system, qualified_name(case.strategy, system)


def _tie_order(problem: Problem) -> str:
    return str(problem.settings.get("tie_order") or default("strategies", "vote_tie_order"))


def _mode(case: Case) -> Mode:
    settings = case.settings or {}
    of_settings = settings.get("mode") or ("clustering" if settings.get("share_number") is None else "message")
    mode = case.mode or of_settings
    if mode not in _MODES:
        raise StrategyError("illegal_setting", f"mode must be one of {', '.join(_MODES)}, not {mode!r}")
    return cast("Mode", mode)


def _by_name(problem: Problem, assignment: Assignment) -> dict[str, list[AnsweredQueue]]:
    held: dict[str, Sequence[QueueRef]] = {}
    for member in problem.members:
        queues = assignment[member.member_id]
        # To their broker, connections with the same id are one client; a queue given to one member twice is kept twice.
        held[member.name] = list(dict.fromkeys([*held[member.name], *queues])) if member.name in held else queues
    return {
        name: [AnsweredQueue(queue.topic, queue.broker, queue.queue_id) for queue in queues]
        for name, queues in held.items()
    }


def _unassigned(problem: Problem, assignment: Assignment) -> list[AnsweredQueue]:
    taken = {(queue.topic, queue.broker or "", queue.queue_id) for queues in assignment.values() for queue in queues}
    whole = {(topic, broker) for topic, broker, queue_id in taken if queue_id == WHOLE_BROKER}
    return [
        AnsweredQueue(name, queue.broker, queue.queue_id)
        for name, topic in sorted(problem.topics.items())
        for queue in topic.queues
        if (name, queue.broker or "", queue.queue_id) not in taken and (name, queue.broker or "") not in whole
    ]


def _id_of(line: bytes, number: int) -> Any:
    try:
        case = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return number
    found = case.get("id") if isinstance(case, dict) else None
    return number if found is None else found
