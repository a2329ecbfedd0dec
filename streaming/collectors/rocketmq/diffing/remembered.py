"""Shell: the collector's knowledge of a RocketMQ cluster, kept between rounds and over a restart. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from streaming.collectors.rocketmq.polling.survey import RememberedTopic
from streaming.collectors.rocketmq.remoting.messages import ConsumerConnections, MessageQueue, QueueOffsets
from udfs.model.events import Departure, HeldQueue, MemberInfo, Mode, Observation, QueueRef

VERSION: Final = 1


class RememberedBroker(msgspec.Struct, frozen=True, omit_defaults=True):
    """A broker.

    Attributes:
        boot_ms: Its start time by its own clock, as last reported.
        lists_all_at_ms: The time from which its list is complete, because it has had time for its members' heartbeats.
        away_since_ms: Since when it has not answered; None if it answers.
    """

    addresses: dict[int, str]
    boot_ms: int | None = None
    lists_all_at_ms: int = 0
    away_since_ms: int | None = None


class RememberedProxy(msgspec.Struct, frozen=True, omit_defaults=True):
    """A proxy. It does not report when it started, so after a time without an answer it counts as restarted.

    Attributes:
        lists_all_at_ms, away_since_ms: As of a broker.
    """

    lists_all_at_ms: int = 0
    away_since_ms: int | None = None


class RememberedMember(msgspec.Struct, frozen=True, omit_defaults=True):
    """The remembered state of a member.

    Attributes:
        info: As in the next snapshot.
        listed_by: The brokers and proxies that list it, and those that did before they became unreliable: the start
            time, if observed, of each that listed it last; of a proxy the time from which its list is complete.
        is_described: It reported itself at least once; otherwise its group's table is used.
        failures, failing_since_ms, failed_ms, failure: How often in a row it did not report, since when, when last, and
            why.
        is_stuck: It did not answer and was still listed, in a later round in which it did not answer either.
        is_newcomer: It joined a group that was already reported.
        held: Its reported queues; None if never reported. unreported: Its queues since, if their report waits.
        awaited: Its new queues whose first pull was not reported yet. awaited_until_ms: The end of that wait.
        message_model, is_client_rebalance, pops: From its own report; whether a client of a proxy pops, from the table.
    """

    info: MemberInfo
    listed_by: dict[str, int] = {}
    is_described: bool = False
    failures: int = 0
    failing_since_ms: int = 0
    failed_ms: int = 0
    failure: str | None = None
    is_stuck: bool = False
    is_newcomer: bool = False
    held: tuple[HeldQueue, ...] | None = None
    unreported: tuple[HeldQueue, ...] | None = msgspec.field(default=None, name="untold")
    awaited: tuple[QueueRef, ...] = ()
    awaited_until_ms: int = 0
    message_model: str | None = None
    is_client_rebalance: bool | None = None
    pops: bool = False

    @property
    def client_id(self) -> str:
        """Return its client id; another member may have the same."""
        return self.info.member_id

    def is_behind(self, proxies: Collection[str]) -> bool:
        """Return whether only proxies list it, so that nobody can query it for its queues."""
        return bool(self.listed_by) and all(server in proxies for server in self.listed_by)

    @property
    def is_silent(self) -> bool:
        """Return whether it is connected and did not answer the last request."""
        return self.failure == "silent"


class ObservedTables(msgspec.Struct, frozen=True, omit_defaults=True):
    """The brokers' subscription tables of a whole group, in which the last heartbeat of any member wins.

    Attributes:
        shown: For each broker, the digest of its last table.
        texts: The recently observed tables, by digest.
        changed_ms, flapped_ms: When a broker last showed a changed table, and one that it had shown before.
    """

    shown: dict[str, str] = {}
    texts: dict[str, str] = msgspec.field(default_factory=dict, name="words")
    changed_ms: int = 0
    flapped_ms: int = 0


class RememberedGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """A group.

    Attributes:
        members: Sorted by client id and address; includes members whose departure has no evidence yet.
        departures: Departed members since the last reported snapshot.
        snapshot_hash: A hash of that snapshot; None if there was none.
        waiting_since_ms: Since when a snapshot is held back, because new members were not queried yet.
        mode, settings: As reported.
        topic_modes: ``PULL`` or ``POP`` by topic, if brokers assign the queues.
        sub_version: The newest observed version of a subscription.
        observations: The current observations.
    """

    members: tuple[RememberedMember, ...] = ()
    departures: tuple[Departure, ...] = msgspec.field(default=(), name="gone")
    snapshot_hash: str | None = msgspec.field(default=None, name="told")
    waiting_since_ms: int | None = None
    mode: Mode | None = None
    settings: dict[str, object] | None = None
    topic_modes: dict[str, str] = msgspec.field(default_factory=dict, name="dealt")
    sub_version: int = 0
    tables: ObservedTables = msgspec.field(default=ObservedTables(), name="tables_seen")
    observations: tuple[Observation, ...] = ()


class RememberedState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The complete remembered state."""

    version: int = VERSION
    clock_ms: int = 0
    brokers: dict[str, RememberedBroker] = {}
    proxies: dict[str, RememberedProxy] = {}
    topics: dict[str, RememberedTopic] = {}
    groups: dict[str, RememberedGroup] = {}

    def encoded(self) -> bytes:
        """Return the state as bytes."""
        return msgspec.json.encode(self)

    @classmethod
    def decoded(cls, content: bytes) -> RememberedState:
        """Decode what ``encoded`` returned.

        Raises:
            msgspec.DecodeError: The content is something else, or of another version.
        """
        found = msgspec.json.decode(content, type=cls)
        if found.version != VERSION:
            raise msgspec.ValidationError(f"version {found.version} is not {VERSION}")
        return found


