"""Core: what the members of a group would have done under a policy, stay by stay. No I/O.

A history has departures, and when a member was last alive only as far as its session timeout shows it. What the tables
cannot tell is counted, for the result to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from udfs.group.replay.stays import Stay
from udfs.group.what_if.planned_change import new_id
from udfs.model.systems import SYSTEMS, System

# Kafka waits for members of an empty group at most for their rebalance timeout; this is the default of clients.
_LONGEST_WAIT_MS: Final = 300_000


class MemberPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What would have been otherwise about the members of a group.

    Attributes:
        static: The ids of members whose clients have an instance id. session_timeout_ms: The timeout of all sessions.
        is_graceful: Whether a member that was killed leaves instead. added: How many members more there are.
        removed: How many clients are never there: those that came last.
        join_delay_ms: For how long an empty group waits for further members.
    """

    static: frozenset[str] = frozenset()
    session_timeout_ms: int | None = None
    is_graceful: bool = False
    added: int = 0
    removed: int = 0
    join_delay_ms: int | None = None


class Lived(msgspec.Struct, kw_only=True):
    """What the members did under a policy.

    Attributes:
        undone: How many departures were none, because the member came back within its session timeout. by_client: How
            many of these came back under another id: the client is the same, but it may have been another process.
        later, earlier: How many departures the group knew of later or earlier than it did.
        unclear: How many departures are of an unknown kind: they are as they were. removed: The clients that are gone.
        kills: How many kills became leaves. static_kills: How many did not, because a static member does not leave.
    """

    stays: list[Stay]
    undone: int = 0
    by_client: int = 0
    later: int = 0
    earlier: int = 0
    unclear: int = 0
    kills: int = 0
    static_kills: int = 0
    removed: tuple[str, ...] = ()


def lived(policy: MemberPolicy, stays: Sequence[Stay], system: System, default_ms: int, end_ms: int) -> Lived:
    """Return what the members do under a policy.

    Args:
        default_ms: The session timeout of members that report none. end_ms: The end of the history; what the group
            knows later is no part of it.
    """
    found = Lived(stays=sorted(stays, key=lambda stay: stay.since))
    _remove(policy, found)
    _leave(policy, found, default_ms)
    if policy.static:
        found.stays = list(_with_instances(policy.static, found.stays, default_ms))
    if policy.static or policy.session_timeout_ms is not None:
        _Timeouts(policy, found, system, default_ms, end_ms).apply()
    if policy.added:
        found.stays += _added(policy.added, found.stays)
    if policy.join_delay_ms is not None and SYSTEMS[system].coordinator_assigns:
        found.stays = _delayed(found.stays, policy.join_delay_ms)
    found.stays.sort(key=lambda stay: stay.since)
    return found


def _remove(policy: MemberPolicy, found: Lived) -> None:
    """Leave out the clients that came last."""
    if policy.removed:
        clients = list(dict.fromkeys(stay.client for stay in found.stays))
        found.removed = tuple(clients[-policy.removed :])
        found.stays = [stay for stay in found.stays if stay.client not in found.removed]


def _leave(policy: MemberPolicy, found: Lived, default_ms: int) -> None:
    """Let members leave right after their last sign of life, instead of expiring."""
    if not policy.is_graceful:
        return
    changed: list[Stay] = []
    for stay in found.stays:
        is_static = stay.last["instance_id"] is not None or stay.member_id in policy.static
        if stay.how == "expired" and is_static:
            found.static_kills += 1
        elif stay.how == "expired" and stay.left_at is not None and stay.until is not None:
            last_alive = stay.left_at - _timeout(stay, default_ms)
            left_at = max(last_alive, stay.described[-1][0]) + 1
            found.kills += 1
            until = left_at + stay.until - stay.left_at
            stay = msgspec.structs.replace(stay, how="left", left_at=left_at, until=until)
        elif stay.how in ("gone", "absent_from_snapshot"):
            found.unclear += 1
        changed.append(stay)
    found.stays = changed


def _timeout(stay: Stay, default_ms: int) -> int:
    own = stay.last["session_timeout_ms"]
    return default_ms if own is None else int(own)


def _silent_since(stay: Stay, default_ms: int) -> int:
    """Return when a member that departed was last alive, as far as it is known."""
    left_at = stay.left_at or 0
    return left_at - _timeout(stay, default_ms) if stay.how == "expired" else left_at


