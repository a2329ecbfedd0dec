"""The truth about groups of Kafka, by Kafka's own reading of their records, and what contradicts it.

No part of the monitor reads them: librdkafka fetches, Kafka's converters to JSON decode, what follows is counted here.
"""

from __future__ import annotations

import base64
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from streaming.collectors.kafka.metadata_client import OFFSETS_TOPIC
from tests.kit.brokers import Broker
from tests.kit.group_records import Record, as_kafka_shows

Row = dict[str, Any]
Queue = tuple[str, int]
Held = dict[str, list[Queue]]

_WAIT_S = 60.0
_FOR_URLS = str.maketrans("+/", "-_")
# Versions of keys: offset commits, then records of a classic group, then records of one of the new protocol.
_COMMITS = (0, 1)
_CLASSIC, _EPOCH, _MEMBER, _TARGET_EPOCH, _TARGET, _CURRENT = 2, 3, 5, 6, 7, 8
# Brokers and clients may compute from older metadata than the monitor has; the records do not contradict that.
_RECOMPUTED = "recomputed otherwise"
_JOINS, _ENDS = ("member_joined",), ("member_left", "session_expired", "member_gone")


@dataclass
class Generation:
    """One generation of a classic group, or one epoch of another.

    Attributes:
        number: Of the coordinator. at: Of its record, epoch ms.
        members: Who takes part: the topics of each, by member id.
        held: What each is to own. None: an epoch's target was never computed.
        digest: Of the topics' sizes, where the coordinator records it.
    """

    number: int
    at: int
    members: dict[str, str]
    held: Held | None = None
    digest: object = None


@dataclass
class GroupTruth:
    """The truth about one group.

    Attributes:
        clients: Client ids, by member id. instances: Instance ids of those that have one.
        owned: What its members own, as it was from which time on (new protocol).
    """

    is_classic: bool = True
    generations: list[Generation] = field(default_factory=list)
    clients: dict[str, str] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    owned: list[tuple[int, Held]] = field(default_factory=list)

    def identity(self, member_id: str) -> str:
        """Return who a member is, also when it comes back under another id."""
        return self.instances.get(member_id, member_id)

    def identities(self, members: Iterable[str]) -> set[str]:
        """Return who these members are."""
        return {self.identity(member_id) for member_id in members}

    def held_at(self, at: int) -> Held:
        """Return what members of the new protocol owned at a time."""
        return next((held for since, held in reversed(self.owned) if since <= at), {})

    def contradictions(self, rows: Sequence[Row], spans: Sequence[Row]) -> Iterator[str]:
        """Yield the rebalances that the group's rows lack, and those that never happened."""
        rows = sorted(rows, key=lambda row: row["generation"])
        by_number = {row["generation"]: row for row in rows}
        if len(by_number) != len(rows):
            yield f"twice: {[row['generation'] for row in rows]}"
        numbers = {generation.number for generation in self.generations}
        yield from (f"invented: {_shown(row)}" for row in rows if row["generation"] not in numbers)
        before: Generation | None = None
        for generation in self.generations:
            row = by_number.get(generation.number)
            if row is None and self._changes(before, generation):
                yield f"lost: {generation}"
            elif row is not None and not (self._changes(before, generation) or self._may_change(before, generation)):
                yield f"nothing changed: {_shown(row)}"
            elif row is not None:
                yield from self._about(before, generation, row, spans)
            before = generation

    @staticmethod
    def is_recomputed(contradiction: str) -> bool:
        """Return whether a contradiction is a result that was recomputed otherwise, and nothing else."""
        return contradiction.startswith(_RECOMPUTED)

    def _changes(self, before: Generation | None, generation: Generation) -> bool:
        if self.is_classic:
            return True
        if before is None:
            return bool(generation.members)
        members = [
            sorted((self.identity(name), topics) for name, topics in each.members.items())
            for each in (before, generation)
        ]
        both = before.held is not None and generation.held is not None
        return members[0] != members[1] or (
            both and self._by_identity(before.held) != self._by_identity(generation.held)
        )

    def _may_change(self, before: Generation | None, generation: Generation) -> bool:
        return before is not None and (
            before.digest != generation.digest or before.held is None or generation.held is None
        )

    def _by_identity(self, held: Held | None) -> list[tuple[str, list[Queue]]]:
        return sorted((self.identity(name), queues) for name, queues in (held or {}).items() if queues)

    def _about(
        self, before: Generation | None, generation: Generation, row: Row, spans: Sequence[Row]
    ) -> Iterator[str]:
        if not row["triggers"]:
            yield f"without cause: {_shown(row)}"
        if row["agrees"] is False:
            yield f"{_RECOMPUTED}: {_shown(row)}"
        if row["members_after"] != len(generation.members):
            yield f"{len(generation.members)} members: {_shown(row)}"
        old = {} if before is None else before.members
        came = self.identities(generation.members) - self.identities(old)
        departed = self.identities(old) - self.identities(generation.members)
        joined, ended = (self.identities(_named(row, kinds)) for kinds in (_JOINS, _ENDS))
        if sum(each.at == generation.at for each in self.generations) > 1:
            came, departed, joined, ended = (
                set(),
                set(),
                set(),
                set(),
            )  # the time of a record does not say with which epoch
        if joined != came:
            yield f"came {came}: {_shown(row)}"
        if ended != departed:
            yield f"went {departed}: {_shown(row)}"
        at = epoch_ms(row["event_time"])
        if self.is_classic:
            if at != generation.at:
                yield f"at {generation.at}: {_shown(row)}"
            held = generation.held
        else:
            held = self.held_at(at)
        reported = spans_at(spans, at)
        if reported != held:
            yield f"{held} owned, {reported} reported: {_shown(row)}"


