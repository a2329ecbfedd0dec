"""Gives the events of an example to a ``Script``."""

from __future__ import annotations

import functools
import re
from typing import Any

import msgspec

from tests.udfs.group.example import Step
from tests.udfs.group.group_script import T0, Script
from tests.udfs.group.record_script import IDS, RecordScript
from udfs.model.events import (
    AssignmentReported,
    CommitsDeleted,
    GroupDeleted,
    GroupRecord,
    GroupSettings,
    GroupSnapshot,
    Heartbeat,
    HeldQueue,
    MemberInfo,
    MemberJoined,
    MemberLeft,
    QueueInfo,
    QueueRef,
    TopicPartitions,
    TopicQueues,
)

_SIMPLE: dict[str, Any] = {
    "join": MemberJoined,
    "beat": Heartbeat,
    "leave": MemberLeft,
    "settings": GroupSettings,
    "delete": GroupDeleted,
    "topic": TopicQueues,
    "holds": AssignmentReported,
    "record": GroupRecord,
    "commits_deleted": CommitsDeleted,
}
_STORIES = ("first_member", "second_member", "static_second_member")
_MEMBER = re.compile(r"(?P<name>[^(:=]+)(\((?P<described>[^)]*)\))?(:(?P<topics>[^=]*))?(=(?P<held>.*))?")
Written = dict[str, Any]


def take(script: Script, step: Step) -> None:
    """Have the script wait for an event."""
    at, words = step.at, list(step.words)
    if step.verb in _STORIES:
        _story(script, step.verb, at, words)
    elif step.verb in ("generation", "poll", "admin"):
        _snapshot(script, step.verb, at, words)
    elif step.verb in ("epoch", "member", "target", "current", "deleted", "come_back"):
        _record(script, step.verb, at, words)
    elif step.verb in ("commit", "observe"):
        _offsets(script, step.verb, at, words)
    else:
        kind = _SIMPLE[step.verb]
        words, fields = _fields(words, kind)
        if kind in (MemberJoined, Heartbeat, MemberLeft, AssignmentReported):
            fields["member_id"] = words.pop(0)
        if kind is MemberJoined:
            fields.setdefault("subscriptions", ("t",))
        elif kind is AssignmentReported:
            fields["queues"] = tuple(_held(word) for word in words)
        elif kind is CommitsDeleted:
            fields["queues"] = tuple(_queue(word) for word in words)
        elif kind is TopicQueues:
            fields["topic"], fields["queue_count"] = words[0], int(words[1]) if words[1:] else None
        if kind is GroupRecord:
            assert isinstance(script, RecordScript)
            script.record(at, words[0], **fields)
        else:
            script.event(kind, at, **fields)


def _story(script: Script, verb: str, at: int, words: list[str]) -> None:
    words, fields = _fields(words, MemberInfo, "assignor", "epoch", "pattern")
    if words:
        fields["member"] = words[0]
    if "subscriptions" in fields:
        fields["topics"] = fields.pop("subscriptions")
    getattr(script, verb)(*([] if verb == "static_second_member" else [at]), **fields)


def _record(script: Script, verb: str, at: int, words: list[str]) -> None:
    assert isinstance(script, RecordScript)
    if verb == "epoch":
        script.epoch(at, int(words[0]))
    elif verb == "member":
        words, fields = _fields(words, MemberInfo, "assignor", *GroupRecord.__struct_fields__)
        script.member(at, words[0], fields.pop("subscriptions", ("t",)), **fields)
    elif verb == "target":
        script.record(at, "target", epoch=int(words[0]))
        for member, held in (word.split("=", 1) for word in words[1:]):
            script.record(at, "member_target", member_id=member, partitions=_held_by(held))
    elif verb == "current":
        member, epoch, owned, *others = words
        state, revoking = [*others, "stable", "-"][:2] if len(others) != 1 else [others[0], "-"]
        script.record(
            at, "member_current", member_id=member, epoch=int(epoch), state=state, partitions=_held_by(owned),
            revoking=_held_by(revoking),
        )  # fmt: skip
    elif verb == "deleted":
        script.delete_member(at, words[0])
    else:
        former, member, epoch, owned, *instance = words
        script.come_back(at, former, member, int(epoch), owned.replace(",", " ").replace("-", ""), *instance)


