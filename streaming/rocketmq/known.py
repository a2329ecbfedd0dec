"""Shell: what the collector knows of a RocketMQ cluster from one round to the next, and keeps over a restart. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from streaming.rocketmq.model import ConsumerConnections, MessageQueue, QueueOffsets
from udfs.events import Departure, HeldQueue, MemberInfo, Mode, Observation, QueueRef

VERSION: Final = 1


class KnownBroker(msgspec.Struct, frozen=True, omit_defaults=True):
    """A broker.

    Attributes:
        boot_ms: When it was started, by its own clock, as it told last.
        lists_all_at_ms: From then on what it does not list is missing there: it has had time to hear its members.
        away_since_ms: Since when it has not answered; None: it does.
    """

    addresses: dict[int, str]
    boot_ms: int | None = None
    lists_all_at_ms: int = 0
    away_since_ms: int | None = None


class KnownTopic(msgspec.Struct, frozen=True, omit_defaults=True):
    """A topic as it was told: how many queues on each broker, by the broker names that consumers see.

    Attributes:
        is_missing: No name server and no broker knew it in the look before.
    """

    queues: dict[str, int]
    is_static: bool = False
    is_missing: bool = False


class KnownMember(msgspec.Struct, frozen=True, omit_defaults=True):
    """A member, as far as it is known.

    Attributes:
        info: As the next snapshot tells it.
        listed_by: The brokers that list it, and those that did before they could not be relied on: when each was
            started that listed it last, as far as that is known.
        is_described: It told of itself at least once; otherwise its group's table stands for it.
        failures, failing_since_ms, failed_ms, failure: How often in turn it did not, since when, and why, last.
        is_stuck: After it had not answered it was still listed, in a round in which it did not answer either.
        is_newcomer: It joined a group that was told already.
        held: What it was told to hold; None: never told. untold: What it holds since, where that waits.
        awaited: Queues new to it whose first pull was not told yet. awaited_until_ms: No longer than that.
        message_model, is_client_rebalance, pops: As it says of itself.
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
    untold: tuple[HeldQueue, ...] | None = None
    awaited: tuple[QueueRef, ...] = ()
    awaited_until_ms: int = 0
    message_model: str | None = None
    is_client_rebalance: bool | None = None
    pops: bool = False

    @property
    def client_id(self) -> str:
        """The id that it goes by; another one may go by the same."""
        return self.info.member_id

    @property
    def is_silent(self) -> bool:
        """Whether it is connected and did not answer when it was asked last."""
        return self.failure == "silent"


class TablesSeen(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tables of subscriptions that brokers have of a whole group, where the last heartbeat of any member wins.

    Attributes:
        shown: Of each broker, the digest of the table that it showed last.
        words: The tables that were seen lately, by digest.
        changed_ms, flapped_ms: When a broker last showed another one than before, and one that it had shown before.
    """

    shown: dict[str, str] = {}
    words: dict[str, str] = {}
    changed_ms: int = 0
    flapped_ms: int = 0


class KnownGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """A group.

    Attributes:
        members: Sorted by client id and address; with those that are kept for want of evidence.
        gone: Who went, since the last snapshot that was told.
        told: A digest of that snapshot; None: there was none.
        waiting_since_ms: Since when a snapshot is held back, because new members were not asked yet.
        mode, settings: As they were told.
        dealt: What its brokers do where they deal themselves, ``PULL`` or ``POP``, by topic.
        sub_version: The newest version of a subscription that was seen.
        observations: That stand.
    """

    members: tuple[KnownMember, ...] = ()
    gone: tuple[Departure, ...] = ()
    told: str | None = None
    waiting_since_ms: int | None = None
    mode: Mode | None = None
    settings: dict[str, object] | None = None
    dealt: dict[str, str] = {}
    sub_version: int = 0
    tables_seen: TablesSeen = TablesSeen()
    observations: tuple[Observation, ...] = ()


class Known(msgspec.Struct, frozen=True, omit_defaults=True):
    """All of it."""

    version: int = VERSION
    clock_ms: int = 0
    brokers: dict[str, KnownBroker] = {}
    topics: dict[str, KnownTopic] = {}
    groups: dict[str, KnownGroup] = {}

    def encoded(self) -> bytes:
        """Answer it as bytes."""
        return msgspec.json.encode(self)

    @classmethod
    def decoded(cls, content: bytes) -> Known:
        """Answer what ``encoded`` was.

        Raises:
            msgspec.DecodeError: It is something else, or of another version.
        """
        found = msgspec.json.decode(content, type=cls)
        if found.version != VERSION:
            raise msgspec.ValidationError(f"version {found.version} is not {VERSION}")
        return found


class Evidence(msgspec.Struct, frozen=True):
    """What says who is a member of a group: the same evidence says the same.

    Attributes:
        lists: By broker. boots: When each of them was started that was the same process from the beginning of the
            round to its end.
        settled: Those that were started so long ago that who is connected is listed.
        brokers: All that there are.
    """

    lists: Mapping[str, ConsumerConnections | None]
    boots: Mapping[str, int]
    settled: frozenset[str]
    brokers: frozenset[str]

    def is_against(self, broker: str, boot_ms: int) -> bool:
        """Answer whether who is not listed by a broker any more is not connected to it any more.

        A broker that has just started may not have heard somebody yet; whom it has listed since, it has heard.

        Args:
            boot_ms: When the broker was started that listed it last.
        """
        return broker in self.settled or (broker in self.boots and self.boots[broker] == boot_ms)

    def is_doubted(self, broker: str, boot_ms: int) -> bool:
        """Answer whether a broker is there, and cannot tell whether somebody is still connected."""
        return broker in self.brokers and not self.is_against(broker, boot_ms)


class PassingGroup(msgspec.Struct, frozen=True):
    """What is known of a group for as long as this process lives.

    Attributes:
        evidence: By which its members were judged last.
        offsets: As last seen. offset_brokers: Of those that answered then.
        moves_alone, still_alone: How often in turn offsets moved, or did not, while nobody was connected.
        differs: How many rounds in turn the brokers' lists differed. unpolled: How many it was not polled.
        absent: How many no broker had settings of it, nor members.
    """

    evidence: Evidence | None = None
    offsets: dict[MessageQueue, QueueOffsets] | None = None
    offset_brokers: frozenset[str] = frozenset()
    moves_alone: int = 0
    still_alone: int = 0
    was_alone: bool = False
    differs: int = 0
    tables_differ: int = 0
    unpolled: int = 0
    absent: int = 0


class Passing(msgspec.Struct, frozen=True):
    """What need not outlive this process."""

    groups: Mapping[str, PassingGroup] = {}
