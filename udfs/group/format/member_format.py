"""Core: the members of a group encoded as plain values, and decoded. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import msgspec

from udfs.group.format.field_times import PresentFields, pack_field_times, unpack_field_times
from udfs.group.format.owners_format import SharedValues
from udfs.group.state.group import Member
from udfs.model.events import QueueRef
from udfs.model.member_fields import ADDED, type_of

# Each member's own fields are in ``_PackedMember``; the rest of its description is its kind, in this byte order,
# followed by the newer fields.
_ITS_OWN = ("client_id", "host", "instance_id", "rack", "owned", "owned_generation")
_FIRST = (
    *("subscriptions", "strategies", "session_timeout_ms", "rebalance_timeout_ms"),
    *("client_library", "strategy_settings"),
)
_LATER = ("client_version", "language", "ordered", "protocol", "process_id")
_KIND = (*_FIRST, *_LATER, *ADDED)
_LISTS, _PLAIN, _NEWER = attrgetter(*_KIND[:2]), attrgetter(*_KIND[2:5]), attrgetter(*_KIND[6:])
# Identical objects are not compared element by element: thousands of members share them.
_OBJECTS = attrgetter("subscriptions", "strategies", "strategy_settings")
_OTHERS = attrgetter(*(name for name in _KIND if name not in ("subscriptions", "strategies", "strategy_settings")))
# Few members have any of these.
_SELDOM = attrgetter(
    "instance_id", "rack", "owned", "owned_generation", "timeout_since", "reported_at", "own_joined_at"
)
_NOTHING = (None,) * 7


class Kinds:
    """The fields that members of one group mostly share, encoded once and referred to by number."""

    def __init__(self, table: SharedValues) -> None:
        self.table = table
        self.present = PresentFields()
        self._numbers: dict[tuple[Any, ...], int] = {}

    def number(self, member: Member) -> int:
        """Return the number under which a member's kind is written."""
        subscriptions, strategies, settings = _OBJECTS(member)
        identity = (id(subscriptions), id(strategies), id(settings), _OTHERS(member))
        number = self._numbers.get(identity)
        if number is None:
            lists, plain, fields = _LISTS(member), _PLAIN(member), list(_NEWER(member))
            while fields and fields[-1] is None:
                fields.pop()
            text = ("settings", msgspec.json.encode(settings, order="deterministic")) if settings else None
            key = ("kind", lists, *plain, text, *fields)
            number = self._numbers[identity] = self.table.number(key, [*lists, *plain, settings, *fields])
        return number


def pack_member(member: Member, kinds: Kinds, base: int) -> list[Any]:
    """Return a member as plain values; times are encoded as the duration before ``base``."""
    kind = kinds.number(member)
    times = pack_field_times(member, kinds.present.of(member, kind), base, kinds.table.number)
    packed: list[Any] = [
        member.member_id,
        base - member.joined_at,
        int(member.by_heartbeats) if times is None else [int(member.by_heartbeats), *times],
        kind,
        None if member.client_id is None else _shortened(member.client_id, member.member_id),
        member.host,
        None if member.holds_since == member.joined_at else time_before(member.holds_since, base),
    ]
    name = None if member.name == member.member_id else member.name
    seldom = _SELDOM(member)
    if name is not None or seldom != _NOTHING:
        instance_id, rack, owned, owned_generation, *times = seldom
        packed += [instance_id, rack, name, owned, owned_generation, *(time_before(time, base) for time in times)]
    while packed[-1] is None:
        packed.pop()
    return packed


def time_before(at: int | None, base: int) -> int | None:
    """Encode a time as the duration before ``base``."""
    return None if at is None else base - at


def _shortened(text: str, whole: str) -> str | int:
    """Encode a prefix of another text as its length."""
    return len(text) if whole.startswith(text) else text


class _PackedMember(msgspec.Struct, array_like=True, gc=False):
    """A member as ``pack_member`` writes it."""

    member_id: str
    joined_ago: int
    by_heartbeats: int | list[int]  # a list also has the times of ``pack_field_times``
    kind: int
    client_id: str | int | None = None
    host: str | None = None
    holds_ago: int | None = None
    instance_id: str | None = None
    rack: str | None = None
    name: str | None = None
    owned: tuple[QueueRef, ...] | None = None
    owned_generation: int | None = None
    timeout_ago: int | None = None
    reported_ago: int | None = None
    own_joined_ago: int | None = None


# The values that members share, as ``Kinds`` writes them.
_Kind = msgspec.defstruct("_Kind", [(name, type_of(name), None) for name in _KIND], array_like=True, gc=False)


class KindsRead:
    """The kinds of members by number, each decoded once as a member without fields of its own."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values
        self.present = PresentFields()
        self._read: dict[int, Member] = {}

    def member(self, number: int) -> Member:
        """Return a member of this kind, without an id."""
        found = self._read.get(number)
        if found is None:
            kind = msgspec.convert(self.values[number], _Kind)
            found = self._read[number] = Member(member_id="", name="", joined_at=0, **msgspec.structs.asdict(kind))
        return found


def unpack_members(packed: list[Any], kinds: KindsRead, base: int) -> Iterator[Member]:
    """Yield the members that ``pack_member`` encoded."""
    for stored in msgspec.convert(packed, list[_PackedMember]):
        member_id, client_id = stored.member_id, stored.client_id
        by_heartbeats, *times = (
            stored.by_heartbeats if isinstance(stored.by_heartbeats, list) else [stored.by_heartbeats]
        )
        field_times: dict[str, int] = {}
        member = msgspec.structs.replace(
            kinds.member(stored.kind),
            member_id=member_id,
            name=member_id if stored.name is None else stored.name,
            joined_at=base - stored.joined_ago,
            by_heartbeats=bool(by_heartbeats),
            client_id=member_id[:client_id] if isinstance(client_id, int) else client_id,
            host=stored.host,
            holds_since=base - (stored.joined_ago if stored.holds_ago is None else stored.holds_ago),
            instance_id=stored.instance_id,
            rack=stored.rack,
            owned=stored.owned,
            owned_generation=stored.owned_generation,
            timeout_since=None if stored.timeout_ago is None else base - stored.timeout_ago,
            reported_at=None if stored.reported_ago is None else base - stored.reported_ago,
            field_times=field_times,
            own_joined_at=None if stored.own_joined_ago is None else base - stored.own_joined_ago,
        )
        present = kinds.present.of(member, stored.kind)
        field_times.update(unpack_field_times(member, present, times, kinds.values, base))
        yield member
