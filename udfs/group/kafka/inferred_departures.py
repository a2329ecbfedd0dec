"""Core: how members departed, inferred from commits if neither an event nor a log reports it. No I/O.

A member that leaves commits until then, and the rebalance begins at once. If a member dies, it stops committing, the
others go on for a whole session timeout, and only then does the rebalance begin. So the time from a member's last
commit to the beginning of the rebalance distinguishes the two. The beginning shows in the commits of the members that
stay: each stops when it rejoins, the first of them at its next heartbeat. The record's own time is later, because the
coordinator waits for the slowest member. A dying member may be the slowest itself, in a rebalance that began for
another reason: then its session ends while the others wait for it.

A member whose application no longer polls is silent, too, and leaves when ``max.poll.interval.ms`` is over, which most
clients report as their rebalance timeout. Its silence lasts that long, while the silence of a dead member lasts as long
as its session timeout. If both fit, nothing is inferred.

Silence is measured against the rhythm of a member's commits: a member that commits rarely may have left long after its
last commit. A member of an idle topic commits nothing, whether or not it is alive. So silence proves nothing if
everything was committed up to the end offsets, if no other member commits any more, or if it lasts longer than an
expiry can take.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from udfs.group.state.assignment_diff import by_owner
from udfs.group.state.group import Member, Queue
from udfs.group.state.view import GroupView
from udfs.model.events import DepartureKind
from udfs.model.journal import TriggerKind
from udfs.packets.packet import queue_keys

# Kafka clients send at least three heartbeats per session timeout (heartbeat.interval.ms): a member's last heartbeat
# before it died is at most a third of the timeout older than its last commit.
_HEARTBEATS_IN_A_TIMEOUT = 3
# A member commits just before it leaves, and the rebalance begins with that.
_AT_ONCE_MS = 1_000
# A poll is dated when it was sent; the state that it shows may have begun at any time until the coordinator replied.
_REPLY_MS = 500
# A coordinator waits this long for members that report no timeout: ``max.poll.interval.ms`` of Kafka's clients.
_REBALANCE_TIMEOUT_MS = 300_000
_AIOKAFKA = "aiokafka"  # the likeliest of the libraries that a member may have
# This many commits of a queue are needed to know how often its owner commits.
_RHYTHM_OF = 3
# Heartbeat interval and session timeout of the new protocols are settings of the broker
# (``group.consumer.heartbeat.interval.ms``). With the defaults, a member that committed this shortly before its end was
# not silent.
_HEARTBEAT_MS = 5_000


class Inferred(NamedTuple):
    """A conclusion and its evidence."""

    kind: TriggerKind
    evidence: str


def infer_departures(
    view: GroupView, departed: Sequence[str], at: int, *, joined_at: int | None = None, has_other_cause: bool = False
) -> dict[str, Inferred]:
    """Infer from commits how members departed, if the commits suffice.

    Commits older than the assignment are not its owner's.

    Args:
        departed: Members missing from a generation. at: When it applies. joined_at: When its join phase ended, if
            known.
        has_other_cause: Whether the rebalance may have begun for a reason other than one of these departures.
    """
    group = view.group
    if not departed or not view.facts.progress:
        return {}
    held = _held(view)
    newest = _last_commits(view, held, group.members, at)
    # A rebalance that polls or a log have shown in progress had begun by then.
    began = at if group.preparing_since is None else min(at, group.preparing_since)
    waits = max(member.rebalance_timeout_ms or _REBALANCE_TIMEOUT_MS for member in group.members.values())
    staying = [member_id for member_id in group.members if member_id not in departed]
    inferred: dict[str, Inferred] = {}
    for member_id in departed:
        if member_id in newest:
            others = [newest[staying_id] for staying_id in staying if staying_id in newest]
            silence = _Silence(
                last=newest[member_id].last,
                timeout=view.timeout_of(group.members[member_id]),
                began=began,
                earliest=min(began, (at if joined_at is None else joined_at) - waits),
                ended=at if has_other_cause else began,
                inaccuracy=_REPLY_MS if began < at else 0,
                poll_interval=_poll_interval(group.members[member_id]),
                is_alone=len(group.members) == 1,
            )
            found = _infer(silence, newest[member_id], others, at)
            if found is not None:
                inferred[member_id] = found
    return inferred


class _Commits:
    """A member's last commit, how often it commits, and whether it would have committed more."""

    def __init__(self, view: GroupView, queues: Sequence[Queue], since: int, last: int, at: int) -> None:
        self.last = last
        self._view, self._queues, self._since, self._at = view, queues, since, at

    @cached_property
    def _times(self) -> list[list[int]]:
        """Return the remembered times of its commits of each queue, ascending."""
        offsets, found = self._view.facts.offsets, list[list[int]]()
        for key in queue_keys(self._queues).tolist():
            newest = offsets.newest(key, self._at)
            times = {commit[0] for commit in (newest.commit, newest.former) if commit is not None} | set(newest.earlier)
            found.append(sorted(time for time in times if self._since <= time < self._at))
        return found

    @cached_property
    def rhythm(self) -> int | None:
        """Return the longest time between two commits of the queue that it commits most often; None if unknown."""
        spans = [
            max(later - earlier for earlier, later in pairwise(times))
            for times in self._times
            if len(times) >= _RHYTHM_OF and times[-1] > self.last - _AT_ONCE_MS
        ]
        return min(spans, default=None)

    def commits_on(self, after: int, at: int) -> bool:
        """Return whether it committed twice between two times, a second apart, and thus not only when it rejoined."""
        times = [time for of_queue in self._times for time in of_queue if after <= time < at]
        return bool(times) and max(times) - min(times) >= _AT_ONCE_MS

    def is_idle(self, at: int) -> bool:
        """Return whether it had committed everything by a given time and does not repeat such commits.

        The end offset is known only for queues that its group has committed.
        """
        offsets, ends = self._view.facts.offsets, 0
        for key in queue_keys(self._queues).tolist():
            newest = offsets.newest(key, at)
            if newest.commit is None:
                continue
            committed_at, committed = newest.commit
            if newest.end is None or newest.end[0] <= committed_at or newest.end[1] > committed:
                return False
            if newest.former is not None and newest.former[0] >= self._since and newest.former[1] == committed:
                return False  # it commits at fixed intervals (``enable.auto.commit`` of Java's clients)
            ends += 1
        return ends > 0


