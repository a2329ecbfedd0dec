"""Shell: log lines of a Kafka broker's group coordinator, converted into events one by one. No I/O.

Texts of Kafka 1.0 to 3.9 are those of ``GroupCoordinator.scala`` in the branches of these versions, those of 4.1 of
``GroupMetadataManager`` in the broker's jar; 1.0.2, 2.4.1, 2.5.1, 2.7.2, 2.8.2 and 4.1.1 were also provoked on real
brokers:

================================================  =====================================================================
versions                                          what is new
================================================  =====================================================================
1.0                                               expiries; a leave is logged at DEBUG only, until 2.1; no reasons
2.1                                               the state of the group, and the reason of the rebalance
2.2                                               leaves at INFO
2.3                                               static members, fencing; neither line names the group
2.5                                               the line of a static member that comes back names the group
2.4, 3.0, 3.2                                     other words for a leave; from 3.2 on the client's reason (KIP-800)
2.7                                               members removed because they did not rejoin in time
3.7                                               the new coordinator: ``[GroupId ...]`` (KIP-848)
4.0                                               classic groups in the new coordinator: ``[Group ...]``
================================================  =====================================================================
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, tzinfo
from typing import Any, Literal, NamedTuple, TypeAlias

from streaming.collectors.kafka.log_layout import coordinator_message
from udfs.kafka.consumer_offsets import EVERY_GROUP, GroupPatterns
from udfs.model.events import AnyEvent, GroupSnapshot, MemberLeft, event_fields

_PREFIX = "broker log: "
_REMEMBERED = 10_000  # members that departed or were replaced, because a later line may name them again
_MAX_REASON = 1_000  # characters; a client may send any text

How: TypeAlias = Literal["left", "expired", "fenced"]
_Match: TypeAlias = re.Match[str]


class _Departed(NamedTuple):
    """One member's departure or replacement in a line."""

    how: How
    group: str | None  # None if the line does not name it
    member_id: str
    reason: str
    by: str | None = None  # the member that has its instance id now


class CoordinatorLog:
    """Converts lines of one cluster's brokers into events.

    Args:
        zone: The time zone of times without one.

    Attributes:
        understood: Lines of a coordinator that were recognized, whether they contain news or not.
        unknown: Lines that look like a coordinator's and were not recognized.
        unplaced: Lines of departures that name a member and no group, if no earlier line named the group of that member
            or of its successor.
    """

    def __init__(self, cluster: str, *, zone: tzinfo = UTC, groups: GroupPatterns = EVERY_GROUP) -> None:
        self._cluster = cluster
        self._zone = zone
        self._groups = groups
        self._departed: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._group_of: OrderedDict[str, str] = OrderedDict()
        self.understood = self.unknown = self.unplaced = 0

    def events_of(self, line: str) -> list[AnyEvent]:
        """Return the events of a line; nothing if the line has no news or is not a coordinator's."""
        logged = coordinator_message(line, self._zone)
        if logged is None:
            return []
        found = None if logged.at is None else _understand(logged.message)
        if found is None or logged.at is None:
            self.unknown += 1
            return []
        self.understood += 1
        what, match = found
        return [] if what is _nothing else list(self._events(what(match), logged.at))

    def _events(self, lines: Iterator[_Departed | _Placed | _UnderWay], event_time: int) -> Iterator[AnyEvent]:
        for line in lines:
            if isinstance(line, _Placed):
                group = line.group or self._placed(line.member_ids)
                for member_id in line.member_ids if group is not None else ():
                    _remember(self._group_of, member_id, group)
            elif isinstance(line, _UnderWay):
                if self._groups.follow(line.group):
                    yield self._under_way(line, event_time)
            else:
                yield from self._departure(line, event_time)

    def _departure(self, line: _Departed, event_time: int) -> Iterator[AnyEvent]:
        group = line.group or self._placed((line.member_id, line.by))
        if group is None:
            self.unplaced += 1
            return
        if not self._groups.follow(group):
            return
        if line.how != "fenced":
            # The reason of the rebalance, logged next to it, has the same information.
            if (group, line.member_id) in self._departed:
                return
            _remember(self._departed, (group, line.member_id), None)
        yield MemberLeft(
            **event_fields("kafka", self._cluster, event_time),
            group=group,
            member_id=line.member_id,
            how=line.how,
            reason=_PREFIX + line.reason[:_MAX_REASON],
        )

    def _placed(self, member_ids: Iterable[str | None]) -> str | None:
        """Return the group of the first of these members whose group a line has named."""
        return next((group for member_id in member_ids if member_id and (group := self._group_of.get(member_id))), None)

    def _under_way(self, line: _UnderWay, event_time: int) -> GroupSnapshot:
        return GroupSnapshot(
            **event_fields("kafka", self._cluster, event_time),
            group=line.group,
            generation=line.generation,
            state="CompletingRebalance" if line.has_joined else "PreparingRebalance",
            joined_at=event_time if line.has_joined else None,
            reason=None if line.reason is None else _PREFIX + line.reason[:_MAX_REASON],
        )