def read_truth(cluster: Broker, groups: Iterable[str]) -> dict[str, GroupTruth]:
    """Return what the records of all partitions say of these groups."""
    mine = set(groups)
    records = [record for record in _records(cluster) if _group(record.key) in mine]
    found = truth_of(records, _topic_names(cluster)) if records else {}
    return {name: found.get(name, GroupTruth()) for name in sorted(mine)}


def truth_of(records: Sequence[Record], names: Mapping[str, str]) -> dict[str, GroupTruth]:
    """Return what these records say, by group.

    Args:
        names: Of topics, by id.
    """
    found: dict[str, GroupTruth] = defaultdict(GroupTruth)
    folds: dict[str, _Fold] = {}
    for record, shown in zip(records, as_kafka_shows(records), strict=True):
        assert isinstance(shown, dict)
        kind = int.from_bytes(record.key[:2], "big")
        group = shown["key"]["group" if kind == _CLASSIC else "groupId"]
        if kind == _CLASSIC:
            _take_classic(found[group], record.at, shown["value"])
        elif kind in (_EPOCH, _MEMBER, _TARGET_EPOCH, _TARGET, _CURRENT):
            fold = folds.setdefault(group, _Fold(found[group], names))
            fold.take(kind, record.at, shown["key"].get("memberId"), shown["value"])
    return dict(found)


def _group(key: bytes) -> str:
    """Return the group of a record's key: behind the key's version stands the length of its name."""
    (length,) = struct.unpack_from(">h", key, 2)
    return key[4 : 4 + length].decode()


def _records(cluster: Broker) -> Iterator[Record]:
    """Yield all group records that there are by now, partition by partition in the order of each."""
    settings: dict[str, Any] = {**cluster.client_settings(), "group.id": "truth", "enable.auto.commit": False}
    reader = Consumer(settings)
    try:
        for number in reader.list_topics(OFFSETS_TOPIC, timeout=_WAIT_S).topics[OFFSETS_TOPIC].partitions:
            place = TopicPartition(OFFSETS_TOPIC, number, OFFSET_BEGINNING)
            _, end = reader.get_watermark_offsets(place, timeout=_WAIT_S)
            reader.assign([place])
            offset = -1
            # Commits go on: there is always something behind the end.
            while offset < end - 1:
                message = reader.poll(_WAIT_S)
                assert message is not None, f"{place} cannot be read"
                key = message.key()
                assert message.error() is None, message.error()
                assert key is not None
                offset = message.offset() or 0
                if int.from_bytes(key[:2], "big") not in _COMMITS and offset < end:
                    yield Record(message.timestamp()[1], key, message.value())
    finally:
        reader.close()


def _topic_names(cluster: Broker) -> Mapping[str, str]:
    client = AdminClient({**cluster.client_settings()})
    topics = [topic for topic in client.list_topics(timeout=_WAIT_S).topics if not topic.startswith("__")]
    found = client.describe_topics(TopicCollection(topics))
    ids = {topic: str(future.result(_WAIT_S).topic_id) for topic, future in found.items()}
    # librdkafka writes them with the ordinary alphabet of base64, Kafka with that for URLs.
    return {named.translate(_FOR_URLS): topic for topic, named in ids.items()}