def _with_instances(static: frozenset[str], stays: Iterable[Stay], default_ms: int) -> Iterator[Stay]:
    """Yield the stays, those of static clients with instance ids.

    Members of one client at one time have one each; who comes back takes the one that has been free for longest.
    """
    until: dict[str, dict[str, int | None]] = {}  # client -> instance id -> when it was free
    for stay in stays:
        if stay.member_id not in static or stay.last["instance_id"] is not None:
            yield stay
            continue
        known = until.setdefault(stay.client, {})
        free = [(at, name) for name, at in known.items() if at is not None and at <= stay.since]
        name = min(free)[1] if free else f"{stay.client}#{len(known) + 1}" if known else stay.client
        known[name] = None if stay.until is None else _silent_since(stay, default_ms)
        yield stay.describing(instance_id=name)


class _Timeouts:
    """Another session timeout: who comes back within it has not departed; others depart when it is over."""

    def __init__(self, policy: MemberPolicy, found: Lived, system: System, default_ms: int, end_ms: int) -> None:
        self._policy, self._found = policy, found
        self._makes_ids = SYSTEMS[system].makes_member_ids
        self._default_ms, self._end_ms = default_ms, end_ms
        self._stays: list[Stay] = []
        self._deadlines: list[int | None] = []  # by stay: when it departs; None if it does as it did
        self._may_return: list[int] = []  # by stay: from when on
        self._silent_at: list[int] = []  # by stay: since when it was silent
        self._silent: dict[object, list[int]] = {}  # places of the stays that may come back, the longest silent first

    def apply(self) -> None:
        """Change the stays that were found."""
        for stay in self._found.stays:
            self._take(stay)
        self._found.stays = [
            stay if deadline is None else self._until(stay, deadline, silent_at)
            for stay, deadline, silent_at in zip(self._stays, self._deadlines, self._silent_at, strict=True)
        ]

    def _take(self, stay: Stay) -> None:
        timeout_ms = self._policy.session_timeout_ms
        now = stay if timeout_ms is None else stay.describing(session_timeout_ms=timeout_ms)
        deadline, name = self._deadline(stay), self._name(stay)
        waiting = self._silent.setdefault(name, [])
        for place in list(waiting):
            former, by = self._stays[place], self._deadlines[place]
            if by is not None and by < stay.since:
                if former.member_id == stay.member_id:
                    # The same id is there anew; it cannot depart afterwards.
                    self._deadlines[place] = min(by, stay.since - 1 - self._known_after(former))
                waiting.remove(place)
            elif self._silent_at[place] < stay.since < self._may_return[place]:
                waiting.remove(place)  # its client is another process already
        back = next((place for place in waiting if self._may_return[place] <= stay.since), None)
        if back is None:
            self._put(now, deadline, self._times(stay), name)
        else:
            waiting.remove(back)
            self._come_back(back, now, deadline, self._times(stay), name)

    def _put(self, stay: Stay, deadline: int | None, times: tuple[int, int], name: object) -> None:
        if deadline is not None:
            self._silent.setdefault(name, []).append(len(self._stays))
        self._stays.append(stay)
        self._deadlines.append(deadline)
        self._may_return.append(times[0])
        self._silent_at.append(times[1])

    def _come_back(self, place: int, stay: Stay, deadline: int | None, times: tuple[int, int], name: object) -> None:
        former = self._stays[place]
        self._found.undone += 1
        is_other = former.member_id != stay.member_id
        silences = (*former.silences, (self._silent_at[place], stay.since))
        if is_other and stay.last["instance_id"] is not None:
            self._stays[place] = msgspec.structs.replace(
                former, until=stay.since, left_at=stay.since, how="replaced", silences=silences
            )
            self._deadlines[place] = None
            self._put(stay, deadline, times, name)
            return
        self._found.by_client += is_other
        # One process goes on, under the id and from the address that it had.
        stay = stay.describing(host=former.last["host"], client_id=former.last["client_id"])
        self._stays[place] = msgspec.structs.replace(
            stay,
            member_id=former.member_id,
            since=former.since,
            is_first=former.is_first,
            described=(*former.described, *stay.described),
            silences=silences,
        )
        self._deadlines[place] = deadline
        self._may_return[place], self._silent_at[place] = times
        if deadline is not None:
            self._silent.setdefault(name, []).append(place)

    def _times(self, stay: Stay) -> tuple[int, int]:
        """Return from when on somebody may come back in a member's place, and since when it was silent.

        Who joins before a member expired is another process; only a static member takes its place as soon as it is
        silent.
        """
        if stay.until is None:
            return self._end_ms, self._end_ms
        silent_at = min(stay.until, _silent_since(stay, self._default_ms))
        return (stay.until if stay.last["instance_id"] is None else silent_at), silent_at

    def _name(self, stay: Stay) -> object:
        """Return by what a return is recognised."""
        if stay.last["instance_id"] is not None:
            return "instance", stay.last["instance_id"]
        return ("client", stay.client) if self._makes_ids else ("id", stay.member_id)

    def _deadline(self, stay: Stay) -> int | None:
        """Return when a member that fell silent departs; None if it departs as it did, or never."""
        if stay.left_at is None or stay.until is None or stay.how == "replaced":
            return None
        is_static = stay.last["instance_id"] is not None and stay.member_id in self._policy.static
        own_ms = self._policy.session_timeout_ms
        now_ms = _timeout(stay, self._default_ms) if own_ms is None else own_ms
        if stay.how == "expired":
            return _silent_since(stay, self._default_ms) + now_ms
        if stay.how != "left":
            self._found.unclear += 1
        # A static member does not leave: its session has to expire.
        return stay.left_at + now_ms if is_static else None

    @staticmethod
    def _known_after(stay: Stay) -> int:
        return 0 if stay.until is None or stay.left_at is None else stay.until - stay.left_at

    def _until(self, stay: Stay, deadline: int, silent_at: int) -> Stay:
        deadline = max(deadline, stay.described[-1][0] + 1)
        until = deadline + self._known_after(stay)
        was = stay.left_at or 0
        self._found.later += deadline > was
        self._found.earlier += deadline < was
        stay = msgspec.structs.replace(stay, silences=(*stay.silences, (silent_at, until)))
        if until > self._end_ms:
            return msgspec.structs.replace(stay, until=None, left_at=None, how=None)
        return msgspec.structs.replace(stay, until=until, left_at=deadline, how="expired")