class _UnderWay(NamedTuple):
    """A rebalance that begins, or whose members have joined."""

    group: str
    generation: int
    has_joined: bool
    reason: str | None


class _Placed(NamedTuple):
    """Members of one group, so that later lines may name them without it."""

    group: str | None  # None if it is that of the first member with a known group
    member_ids: tuple[str, ...]


_News: TypeAlias = "Callable[[_Match], Iterator[_Departed | _Placed | _UnderWay]]"


def _nothing(_match: _Match) -> Iterator[_Departed]:
    """Return nothing, because the group's record has it."""
    return iter(())


def _preparing(match: _Match) -> Iterator[_Departed | _Placed | _UnderWay]:
    group, reason = match["group"], match["reason"]
    if reason is not None:
        named = _MEMBER_IN_REASON.match(reason)
        if named is not None:
            yield _Placed(group, (named["static"] or named["member"],))
        yield from _departures_in(group, reason.removesuffix("."))
        reason = reason.removesuffix(".")
    yield _UnderWay(group, int(match["generation"]), False, reason)


def _stabilized(match: _Match) -> Iterator[_UnderWay]:
    yield _UnderWay(match["group"], int(match["generation"]), True, None)


def _expired(match: _Match) -> Iterator[_Departed]:
    yield _Departed("expired", match["group"], match["member"], "heartbeat expiration")


def _left(match: _Match) -> Iterator[_Departed]:
    given = match.groupdict().get("reason")
    yield _Departed("left", match["group"], match["member"], _leave(given))


def _left_by_heartbeat(match: _Match) -> Iterator[_Departed]:
    yield _Departed("left", match["group"], match["member"], "left the group")


def _leave(client_reason: str | None) -> str:
    return "LeaveGroup" if client_reason in (None, "not provided") else f"LeaveGroup; client reason: {client_reason}"


def _removed(match: _Match) -> Iterator[_Departed]:
    what = "did not rejoin in time" if match["what"] == "joined" else "did not sync in time"
    for member_id in _listed(match["members"]):
        yield _Departed("expired", match["group"], member_id, what)


def _removed_by_new_coordinator(match: _Match) -> Iterator[_Departed]:
    yield _Departed("expired", match["group"], match["member"], match["reason"].rstrip("."))


def _fenced(match: _Match) -> Iterator[_Departed]:
    named = match.groupdict()
    during = f" during {named['operation']}" if named.get("operation") else ""
    reason = f"instance id is owned by {match['by']}{during}"
    yield _Departed("fenced", named.get("group"), match["member"], reason, match["by"])


def _placed(match: _Match) -> Iterator[_Placed]:
    named = match.groupdict()
    yield _Placed(named.get("group"), tuple(filter(None, (named["member"], named.get("successor")))))


def _departures_in(group: str, reason: str) -> Iterator[_Departed]:
    """Return the departures named in the reason of a rebalance."""
    for pattern, how in _REASONS:
        match = pattern.fullmatch(reason)
        if match is not None:
            text = {"expired": "heartbeat expiration", "left": _leave(match.groupdict().get("reason"))}[how]
            if "sync" in reason and how == "expired":
                text = "did not sync in time"
            for member_id in _listed(match["members"]) if "members" in match.groupdict() else [match["member"]]:
                yield _Departed(how, group, member_id, text)