class _Silence(NamedTuple):
    """A member that no longer commits.

    Attributes:
        last: Its last commit. timeout: Its session timeout. began: The latest time at which the rebalance began.
        earliest: The earliest time at which the rebalance began. ended: The time until which the rebalance may have
            waited for a member that was already silent.
        inaccuracy: How much later than ``began`` it may have begun.
        poll_interval: A client leaves this long after its last poll; None if its library does not report it.
        is_alone: Whether the group has no other member, so that it waits for none.
    """

    last: int
    timeout: int
    began: int
    earliest: int
    ended: int
    inaccuracy: int
    poll_interval: int | None
    is_alone: bool


def _poll_interval(member: Member) -> int | None:
    """Return how long a member's application may take between two polls; None if not reported.

    aiokafka reports its session timeout as its rebalance timeout.
    """
    is_session = member.rebalance_timeout_ms == member.session_timeout_ms
    is_reported = not (is_session and (member.client_library or "").startswith(_AIOKAFKA))
    return member.rebalance_timeout_ms if is_reported else None


def _may_be_late(poll_interval: int | None, timeout: int, least: int, most: int, spread: tuple[int, int]) -> bool:
    """Return whether a silence may be that of a client that left because its application polled too late.

    Args:
        least, most: How long the silence lasted. spread: By how much it may differ from the poll interval.
    """
    if poll_interval is None:
        return most >= 2 * timeout
    return most >= poll_interval - spread[0] and least <= poll_interval + spread[1]


def _infer(silent: _Silence, commits: _Commits, others: Sequence[_Commits], at: int) -> Inferred | None:
    """Return how a member departed; ``others``: members that stay and commit."""
    last, timeout = silent.last, silent.timeout
    silence, share = silent.began - last, timeout // _HEARTBEATS_IN_A_TIMEOUT
    place = "before the rebalance" if silence >= 0 else "after the rebalance began"
    evidence = f"last commit {abs(silence)} ms {place}, session timeout {timeout} ms"
    if silence < timeout - share:
        may_be_waited_for = silent.ended - last >= timeout - share and abs(silence) >= _AT_ONCE_MS
        return None if may_be_waited_for else Inferred("member_left", evidence)
    if silence < timeout - silent.inaccuracy or last + timeout + share < silent.earliest or commits.is_idle(at):
        return None  # a member silent for longer than an expiry takes was alive, and idle
    active = [other.last for other in others if _shows_beginning(silent, other, share, at)]
    if others and not active:
        return None  # the others had stopped before, so the group is idle, and silence proves nothing
    if active and min(active) < last + share:
        return Inferred("member_left", f"{evidence}; others stopped {max(0, min(active) - last)} ms after it")
    rhythm = commits.rhythm
    if rhythm is None or rhythm + _AT_ONCE_MS >= timeout - share:
        return None  # it may as well have left this long after its last commit
    until = [other.last for other in others if other.commits_on(last + share, at)]
    if not (until or silent.is_alone):
        return None  # the others may have rejoined late, and each commits once when it rejoins
    # Some members continued until then: the rebalance began at most one heartbeat earlier, and no later than ``began``.
    least = min(silent.began, max(until, default=silent.began)) - last
    may_expire = least <= timeout + rhythm + share
    spread = (rhythm + _AT_ONCE_MS, rhythm + share)
    if not _may_be_late(silent.poll_interval, timeout, least, silence, spread):
        return Inferred("session_expired", evidence) if may_expire else None
    if may_expire or silent.poll_interval is None:
        return None
    return Inferred("member_left", f"{evidence}, max.poll.interval.ms {silent.poll_interval} ms: it polled too late")


