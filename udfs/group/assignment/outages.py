"""Core: how long nobody read a queue that changed or lost its owner (its outage), as far as it is known. No I/O.

An outage lasts from the last progress of the former owner to the first possible progress of the new owner. Both ends
lie between bounds, and so does the outage, which has a minimum and a maximum. It differs from the coordinator's phases:
after a crash that nobody noticed for a session timeout, the coordinator completes the rebalance within milliseconds.

- The former owner read at least up to its last progress (``last_progress``) or, if none is known, up to its last
  heartbeat. It read at most up to its departure; an expired member, at most up to its next due heartbeat. A member that
  is still alive stops when the coordinator has its members together (``joined_at``), or when it acknowledges that it
  gave the queue up; RocketMQ and MetaQ clients stop when they learn of the change by themselves.
- The new owner reads from the time it is assigned the queue, and needs up to ``TAKE_OVER_MS`` for its first message, or
  ``FIRST_TAKE_OVER_MS`` if it owned nothing before, because it may have just started. Clients that take queues over by
  themselves do so within their own timings, unless their first pull is reported.

An eager rebalance stops every queue for every member; any other rebalance stops only the queues that change their
owner. For a queue without a new owner the outage continues and is unknown until it gets one.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from udfs.group.assignment.client_timings import (
    FIRST_TAKE_OVER_MS,
    TAKE_OVER_MS,
    Loss,
    learning_ms,
    longest_wait_ms,
)
from udfs.group.assignment.last_progress import LastProgress, last_progress
from udfs.group.assignment.queue_handover import loss_of
from udfs.group.assignment.rebalance_plan import COOPERATIVE, RebalancePlan
from udfs.group.state.assignment_diff import Changed
from udfs.group.state.group import Departed, Owners, Queue, queue_order
from udfs.group.state.state_machine import GroupKind
from udfs.group.state.view import GroupView
from udfs.model.journal import Rebalance
from udfs.model.queue_outages import MAX_LISTED_OUTAGES, PROGRESS, SESSIONS, QueueOutage
from udfs.model.systems import is_server_side
from udfs.packets.packet import queue_keys

# Clients send at least three heartbeats per session timeout (heartbeat.interval.ms).
_HEARTBEATS_IN_A_TIMEOUT: Final = 3


class Outage(NamedTuple):
    """The time in ms in which nobody read one queue.

    Attributes:
        at_least, at_most: None if unknown.
        former, owner: The previous and the current reader; None if unknown, or if there is none.
        evidence: ``progress`` or ``sessions``, the evidence of how far the former owner read; None without evidence.
    """

    at_least: int | None = None
    at_most: int | None = None
    former: str | None = None
    owner: str | None = None
    evidence: str | None = None


class _Stop(NamedTuple):
    """The two times between which a former owner stopped reading; without ``earliest`` only the latter is known."""

    earliest: int | None
    latest: int
    evidence: str | None = None


class _Start(NamedTuple):
    """The two times between which a new owner could begin to read; without ``earliest`` only the latter is known."""

    earliest: int | None
    latest: int


_Change = tuple[Queue, tuple[str, ...], tuple[str, ...]]


def outages(
    view: GroupView,
    plan: RebalancePlan,
    before: Owners,
    after: Owners,
    moves: Sequence[Changed],
    existing: Collection[Queue],
) -> dict[Queue, Outage]:
    """Return the outage of each queue that a rebalance stopped; for a queue without a new owner it is unknown.

    Args:
        before, after: The assignments, as reported if they are. moves: The differences between them.
        existing: All queues of the group's topics.
    """
    if not view.group.exists or view.mode != "clustering":
        return {}
    if plan.steps:
        return _of_steps(view, plan, before, existing)
    stops = _Stops(view, plan, before)
    changes = list(_changes(view, plan, before, after, moves))
    found: dict[Queue, Outage] = {}
    if not (view.facts.offsets or view.facts.progress or view.group.pulls):
        found = _by_sessions(stops, changes, plan.at)
        changes = []
    keys = queue_keys([queue for queue, _, _ in changes]).tolist() if changes else []
    for (queue, former, owners), key in zip(changes, keys, strict=True):
        stop = stops.of(queue, key, former, plan.at)
        if stop is not None:
            found[queue] = _outage(stop, stops.start(queue, former, owners), former, owners)
    return found | dict.fromkeys(_lost(view, plan, moves, existing), Outage())


def _by_sessions(stops: _Stops, changes: Iterable[_Change], at: int) -> dict[Queue, Outage]:
    """Return the outages of queues without commits or pulls; queues with the same owners have equal outages."""
    found: dict[Queue, Outage] = {}
    of_owners: dict[tuple[tuple[str, ...], tuple[str, ...]], Outage] = {}
    for queue, former, owners in changes:
        outage = of_owners.get((former, owners)) if former else None
        if outage is None:
            stop = stops.of(queue, 0, former, at)
            if stop is None:
                continue
            outage = _outage(stop, stops.start(queue, former, owners), former, owners)
            if former and queue not in stops.first_pulls:
                of_owners[former, owners] = outage
        found[queue] = outage
    return found


def listed(found: Mapping[Queue, Outage]) -> list[QueueOutage]:
    """Return the longest of these outages, those without an upper bound first."""
    longest = heapq.nsmallest(
        MAX_LISTED_OUTAGES,
        found.items(),
        key=lambda item: (item[1].at_most is not None, -(item[1].at_most or 0), queue_order(item[0])),
    )
    return [
        QueueOutage(
            topic, broker, queue_id, outage.former, outage.owner, outage.at_least, outage.at_most, outage.evidence
        )
        for (topic, broker, queue_id), outage in longest
    ]


def add_outages(row: Rebalance, found: Mapping[Queue, Outage]) -> None:
    """Set the outage figures of a rebalance's row; unknown outages have no figures.

    A queue without an upper bound counts with its lower bound in both sums, so that the upper sum is never the smaller.
    """
    bounded = sum(outage.at_most is not None for outage in found.values())
    least = [outage.at_least for outage in found.values() if outage.at_least is not None]
    bounds = (outage.at_least if outage.at_most is None else outage.at_most for outage in found.values())
    most = [bound for bound in bounds if bound is not None] if bounded else []
    evidence = sorted({outage.evidence for outage in found.values() if outage.evidence is not None})
    if least or not found:
        row.outage_min_ms, row.queue_outage_min_ms = sum(least), max(least, default=0)
    if most or not found:
        row.outage_max_ms, row.queue_outage_max_ms = sum(most), max(most, default=0)
    row.outage_queues, row.outage_unknown_queues = len(found), len(found) - bounded
    row.outage_evidence = " and ".join(evidence) or None
    row.outages = listed(found)


def replaced_outages(
    view: GroupView, former_id: str, queues: Iterable[Queue], at: int, now: int
) -> dict[Queue, Outage]:
    """Return the outages of a static member's queues when it returned under a new id without a rebalance.

    Args:
        at: When it came back. now: When the outages are computed.
    """
    owned = sorted(queues, key=queue_order)
    if not owned or view.mode != "clustering":
        return {}
    session = view.last_heartbeat_or_none(former_id, at)
    found: dict[Queue, Outage] = {}
    for queue, key in zip(owned, queue_keys(owned).tolist(), strict=True):
        stop = _stopped(last_progress(view, queue, key, at, now), session, at)
        found[queue] = _outage(stop, _Start(at, at + FIRST_TAKE_OVER_MS), (former_id,), ())
    return found


# ---- which queues


def _changes(
    view: GroupView, plan: RebalancePlan, before: Owners, after: Owners, moves: Sequence[Changed]
) -> Iterator[_Change]:
    """Yield the queues that stopped and have an owner now, with their owners before and after."""
    if _stops_all(view, plan):
        for queue, holders in after.items():
            yield queue, before.get(queue, ()), holders
        return
    for queue, old, new in moves:
        if new and not set(old) & set(new):  # a queue that a former owner continues to read has no outage
            yield queue, old, new


def _stops_all(view: GroupView, plan: RebalancePlan) -> bool:
    """Return whether a rebalance stops all members: they give up all queues before they join again."""
    target = plan.target
    if not view.profile.coordinator_assigns or target.failed or plan.converging:
        return False
    strategies = {target.strategy, view.group.last_strategy}
    return COOPERATIVE not in strategies and not any(is_server_side(strategy) for strategy in strategies)


def _lost(view: GroupView, plan: RebalancePlan, moves: Sequence[Changed], existing: Collection[Queue]) -> list[Queue]:
    """Return the queues that had an owner and have none; queues on the move count when they get a new owner."""
    if plan.overtaken is not None:
        return []
    lost = [queue for queue, old, new in moves if old and not new]
    if not view.group.members:
        there = {topic for topic in {queue[0] for queue in lost} if view.queues_at(topic, plan.at) != ()}
        return [queue for queue in lost if queue[0] in there]
    pending, known = set(plan.revoked_pending), set(existing)
    return [queue for queue in lost if queue in known and queue not in pending]


# ---- when reading stopped and began


class _Stops:
    """The times at which owners stopped reading and the next owners began, in one rebalance."""

    def __init__(self, view: GroupView, plan: RebalancePlan, before: Owners) -> None:
        self._view, self._plan = view, plan
        self._kinds = {trigger.kind for trigger in plan.triggers}
        self._is_client_assigned = view.kind is GroupKind.CLIENT_ASSIGNED
        self._learning = learning_ms(view.profile, self._kinds) if self._is_client_assigned else 0
        self._revoked = set(view.group.revoked_pending)
        self._readers = {holder for holders in before.values() for holder in holders}
        self._sessions: dict[str, _Stop] = {}
        self._waits: dict[tuple[str, str], _Start] = {}
        self.first_pulls = plan.first_pulls
        at, joined_at = plan.at, plan.phases.joined_at
        # Members that are still alive have stopped by then; members of an epoch stopped when they gave each queue up.
        self._stopped_by = at + self._learning if joined_at is None or plan.steps else min(joined_at, at)
        # A generation shown by a poll may have happened at any time since the previous poll.
        self._earliest_start = None if view.group.polled else at

    def of(self, queue: Queue, key: int, former: tuple[str, ...], until: int) -> _Stop | None:
        """Return when the owner of a queue stopped; None if it had none, as far as is known."""
        view, at = self._view, self._plan.at
        progress = last_progress(view, queue, key, until, at)
        if former:
            session = self._session(former[0])
        elif queue in self._revoked:
            session = _Stop(None, self._stopped_by)
        elif progress.read_at is not None:
            unowned_since = view.group.last_rebalance_at
            session = _Stop(None, at if unowned_since is None else min(unowned_since, at))
        else:
            return None
        return _stopped(progress, session.earliest, session.latest)

    def at_release(self, queue: Queue, key: int, former: str, released: int) -> _Stop:
        """Return when an owner stopped whose release of a queue is recorded."""
        progress = last_progress(self._view, queue, key, released, self._plan.at)
        session = self._session(former)
        return _stopped(progress, session.earliest, min(session.latest, released))

    def start(self, queue: Queue, former: tuple[str, ...], owners: tuple[str, ...]) -> _Start:
        """Return when the next owner of a queue could begin to read."""
        view, plan, at = self._view, self._plan, self._plan.at
        if self._is_client_assigned:
            puller, pulled = plan.first_pulls.get(queue, (None, at))
            if puller in owners:
                return _Start(pulled if view.profile.owns_by_node else None, pulled + self.take_over_ms(owners[0]))
            return self._by_timings(former[0] if former else "", owners[0])
        if view.kind is GroupKind.REPORTED:
            return _Start(self._earliest_start, at + self.take_over_ms(owners[0]))
        # Members learn of it with their next heartbeats.
        return _Start(at, at + self._heartbeat_ms(owners[0]) + self.take_over_ms(owners[0]))

    def take_over_ms(self, owner: str) -> int:
        """Return the longest time a new owner needs until it has read the first message."""
        return TAKE_OVER_MS if owner in self._readers else FIRST_TAKE_OVER_MS

    def _by_timings(self, former: str, owner: str) -> _Start:
        """Return the estimated window in which a client takes over a queue by itself."""
        found = self._waits.get((former, owner))
        if found is None:
            view, at = self._view, self._plan.at
            member = view.group.members[owner]
            loss: Loss = loss_of(view, former) if former else "left"
            wait = longest_wait_ms(view.profile, self._learning, loss, member.client_version, bool(member.ordered))
            departed = view.group.departed.get(former)
            expired = loss == "expired" and departed is not None and departed.member.by_heartbeats
            earliest = departed.left_at if expired and departed is not None else None
            found = self._waits[former, owner] = _Start(earliest, at + wait + self.take_over_ms(owner))
        return found

    def _session(self, member_id: str) -> _Stop:
        """Return when a member stopped, judging by its session."""
        found = self._sessions.get(member_id)
        if found is None:
            found = self._sessions[member_id] = self._by_session(member_id)
        return found

    def _by_session(self, member_id: str) -> _Stop:
        view, at = self._view, self._plan.at
        if member_id in view.group.members:
            return _Stop(view.last_heartbeat_or_none(member_id, self._known_until()), self._stopped_by)
        departed = view.group.departed.get(member_id)
        if departed is None:
            return _Stop(None, min(self._stopped_by, at))
        stopped = min(departed.left_at, self._stopped_by)
        if departed.left_reason == "expired":
            return self._expired(departed, stopped)
        return _Stop(departed.last_heartbeat_at, stopped)

    def _known_until(self) -> int:
        """Return the time up to which heartbeats count, including heartbeats at that time if changes settle first."""
        pending, at = self._view.group.pending, self._plan.at
        if pending is None:
            return min(self._stopped_by, at)
        return max(at, pending.opened_at + self._view.config.settle_ms)

    def _expired(self, departed: Departed, stopped: int) -> _Stop:
        """Return when an expired member stopped: by its next due heartbeat."""
        timeout, last = departed.member.session_timeout_ms, departed.last_heartbeat_at
        if last is None:
            # If the rebalance has another cause, the coordinator may have waited for this member in vain: it was alive
            # then.
            if timeout is None or self._kinds != {"session_expired"}:
                return _Stop(None, stopped)
            last = stopped - timeout
        share = self._view.timeout_of(departed.member) // _HEARTBEATS_IN_A_TIMEOUT
        return _Stop(last, max(last, min(stopped, last + share)))

    def _heartbeat_ms(self, member_id: str) -> int:
        member = self._view.group.members.get(member_id)
        return 0 if member is None else self._view.timeout_of(member) // _HEARTBEATS_IN_A_TIMEOUT


def _stopped(progress: LastProgress, heartbeat: int | None, latest: int) -> _Stop:
    """Return when an owner stopped, judging by its progress and its session."""
    read_at = progress.read_at
    if read_at is not None:
        latest = max(latest, read_at)
        return _Stop(read_at if progress.idle_until is None else min(progress.idle_until, latest), latest, PROGRESS)
    if progress.is_stuck or heartbeat is None:
        return _Stop(None, latest)  # it was alive and read nothing, and nothing shows since when
    return _Stop(min(heartbeat, latest), latest, SESSIONS)


def _outage(stop: _Stop, start: _Start, former: tuple[str, ...], owners: tuple[str, ...]) -> Outage:
    least = 0 if start.earliest is None else max(0, start.earliest - stop.latest)
    most = None if stop.earliest is None else max(least, start.latest - stop.earliest)
    return Outage(least, most, former[0] if former else None, owners[0] if owners else None, stop.evidence)


# ---- Kafka's newer protocols


def _of_steps(view: GroupView, plan: RebalancePlan, before: Owners, existing: Collection[Queue]) -> dict[Queue, Outage]:
    """Return the outages of an epoch: from the record that a queue was given up to the record of its new owner."""
    stops = _Stops(view, plan, before)
    released: dict[Queue, tuple[int, str]] = {}
    taken: list[tuple[Queue, int, int, str | None, str]] = []
    now = before
    for at, owners in plan.steps:
        for queue, holders in now.items():
            if owners.get(queue) != holders and not set(owners.get(queue, ())) & set(holders):
                released[queue] = (at, holders[0])
        for queue, holders in owners.items():
            if now.get(queue) != holders and not set(now.get(queue, ())) & set(holders):
                since, former = released.pop(queue, (at, None))
                taken.append((queue, since, at, former, holders[0]))
        now = owners
    found: dict[Queue, Outage] = {}
    keys = queue_keys([handover[0] for handover in taken]).tolist() if taken else []
    for (queue, since, at, former, owner), key in zip(taken, keys, strict=True):
        if former is None:
            stop = stops.of(queue, key, (), at)
            if stop is None:
                continue
        elif former == owner:
            continue
        else:
            stop = stops.at_release(queue, key, former, since)
        found[queue] = _outage(stop, _Start(at, at + stops.take_over_ms(owner)), (former,) if former else (), (owner,))
    lost = [(queue, holders, ()) for queue, holders in before.items() if queue not in now]
    return found | dict.fromkeys(_lost(view, plan, lost, existing), Outage())