class GroupEvidence(msgspec.Struct, frozen=True):
    """The evidence of a group's members; equal evidence gives equal members.

    Attributes:
        lists: Lists by broker and proxy. boots: The start time of each broker that was the same process throughout the
            round; of each proxy that answers, the time from which its list is complete.
        settled: Brokers and proxies started so long ago that they list all connections.
        brokers: All existing brokers and proxies. proxies: The proxies among them.
    """

    lists: Mapping[str, ConsumerConnections | None]
    boots: Mapping[str, int]
    settled: frozenset[str]
    brokers: frozenset[str]
    proxies: frozenset[str] = frozenset()

    def is_against(self, broker: str, boot_ms: int) -> bool:
        """Return whether a member that a broker no longer lists is no longer connected to it.

        A restarted broker may lack members without a heartbeat yet; a member that it has listed since has sent one.

        Args:
            boot_ms: The start time of the broker that last listed it.
        """
        return broker in self.settled or (broker in self.boots and self.boots[broker] == boot_ms)

    def is_doubted(self, broker: str, boot_ms: int) -> bool:
        """Return whether a broker exists, but its list of connections is unavailable."""
        return broker in self.brokers and not self.is_against(broker, boot_ms)


class VolatileGroup(msgspec.Struct, frozen=True):
    """The state of a group that only this process keeps.

    Attributes:
        evidence: The evidence last used for its members.
        offsets: As last observed. offset_brokers: The brokers that answered then. positions: As last reported.
        moves_alone, still_alone: How often in a row offsets moved, or did not, while no member was connected.
        differs: How many rounds in a row the brokers' lists differed. unpolled: How many rounds in a row it was not
            polled.
        absent: How many rounds in a row no broker had its settings or members.
    """

    evidence: GroupEvidence | None = None
    offsets: dict[MessageQueue, QueueOffsets] | None = None
    offset_brokers: frozenset[str] = frozenset()
    positions: dict[MessageQueue, int] = {}
    moves_alone: int = 0
    still_alone: int = 0
    was_alone: bool = False
    differs: int = 0
    tables_differ: int = 0
    unpolled: int = 0
    absent: int = 0


class HeldStart(msgspec.Struct, frozen=True):
    """Where a queue begins and ends, not yet reported because of groups whose offsets are to be read again."""

    offset: int
    end_offset: int
    groups: frozenset[str]


class VolatileState(msgspec.Struct, frozen=True):
    """State that need not outlive this process: of groups, and where queues begin: as reported, and not yet."""

    groups: Mapping[str, VolatileGroup] = {}
    starts: Mapping[MessageQueue, int] = {}
    held_starts: Mapping[MessageQueue, HeldStart] = {}
