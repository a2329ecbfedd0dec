"""Shell: what the collector knows of a RocketMQ cluster from one round to the next, and keeps over a restart. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from streaming.collectors.rocketmq.polling.survey import RememberedTopic
from streaming.collectors.rocketmq.remoting.messages import ConsumerConnections, MessageQueue, QueueOffsets
from udfs.model.events import Departure, HeldQueue, MemberInfo, Mode, Observation, QueueRef

VERSION: Final = 1


class RememberedBroker(msgspec.Struct, frozen=True, omit_defaults=True):
    """A broker.

    Attributes:
        boot_ms: When it was started, by its own clock, as reported last.
        lists_all_at_ms: From then on its list is complete: it has had time for its members' heartbeats.
        away_since_ms: Since when it has not answered; None: it does.
    """

    addresses: dict[int, str]
    boot_ms: int | None = None
    lists_all_at_ms: int = 0
    away_since_ms: int | None = None


class RememberedMember(msgspec.Struct, frozen=True, omit_defaults=True):
    """The remembered state of a member.

    Attributes:
        info: As in the next snapshot.
        listed_by: The brokers that list it, and those that did before they could not be relied on: when each was
            started that listed it last, if observed.
        is_described: It reported itself at least once; otherwise its group's table is used.
        failures, failing_since_ms, failed_ms, failure: How often in a row it did not, since when, and why, last.
        is_stuck: After it had not answered it was still listed, in a round in which it did not answer either.
        is_newcomer: It joined a group that was already reported.
        held: Its reported queues; None: never reported. unreported: Its queues since, where their report waits.
        awaited: Its new queues whose first pull was not reported yet. awaited_until_ms: No longer than that.
        message_model, is_client_rebalance, pops: From its own report.
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
        """Its client id; another member may have the same."""
        return self.info.member_id

    @property
    def is_silent(self) -> bool:
        """Return whether it is connected and did not answer the last request."""
        return self.failure == "silent"


class ObservedTables(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tables of subscriptions that brokers have of a whole group, where the last heartbeat of any member wins.

    Attributes:
        shown: For each broker, the digest of the table that it showed last.
        texts: The recently observed tables, by digest.
        changed_ms, flapped_ms: When a broker last showed another one than before, and one that it had shown before.
    """

    shown: dict[str, str] = {}
    texts: dict[str, str] = msgspec.field(default_factory=dict, name="words")
    changed_ms: int = 0
    flapped_ms: int = 0


class RememberedGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """A group.

    Attributes:
        members: Sorted by client id and address; with those whose departure has no evidence yet.
        departures: Departed members since the last reported snapshot.
        snapshot_hash: A hash of that snapshot; None: there was none.
        waiting_since_ms: Since when a snapshot is held back, because new members were not queried yet.
        mode, settings: As reported.
        topic_modes: The mode where brokers assign the queues, ``PULL`` or ``POP``, by topic.
        sub_version: The newest observed version of a subscription.
        observations: The current ones.
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
    """All of it."""

    version: int = VERSION
    clock_ms: int = 0
    brokers: dict[str, RememberedBroker] = {}
    topics: dict[str, RememberedTopic] = {}
    groups: dict[str, RememberedGroup] = {}

    def encoded(self) -> bytes:
        """Return it as bytes."""
        return msgspec.json.encode(self)

    @classmethod
    def decoded(cls, content: bytes) -> RememberedState:
        """Return what ``encoded`` was.

        Raises:
            msgspec.DecodeError: It is something else, or of another version.
        """
        found = msgspec.json.decode(content, type=cls)
        if found.version != VERSION:
            raise msgspec.ValidationError(f"version {found.version} is not {VERSION}")
        return found


class GroupEvidence(msgspec.Struct, frozen=True):
    """The evidence of a group's members: the same evidence gives the same members.

    Attributes:
        lists: By broker. boots: When each of them was started that was the same process from the beginning of the
            round to its end.
        settled: Those that were started so long ago that they list all connections.
        brokers: All that there are.
    """

    lists: Mapping[str, ConsumerConnections | None]
    boots: Mapping[str, int]
    settled: frozenset[str]
    brokers: frozenset[str]

    def is_against(self, broker: str, boot_ms: int) -> bool:
        """Return whether a member that a broker no longer lists is no longer connected to it.

        A restarted broker may lack members without a heartbeat yet; one that it listed since has sent one.

        Args:
            boot_ms: When the broker was started that listed it last.
        """
        return broker in self.settled or (broker in self.boots and self.boots[broker] == boot_ms)

    def is_doubted(self, broker: str, boot_ms: int) -> bool:
        """Return whether a broker exists, but its list of connections is unavailable."""
        return broker in self.brokers and not self.is_against(broker, boot_ms)


class VolatileGroup(msgspec.Struct, frozen=True):
    """The state of a group in this process, not remembered.

    Attributes:
        evidence: The last used for its members.
        offsets: As last observed. offset_brokers: Of those that answered then. positions: As last reported.
        moves_alone, still_alone: How often in a row offsets moved, or did not, while no member was connected.
        differs: How many rounds in a row the brokers' lists differed. unpolled: How many it was not polled.
        absent: How many no broker had settings of it, nor members.
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


class VolatileState(msgspec.Struct, frozen=True):
    """State that need not outlive this process."""

    groups: Mapping[str, VolatileGroup] = {}