def _added(number: int, stays: Sequence[Stay]) -> Iterator[Stay]:
    """Yield members more, that are there whenever anyone is; they are like most others, and never restart."""
    kinds: dict[object, list[dict[str, Any]]] = {}
    for stay in stays:
        described = stay.described[0][1]
        kinds.setdefault((described["subscriptions"], described["strategies"]), []).append(described)
    if not kinds:
        return
    usual = max(kinds.values(), key=len)[0]
    for since, until in _occupied(stays):
        for place in range(1, number + 1):
            member_id = new_id("last", place)
            own = dict.fromkeys(("client_id", "host", "rack", "process_id"))
            own["instance_id"] = None if usual["instance_id"] is None else member_id
            yield Stay(
                member_id=member_id,
                client=member_id,
                since=since,
                described=((since, usual | own),),
                until=until,
                left_at=until,
                how=None if until is None else "left",
                is_first=any(stay.is_first and stay.since == since for stay in stays),
            )


def _occupied(stays: Sequence[Stay]) -> Iterator[tuple[int, int | None]]:
    """Yield the times from when until when anyone is there."""
    steps: dict[int, int] = {}
    for stay in stays:
        steps[stay.since] = steps.get(stay.since, 0) + 1
        if stay.until is not None:
            steps[stay.until] = steps.get(stay.until, 0) - 1
    present, since = 0, None
    for time_ms in sorted(steps):
        present += steps[time_ms]
        if present and since is None:
            since = time_ms
        elif not present and since is not None:
            yield since, time_ms
            since = None
    if since is not None:
        yield since, None


def _delayed(stays: Sequence[Stay], delay_ms: int) -> list[Stay]:
    """Return the stays where an empty group waits for further members, and longer while they come.

    Source: kafka 4.1 ``GroupMetadataManager#initialRebalanceDelay`` (``tryCompleteInitialRebalanceElseSchedule``).
    """
    rest, found = list(stays), list[Stay]()
    for since, _ in _occupied(stays):
        if any(stay.is_first and stay.since == since for stay in stays):
            continue
        end = since + delay_ms
        while end < since + _LONGEST_WAIT_MS and any(
            since < stay.since and end - delay_ms <= stay.since < end for stay in rest
        ):
            end = min(end + delay_ms, since + _LONGEST_WAIT_MS)
        waiting = [stay for stay in rest if since <= stay.since < end]
        rest = [stay for stay in rest if not since <= stay.since < end]
        # Who departs before the group begins was never in a generation.
        found += [_begun(stay, end) for stay in waiting if stay.until is None or stay.until > end]
    return [*found, *rest]


def _begun(stay: Stay, since: int) -> Stay:
    known = [described for at, described in stay.described if at <= since]
    later = [(at, described) for at, described in stay.described if at > since]
    return msgspec.structs.replace(stay, since=since, described=((since, known[-1]), *later))
