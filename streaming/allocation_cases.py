"""Shell: one case of ``allocate``: read from a line of JSON, dealt by the core, written as a line of JSON."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from udfs.dealing import deal
from udfs.errors import StrategyError
from udfs.events import Mode, QueueCount, QueueInfo, QueueRef, System
from udfs.strategies import SYSTEMS, Assignment, Participant, Problem, Topic, qualified_name
from udfs.strategies.kafka_vote import vote_of
from udfs.strategies.modes import WHOLE_BROKER

VOTE = "kafka.vote"
_MODES = get_args(Mode)


class CaseMember(msgspec.Struct, kw_only=True):
    """A member as a case names it; what is absent is none."""

    member_id: str
    instance_id: str | None = None
    rack: str | None = None
    client_library: str | None = None
    subscriptions: tuple[str, ...] | None = None
    strategies: tuple[str, ...] | None = None
    owned: tuple[QueueRef, ...] | None = None
    generation: int | None = None


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


class AnsweredQueue(msgspec.Struct):
    """A queue in an answer; the broker is told even where there is none."""

    topic: str
    broker: str | None
    queue_id: int


class AnsweredError(msgspec.Struct):
    """Why there is no assignment."""

    code: str
    message: str


class Answer(msgspec.Struct, kw_only=True):
    """One answer, under the case's own id or the number of its line."""

    id: Any
    strategy: str | None
    assignments: dict[str, list[AnsweredQueue]] = {}
    unassigned: list[AnsweredQueue] = []
    error: AnsweredError | None = None


_DECODER = msgspec.json.Decoder(Case)
_ENCODER = msgspec.json.Encoder()


def answer_line(line: bytes, number: int) -> tuple[bytes, bool]:
    """Answer one line; say whether it could be read.

    Args:
        number: Of the line, from 1: stands in for an id that is missing or cannot be read.
    """
    try:
        case = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        unread = Answer(id=_id_of(line, number), strategy=None, error=AnsweredError("cannot_be_read", str(error)))
        return _ENCODER.encode(unread), False
    return _ENCODER.encode(answer_case(case, number)), True


def answer_case(case: Case, number: int = 1) -> Answer:
    """Answer a case that could be read; a strategy's own error is an answer."""
    answer = Answer(id=number if case.id is None else case.id, strategy=case.strategy)
    try:
        problem = read_problem(case)
        system, answer.strategy = _chosen(case, problem)
        mode = _mode(case)
        dealt = deal(system=system, mode=mode, strategy=answer.strategy, problem=problem)
    except StrategyError as error:
        answer.error = AnsweredError(error.code, error.message)
        return answer
    answer.assignments = _by_name(problem, dealt.assignment)
    answer.unassigned = _unassigned(problem, dealt.assignment)
    return answer


def read_problem(case: Case) -> Problem:
    """Make the core's question of a case.

    Two members of one id are two connections of one client in RocketMQ and MetaQ; in Kafka's maps the later replaces
    the earlier one.
    """
    members: dict[str, Participant] = {}
    subscriptions: dict[tuple[str, ...], tuple[str, ...]] = {}
    for member in case.members or ():
        member_id = member.member_id
        if not case.strategy.startswith("kafka."):
            repeats = 1
            while member_id in members:
                repeats += 1
                member_id = f"{member.member_id}#{repeats}"
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
        name: Topic(name=name, queues=_queues(topic), topic_id=topic.topic_id)
        for name, topic in (case.topics or {}).items()
    }
    return Problem(group=case.group or "", members=tuple(members.values()), topics=topics, settings=case.settings or {})


def _queues(topic: CaseTopic) -> tuple[QueueInfo, ...]:
    if topic.queues is not None:
        return tuple(sorted(topic.queues, key=lambda queue: (queue.broker or "", queue.queue_id)))
    return tuple(QueueInfo(queue_id=number) for number in range(topic.queue_count or 0))


def _chosen(case: Case, problem: Problem) -> tuple[System, str]:
    if case.strategy == VOTE:
        tie_order = str(problem.settings.get("tie_order", "4.x"))
        return "kafka", qualified_name(vote_of(problem.members, tie_order), "kafka")
    system = case.strategy.split(".", 1)[0]
    if system not in SYSTEMS:
        raise StrategyError("unknown_strategy", f"no strategy is called {case.strategy}")
    return system, qualified_name(case.strategy, system)  # type: ignore[return-value]


def _mode(case: Case) -> Mode:
    settings = case.settings or {}
    mode = case.mode or settings.get("mode") or ("message" if "share_number" in settings else "clustering")
    if mode not in _MODES:
        raise StrategyError("illegal_setting", f"mode must be one of {', '.join(_MODES)}, not {mode!r}")
    return mode


def _by_name(problem: Problem, assignment: Assignment) -> dict[str, list[AnsweredQueue]]:
    held: dict[str, dict[QueueRef, None]] = {}
    for member in problem.members:
        held.setdefault(member.name, {}).update(dict.fromkeys(assignment[member.member_id]))
    return {name: [_answered(queue) for queue in queues] for name, queues in held.items()}


def _unassigned(problem: Problem, assignment: Assignment) -> list[AnsweredQueue]:
    taken = {(queue.topic, queue.broker, queue.queue_id) for queues in assignment.values() for queue in queues}
    return [
        AnsweredQueue(name, queue.broker, queue.queue_id)
        for name, topic in sorted(problem.topics.items())
        for queue in topic.queues
        if (name, queue.broker, queue.queue_id) not in taken and (name, queue.broker, WHOLE_BROKER) not in taken
    ]


def _answered(queue: QueueRef) -> AnsweredQueue:
    return AnsweredQueue(queue.topic, queue.broker, queue.queue_id)


def _id_of(line: bytes, number: int) -> Any:
    try:
        told = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return number
    found = told.get("id") if isinstance(told, dict) else None
    return number if found is None else found