def _listed(text: str) -> list[str]:
    """Return the members of a list as Scala or Java prints it: ``Set(a, b)``, ``[a, b]``, ``Map(a -> ..., b -> ...)``.

    A client id may contain the separator of members, so ids that end with the coordinator's UUID end there.
    """
    inside = re.sub(r"^[A-Za-z]*[(\[{]|[)\]}]\.?$", "", text.strip())
    if " -> " in inside:
        return [match["member"] for match in _KEY.finditer(inside)]
    ids = [member_id for member_id in _END_OF_ID.split(inside) if member_id]
    if not all(_UUID_AT_END.search(member_id) for member_id in ids):
        ids = inside.split(", ")
    return [member_id for member_id in (part.strip() for part in ids) if member_id]


_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_END_OF_ID = re.compile(rf"(?<={_UUID}), ")
_UUID_AT_END = re.compile(rf"{_UUID}$")
# A member's metadata follows its id and ends before the next id.
_KEY = re.compile(r"(?:^|\), )(?P<member>.+?) -> MemberMetadata\(")


_REASONS: tuple[tuple[re.Pattern[str], Literal["left", "expired"]], ...] = (
    (re.compile(r"[Rr]emoving member (?P<member>.+) on heartbeat expiration"), "expired"),
    (re.compile(r"[Rr]emoving member (?P<member>.+) on LeaveGroup(?:; client reason: (?P<reason>.*))?"), "left"),
    (re.compile(r"Removing (?P<members>.+) on pending sync request expiration"), "expired"),
    (re.compile(r"explicit `LeaveGroup` request for (?P<members>\(.+\)) members"), "left"),
)

# Brokers 2.3 and 2.4 name the group of a static member only here.
_MEMBER_IN_REASON = re.compile(
    r"Adding new member (?P<static>.+?) with group ?instance ?id (?!None|null)|"
    rf"(?:Updating metadata for (?:static )?member|[Ll]eader) (?P<member>.*?{_UUID})"
)

_PLACE = r"(?: \(__consumer_offsets-\d+\))?"
_LEAVE_GROUP = r"has left group(?: (?P<group>.+))? through explicit `LeaveGroup`(?: request)?"
_CLIENT_REASON = r"(?:; client reason: (?P<reason>.*))?\.?"


def _patterns(*lines: tuple[str, _News]) -> tuple[tuple[re.Pattern[str], _News], ...]:
    return tuple((re.compile(text, re.DOTALL), what) for text, what in lines)