def _snapshot(script: Script, verb: str, at: int, words: list[str]) -> None:
    words, fields = _fields(words, GroupSnapshot)
    if verb == "generation":
        fields["generation"] = int(words.pop(0))
    elif verb == "admin":
        fields.setdefault("generation_source", "counted")
    members, held = [], {}
    for word in words:
        found = _MEMBER.fullmatch(word)
        assert found, word
        _, described = _fields((found["described"] or "").split(";") if found["described"] else [], MemberInfo)
        topics = ("t",) if found["topics"] is None else None if found["topics"] == "none" else _list(found["topics"])
        members.append(MemberInfo(member_id=found["name"], **{"subscriptions": topics} | described))
        if found["held"] is not None:
            held[found["name"]] = tuple(_queue(queue_text) for queue_text in _list(found["held"]))
    script.event(GroupSnapshot, at, members=tuple(members), **({"assignments": held} if held else {}) | fields)


def _offsets(script: Script, verb: str, at: int, words: list[str]) -> None:
    queue = _queue(words[0])
    offsets = {name: int(number) for name, number in (word.split("=") for word in words[1:])}
    if verb == "commit":
        script.commit(at, queue.topic, queue.queue_id)
    else:
        script.observe(at, queue.topic, queue.queue_id, **offsets)


def _fields(words: list[str], kind: Any, *others: str) -> tuple[list[str], Written]:
    """Return the words that are no fields, and the fields."""
    types = types_of(kind) | {name: field for name, field in types_of(GroupRecord).items() if name in others}
    left, found = [], {}
    for word in words:
        name, equals, text = word.partition("=")
        name = "subscriptions" if name == "topics" and "subscriptions" in types else name
        if equals and (name in types or name in others):
            found[name] = value_of(text, types.get(name, str), name)
        else:
            left.append(word)
    return left, found


@functools.cache
def types_of(kind: Any) -> Written:
    """Return the type of each field."""
    return {field.name: field.type for field in msgspec.structs.fields(kind)}


def value_of(text: str, kind: Any, name: str = "") -> Any:
    """Return the value of a field as its type wants it."""
    if text == "none":
        return None
    if name == "topic_id":
        return IDS.get(text, text)
    if name in ("partitions", "revoking", "standby", "warmup"):
        return _held_by(text)
    if name == "owned":
        return tuple(_queue(word) for word in _list(text))
    if name == "queues":
        return tuple(_described(word) for word in _list(text))
    if text == "''":
        return ""
    if text[:2] in ("[]", '["', "[{", "{}", '{"'):
        return msgspec.convert(_timed(msgspec.json.decode(text.replace("~", " "))), kind)
    if "tuple" in str(kind):
        return _list(text)
    if re.fullmatch(r"\+-?\d+", text):
        return T0 + int(text[1:])
    return msgspec.convert(text.replace("~", " "), kind, strict=False)


def _timed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_timed(item) for item in value]
    return T0 + int(value[1:]) if isinstance(value, str) and re.fullmatch(r"\+-?\d+", value) else value


def _list(text: str) -> tuple[str, ...]:
    return tuple(word.replace("~", " ") for word in text.split(",") if word)


def _queue(text: str) -> QueueRef:
    """Read ``topic/broker-0``; a number alone is a queue of ``t``."""
    topic, _, name = text.rpartition("/")
    broker, _, number = name.rpartition("-")
    return QueueRef(topic or "t", int(number), broker or None)


def _held(text: str) -> HeldQueue:
    name, _, pulled = text.partition("@")
    queue = _queue(name)
    return HeldQueue(queue.topic, queue.queue_id, queue.broker, last_pull_at=T0 + int(pulled) if pulled else None)


def _described(text: str) -> QueueInfo:
    name, _, racks = text.partition("@")
    queue = _queue(name)
    several = tuple(racks.split("+")) if "+" in racks else None
    return QueueInfo(queue.queue_id, queue.broker, None if several else racks or None, several)


def _held_by(text: str) -> tuple[TopicPartitions, ...]:
    return tuple(_partitions(part) for part in text.split("+") if part not in ("", "-"))


def _partitions(text: str) -> TopicPartitions:
    topic, _, numbers = text.rpartition("/")
    return TopicPartitions(IDS.get(topic or "t", topic), tuple(int(number) for number in numbers.split(",")))