def _take_classic(truth: GroupTruth, at: int, value: Row | None) -> None:
    if value is None:
        return
    members = {member["memberId"]: member["subscription"] for member in value["members"]}
    for member in value["members"]:
        truth.clients[member["memberId"]] = member["clientId"]
        if member["groupInstanceId"]:
            truth.instances[member["memberId"]] = member["groupInstanceId"]
    held = {member["memberId"]: _assigned(base64.b64decode(member["assignment"] or "")) for member in value["members"]}
    number = value["generation"]
    if number == 0 and not members:
        return  # written when the first member of a new group joins
    now = Generation(number, at, members, {name: queues for name, queues in held.items() if queues})
    if truth.generations and truth.generations[-1].number == number:
        # A static member came back: the generation goes on under its new id.
        last = truth.generations[-1]
        last.members, last.held = now.members, now.held if not last.members else last.held
        return
    truth.generations.append(now)


def _assigned(data: bytes) -> list[Queue]:
    """Return the partitions of a ConsumerProtocolAssignment."""
    found: list[Queue] = []
    if not data:
        return found
    (topics,), at = struct.unpack_from(">i", data, 2), 6
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", data, at)
        name, at = data[at + 2 : at + 2 + length].decode(), at + 2 + length
        (count,) = struct.unpack_from(">i", data, at)
        found += [(name, number) for number in struct.unpack_from(f">{count}i", data, at + 4)]
        at += 4 + 4 * count
    return sorted(found)


class _Fold:
    """Records of one group of the new protocol, one after the other."""

    def __init__(self, truth: GroupTruth, names: Mapping[str, str]) -> None:
        self._truth, self._names = truth, names
        self._members: dict[str, str] = {}
        self._targets: Held = {}
        self._owned: Held = {}
        truth.is_classic = False

    def take(self, kind: int, at: int, member: str, value: Row | None) -> None:
        """Take the next record."""
        truth = self._truth
        if kind == _EPOCH and value is not None:
            truth.generations.append(
                Generation(value["epoch"], at, dict(self._members), digest=value.get("metadataHash"))
            )
        elif kind == _TARGET_EPOCH and value is not None:
            for generation in truth.generations:
                if generation.number == value["assignmentEpoch"]:
                    generation.held = {name: queues for name, queues in self._targets.items() if queues}
        elif kind == _MEMBER and value is not None:
            self._members[member] = str((value["subscribedTopicNames"], value["subscribedTopicRegex"]))
            truth.clients[member] = value["clientId"]
            if value["instanceId"]:
                truth.instances[member] = value["instanceId"]
        elif kind == _MEMBER:
            self._members.pop(member, None)
        elif kind == _TARGET:
            self._targets[member] = [] if value is None else self._queues(value["topicPartitions"])
        elif kind == _CURRENT:
            held = [] if value is None else value["assignedPartitions"] + value["partitionsPendingRevocation"]
            self._owned = {**self._owned, member: self._queues(held)}
            truth.owned.append((at, {name: queues for name, queues in self._owned.items() if queues}))

    def _queues(self, topics: Sequence[Row]) -> list[Queue]:
        return sorted((self._names[topic["topicId"]], number) for topic in topics for number in topic["partitions"])


def spans_at(spans: Sequence[Row], at: int) -> Held:
    """Return who owned what at a time, as members and coordinators reported it."""
    held: Held = {}
    for span in spans:
        until = span["valid_to"]
        if epoch_ms(span["valid_from"]) <= at and (until is None or at < epoch_ms(until)):
            held.setdefault(span["member_id"], []).append((span["topic"], span["queue_id"]))
    return {name: sorted(queues) for name, queues in held.items()}


def epoch_ms(time: Any) -> int:
    """Return a time of the tables, or of the core, in epoch ms."""
    return time if isinstance(time, int) else round(time.timestamp() * 1_000)


def _named(row: Row, kinds: Sequence[str]) -> list[str]:
    return [trigger["member_id"] for trigger in row["triggers"] if trigger["kind"] in kinds]


def _shown(row: Row) -> str:
    triggers = [
        (trigger["kind"], trigger["member_id"], trigger["topic"], trigger["detail"]) for trigger in row["triggers"]
    ]
    shown = {
        key: row[key] for key in ("group_id", "generation", "error", "strategy", "library", "agrees", "agrees_reason")
    }
    return (
        f"{shown} at {epoch_ms(row['event_time'])}, {row['members_before']}->{row['members_after']} members, {triggers}"
    )