_NEWS = _patterns(
    (
        r"Preparing to rebalance group (?P<group>.+?)(?: in state \w+)? with old generation (?P<generation>\d+)"
        + _PLACE
        + r"(?: \(reason: (?P<reason>.*)\))?\.?",
        _preparing,
    ),
    (
        r"Stabilized group (?P<group>.+) generation (?P<generation>\d+)" + _PLACE + r"(?: with \d+ members)?\.?",
        _stabilized,
    ),
    (r"Member (?P<member>.+) in group (?P<group>.+) has failed, removing it from the group\.?", _expired),
    (
        r"Member\[group\.instance\.id .+, member\.id (?P<member>.+)\] in group (?P<group>.+) has left,"
        r" removing it from the group",
        _left,
    ),
    (r"Member (?P<member>.+) in group (?P<group>.+) has left, removing it from the group", _left),
    (
        r"Member MemberMetadata\(memberId=(?P<member>.+), groupInstanceId=.*\) " + _LEAVE_GROUP + _CLIENT_REASON,
        _left,
    ),
    (r"Member (?P<member>.+) " + _LEAVE_GROUP + _CLIENT_REASON, _left),
    (
        r"\[Group (?P<group>.+)\] Member (?P<member>.+) has left group through explicit `LeaveGroup` request"
        + _CLIENT_REASON,
        _left,
    ),
    (
        r"\[GroupId (?P<group>.+)\] (?:Dynamic|Static) member (?P<member>\S+)(?: with instance id .+)? has left group"
        r" through explicit `LeaveGroup` request" + _CLIENT_REASON,
        _left,
    ),
    (
        r"\[GroupId (?P<group>.+?)\](?:\[MemberId [^\]]*\])? (?:Static )?[Mm]ember (?P<member>\S+)"
        r"(?: with instance id .+(?<! temporarily))? left the (?:consumer|share|streams) group\.?",
        _left_by_heartbeat,
    ),
    (
        r"Group (?P<group>.+) removed? (?:dynamic )?members who haven't (?P<what>joined|sent their sync requests?):"
        r" (?P<members>.*)",
        _removed,
    ),
    (
        r"\[GroupId (?P<group>.+)\] (?:Streams m|M)ember (?P<member>\S+) fenced from the group because (?P<reason>.*)",
        _removed_by_new_coordinator,
    ),
    (
        r"Request memberId=(?P<member>.+) for static member with groupInstanceId=.+ is fenced by"
        r" (?:current|existing) memberId=(?P<by>.+) during operation (?P<operation>.+)",
        _fenced,
    ),
    (
        r"given member\.id (?P<member>.+) is identified as a known static member .+,\s?but not matching the expected"
        r" member\.id (?P<by>.+?)(?: during (?P<operation>.+), will respond with instance fenced error)?",
        _fenced,
    ),
    (
        r"\[GroupId (?P<group>.+)\] Static member (?P<member>\S+) with instance id .+"
        r" (?:is fenced by existing|cannot join the group because the instance id is owned by) member (?P<by>\S+?)\.?",
        _fenced,
    ),
    (
        r"Static member with groupInstanceId=.+ and unknown member id joins group (?P<group>.+) in \w+ state\."
        r" Replacing previously mapped member (?P<member>.+) with this groupInstanceId\.",
        _placed,
    ),
    (
        r"Static member .+ of group (?P<group>.+) with unknown member id rejoins, assigning new member id"
        r" (?P<successor>.+), while old member id (?P<member>.+) will be removed\.",
        _placed,
    ),
    (
        r"Static member .+ with unknown member id rejoins, assigning new member id (?P<successor>.+), while old member"
        r" (?P<member>.+) will be removed\.",
        _placed,
    ),
    (
        r"Loaded member MemberMetadata\(memberId=(?P<member>.+), groupInstanceId=Some\(.+\), clientId=.+\) in group"
        r" (?P<group>.+) with generation \d+\.",
        _placed,
    ),
    (
        r"Static member MemberMetadata\(.+\)\.groupInstanceId of group (?P<group>.+) loaded with member id"
        r" (?P<member>.+) at generation \d+\.",
        _placed,
    ),
)

# Messages that begin like this have no news: the group's record has it, or they concern no group.
_NO_NEWS = re.compile(
    r"Starting up\.|Startup complete\.|Shutting down\.|Shutdown complete\.|Assignment received from leader|"
    r"Group leader \[|Loaded member |"
    r"Group .+ with generation \d+ is now empty|Group .+ is dead, skipping rebalance|"
    r"(?:Dynamic|Static) [Mm]ember|Pending (?:dynamic )?member|Adding new static member|"
    r"\[Group .+\] Pending member|Member id .+ was not found in|Received (?:unexpected )?notification of|"
    r"Member .+ has already been removed|(?:Loading|Unloading) group metadata|"
    r"The following (?:groups|offsets) |Removed \d+ offsets|(?:Elected|Resigned) as the group coordinator|"
    r"Setting empty assignments|Sending empty assignment|Attempt to add rejoining member|Failed to |"
    r"Cannot (?:complete join|find the group|upgrade|downgrade)|Group .+ could not complete rebalance|"
    r"\[GroupId=.+\] Unload|Loaded |Generated |Scheduling |Finished |Skip |Error |"
    r"\[GroupId .+?\](?:\[MemberId [^\]]*\])? (?:"
    r"(?:Static |Dynamic )?[Mm]ember .*(?:join|updated its|new assignment state|temporarily left|initialized the top)|"
    r"Bumped |Computed |Converted |Configuring |Creating |Could(?: not|n't) |Expired |Ignoring |Received |Refreshing |"
    r"Removing |Scanned |Static member with instance id )"
)


def _understand(message: str) -> tuple[_News, _Match] | None:
    for pattern, what in _NEWS:
        match = pattern.fullmatch(message)
        if match is not None:
            return what, match
    uninteresting = _NO_NEWS.match(message)
    return None if uninteresting is None else (_nothing, uninteresting)


def _remember(memory: OrderedDict[Any, Any], key: object, value: object) -> None:
    memory[key] = value
    memory.move_to_end(key)
    while len(memory) > _REMEMBERED:
        memory.popitem(last=False)