def _shows_beginning(silent: _Silence, other: _Commits, share: int, at: int) -> bool:
    """Return whether the last commit of a member that stays shows when it rejoined."""
    if other.last >= silent.last + share:
        return True
    may_have_rejoined = other.last >= silent.last - share and other.last + share >= silent.earliest
    return may_have_rejoined and not other.is_idle(at)


def infer_recorded_departure(
    view: GroupView, member_id: str, at: int, staying: Collection[str]
) -> tuple[DepartureKind, str | None]:
    """Return how a member of the new protocol departed, and the evidence.

    Its coordinator removes it at once when its session ends, and no other member stops for that.

    Args:
        at: When its records were deleted. staying: The remaining members.
    """
    members, held = view.group.members, _held(view)
    own = _last_commits(view, held, [member_id] if member_id in members else [], at).get(member_id)
    if own is None:
        return "gone", None
    silence, timeout = at - own.last, view.timeout_of(members[member_id])
    if silence < min(_HEARTBEAT_MS, timeout - timeout // _HEARTBEATS_IN_A_TIMEOUT):
        return "left", f"it committed until {silence} ms before"
    # Unlike in classic groups, commits are no heartbeats; the last heartbeat is somewhat older or newer.
    shortest = timeout - min(_HEARTBEAT_MS, timeout // _HEARTBEATS_IN_A_TIMEOUT)
    if silence < shortest or own.is_idle(at) or own.rhythm is None or own.rhythm + _AT_ONCE_MS >= shortest:
        return "gone", None
    others = _last_commits(view, held, [staying_id for staying_id in staying if staying_id in members], at).values()
    if others and max(other.last for other in others) < at - timeout // _HEARTBEATS_IN_A_TIMEOUT:
        return "gone", None  # no member commits: the group is idle, and silence proves nothing
    spread, poll_interval = own.rhythm + _AT_ONCE_MS, _poll_interval(members[member_id])
    # A member silent for longer than an expiry takes was alive, and idle.
    may_expire = silence <= timeout + spread
    evidence = f"its last commit was {silence} ms before"
    if not _may_be_late(poll_interval, timeout, silence, silence, (spread, spread)):
        return ("expired", evidence) if may_expire else ("gone", None)
    if may_expire or poll_interval is None:
        return "gone", None
    return "left", f"{evidence}, max.poll.interval.ms {poll_interval} ms: it polled too late"


def _held(view: GroupView) -> Mapping[str, Sequence[Queue]]:
    group = view.group
    return by_owner(group.reported if group.has_reported else group.computed)


def _last_commits(
    view: GroupView, held: Mapping[str, Sequence[Queue]], member_ids: Iterable[str], at: int
) -> dict[str, _Commits]:
    """Return the last commits of members that have committed since they own their queues."""
    members = {member_id: view.group.members[member_id] for member_id in member_ids}
    earliest = min((_holds_since(member) for member in members.values()), default=at)
    commits = newest_commits(view, [queue for owner in members for queue in held.get(owner, ())], earliest, at)
    found: dict[str, _Commits] = {}
    for member_id, member in members.items():
        queues, since = held.get(member_id, ()), _holds_since(member)
        last = max((commits[queue] for queue in queues if queue in commits), default=None)
        if last is not None and last >= since:
            found[member_id] = _Commits(view, queues, since, last, at)
    return found


def _holds_since(member: Member) -> int:
    return member.joined_at if member.holds_since is None else member.holds_since


def newest_commits(view: GroupView, queues: Sequence[Queue], since: int, until: int) -> dict[Queue, int]:
    """Return the newest commit, if any, of each queue from ``since`` on and before ``until``."""
    progress = view.facts.progress
    if not queues or not progress:
        return {}
    found: dict[Queue, int] = {}
    for queue, key in zip(queues, queue_keys(queues).tolist(), strict=True):
        commits = [time for time in progress.get(key, ()) if since <= time < until]
        commits = view.facts.offsets.not_deleted(key, commits, until)
        if commits:
            found[queue] = max(commits)
    return found
