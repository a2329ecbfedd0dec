"""Core: pauses of queues that move between members without a coordinator. No I/O.

A queue is paused from its old owner's release to its new owner's first pull. The release is the old owner's departure
or, failing that, the report that shows it without the queue. For a member that hung it is the last pull. Otherwise a
pull is not evidence: a broker holds a pull of an empty queue and replies later. The new owner's report contains its
latest pull; its first report with the queue comes within one poll of its first pull. If either of the two was not
observed, the clients' own timings give an estimate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from udfs.group.assignment.client_timings import (
    EXPIRY_SCAN_MS,
    PULL_HELD_MS,
    TAKE_OVER_MS,
    Loss,
    learning_ms,
    queue_wait_ms,
    whole_wait_ms,
)
from udfs.group.assignment.last_progress import last_progress
from udfs.group.state.assignment_diff import Changed
from udfs.group.state.group import MAX_IDLE_QUEUES, IdleQueue, Owners, Queue, key_of
from udfs.group.state.view import GroupView
from udfs.model.events import HeldQueue
from udfs.model.spans import QueueResumed
from udfs.packets.packet import queue_keys


def moved_queues(changed: Iterable[Changed]) -> dict[Queue, tuple[str, str]]:
    """Return the queues that move from one owner to another, with both; of several owners, the first that changed."""
    found: dict[Queue, tuple[str, str]] = {}
    for queue, old, new in changed:
        losers = [owner for owner in old if owner not in new]
        takers = [owner for owner in new if owner not in old]
        if losers and takers:
            found[queue] = (losers[0], takers[0])
    return found


# ---- estimates


def expected_waits(view: GroupView, moved: Mapping[Queue, tuple[str, str]], kinds: Collection[str]) -> dict[Queue, int]:
    """Estimate how long each moving queue has no owner."""
    group = view.group
    learning = learning_ms(view.profile, kinds)
    of_pairs: dict[tuple[str, str], int] = {}
    for loser, taker in moved.values():
        if (loser, taker) not in of_pairs:
            member = group.members[taker]
            loss, ordered = loss_of(view, loser), bool(member.ordered)
            wait = queue_wait_ms(view.profile, learning, loss, member.client_version, ordered)
            of_pairs[loser, taker] = wait + _unnoticed(view, loser)
    return {queue: of_pairs[pair] for queue, pair in moved.items()}


def estimates(
    view: GroupView, before: Owners, after: Owners, waits: Mapping[Queue, int], kinds: Collection[str]
) -> dict[str, int]:
    """Estimate an unobserved duration of a rebalance; return nothing if there were no owners before or after."""
    if not before or not after:
        return {}
    takers = {owner for _, old, new in view.changed_queues(before, after) for owner in new if owner not in old}
    # The last of several new owners learns later than the middle one.
    whole = whole_wait_ms(learning_ms(view.profile, kinds), len(takers))
    return {
        "pause_estimated_ms": max(whole, max(waits.values(), default=0)),
        "queue_pause_estimated_ms": sum(waits.values()),
    }


def loss_of(view: GroupView, loser: str) -> Loss:
    """Return the fate of a queue's owner."""
    if loser in view.group.members:
        return "alive"
    departed = view.group.departed.get(loser)
    if departed is None or departed.left_reason not in ("left", "expired"):
        return "gone"
    return departed.left_reason


def _unnoticed(view: GroupView, loser: str) -> int:
    """Return how long the broker takes to notice an expiry that follows from the member's own heartbeats."""
    departed = None if loser in view.group.members else view.group.departed.get(loser)
    by_itself = departed is not None and departed.left_reason == "expired" and departed.member.by_heartbeats
    return EXPIRY_SCAN_MS // 2 if by_itself and view.profile.has_rebalance_loop else 0


# ---- observed pauses


def first_pulls(view: GroupView, queues: Iterable[HeldQueue]) -> dict[Queue, int]:
    """Return the time of each pull that a member reports with its queues."""
    pulls: dict[Queue, int] = {}
    for queue in queues:
        at = queue.last_pull_at if queue.held_since is None else queue.held_since
        if at is not None:
            pulls[key_of(queue, view.system)] = at
    return pulls


def latest_pulls(view: GroupView, queues: Iterable[HeldQueue]) -> dict[Queue, int]:
    """Return when each queue was last pulled, as its member reports it."""
    return {key_of(queue, view.system): queue.last_pull_at for queue in queues if queue.last_pull_at is not None}


def measured_pauses(
    view: GroupView, moved: Mapping[Queue, tuple[str, str]], pulls: Mapping[Queue, tuple[str, int]], at: int
) -> dict[str, int]:
    """Measure the pauses of a rebalance if its own event time shows all of them; else return nothing.

    Args:
        pulls: The member observed to pull each queue by then, and when.
    """
    total, end = 0, None
    for queue, (loser, taker) in moved.items():
        puller, pulled = pulls.get(queue, (None, 0))
        if puller != taker:
            return {}
        released = _released_at(view, queue, loser, at)
        if released is None or pulled < released:
            return {}
        total += pulled - released
        end = pulled if end is None else max(end, pulled)
    if end is None:
        return {}
    departure_times = [
        view.group.departed[loser].left_at for loser, _ in moved.values() if loser in view.group.departed
    ]
    began = min((departed_at for departed_at in departure_times if departed_at < at), default=None)
    pauses = {"queue_pause_ms": total}
    return pauses if began is None or began > end else {**pauses, "pause_ms": end - began}


def idle_queues_with(idle: Mapping[Queue, IdleQueue], waits: Mapping[Queue, int]) -> dict[Queue, IdleQueue]:
    """Return the queues between two owners, including those that move now, until their new owner is observed."""
    found = dict(idle)
    for queue, wait in waits.items():
        idle_queue = found.get(queue)
        if idle_queue is not None:
            found[queue] = IdleQueue(wait, idle_queue.released_at, read_at=idle_queue.read_at)
        elif len(found) < MAX_IDLE_QUEUES:
            found[queue] = IdleQueue(wait)
    return found


class Handover(NamedTuple):
    """What reports show about queues that move between members.

    Attributes:
        pauses: How long each queue had no owner before a member got it: (measured, estimated).
        outages: Minimum and maximum outage of each of these queues, if known.
        idle_queues, pulls: The group's memory of these queues from now on.
    """

    pauses: dict[tuple[Queue, str], tuple[int | None, int | None]]
    outages: dict[Queue, tuple[int | None, int | None]]
    idle_queues: dict[Queue, IdleQueue]
    pulls: dict[Queue, int]


def hand_over(view: GroupView, changed: Sequence[Changed], pulled: Mapping[Queue, int], at: int) -> Handover:
    """Return what a report shows about the queues whose owners differ from those reported before.

    Args:
        pulled: When the reporting member last pulled each queue.
    """
    group = view.group
    found = Handover({}, {}, dict(group.idle_queues), dict(group.pulls))
    for queue, old, new in changed:
        # If several owners all lose it, the last owner's departure counts.
        if old and not set(old) & set(new):
            _release(view, found, queue, old[-1], at, is_unowned=not new)
    for queue, old, new in changed:
        for member in new:
            if member not in old:
                found.pauses[queue, member] = _take_over(view, found, queue, member, pulled.get(queue), at)
    return found


def _release(view: GroupView, found: Handover, queue: Queue, loser: str, at: int, *, is_unowned: bool) -> None:
    """Record that a queue's last owner no longer holds it.

    Args:
        is_unowned: Whether the queue has no owner now; otherwise it already has its next one.
    """
    idle_queue = found.idle_queues.get(queue)
    if idle_queue is None and len(found.idle_queues) >= MAX_IDLE_QUEUES:
        return
    released = _released_at(view, queue, loser, at)
    [key] = queue_keys([queue]).tolist()
    found.idle_queues[queue] = IdleQueue(
        None if idle_queue is None else idle_queue.estimate,
        at if released is None and is_unowned else released,
        read_at=last_progress(view, queue, key, at, at).read_at,
    )
    found.pulls.pop(queue, None)


def _take_over(
    view: GroupView, found: Handover, queue: Queue, taker: str, pulled: int | None, at: int
) -> tuple[int | None, int | None]:
    """Record that a queue has a new owner; return how long it had none: (measured, estimated)."""
    idle_queue = found.idle_queues.get(queue)
    if pulled is None and view.profile.owns_by_node:
        pulled = at  # a member owns a queue by its node, so the node dates the takeover
    if idle_queue is None:
        return None, None
    released = idle_queue.released_at
    if pulled is not None and idle_queue.read_at is not None and pulled >= idle_queue.read_at:
        # The queue may have been pulled between two polls, before the latest pull that its member reports.
        least = pulled - released if view.profile.owns_by_node and released is not None else 0
        found.outages[queue] = (max(0, least), pulled + TAKE_OVER_MS - idle_queue.read_at)
    if released is None or pulled is not None:
        del found.idle_queues[queue]
    else:
        found.idle_queues[queue] = IdleQueue(idle_queue.estimate, released, taker, idle_queue.read_at)
    if pulled is not None and released is not None and pulled >= released:
        return pulled - released, None
    # Its release was not observed, or it was pulled before the release: both happened between two polls.
    return None, idle_queue.estimate


def resumed(view: GroupView, member_id: str, pulled: Mapping[Queue, int]) -> list[QueueResumed]:
    """Return the queues that a member took over earlier and has now pulled, as reported."""
    found: list[QueueResumed] = []
    for queue, pulled_at in pulled.items():
        idle = view.group.idle_queues.get(queue)
        if idle is None or idle.taker != member_id or idle.released_at is None or pulled_at < idle.released_at:
            continue
        topic, broker, queue_id = queue
        found.append(
            QueueResumed(
                topic=topic,
                broker=broker,
                queue_id=queue_id,
                member_id=member_id,
                origin="reported",
                pause_ms=pulled_at - idle.released_at,
                outage_min_ms=None if idle.read_at is None else 0,
                outage_max_ms=None if idle.read_at is None else pulled_at + TAKE_OVER_MS - idle.read_at,
            )
        )
    return found


def _released_at(view: GroupView, queue: Queue, loser: str, at: int) -> int | None:
    """Return when an owner released a queue; None if only a report at ``at`` without the queue shows it."""
    departed = None if loser in view.group.members else view.group.departed.get(loser)
    if departed is None:
        return None
    if departed.left_reason == "expired":
        # It hung for a session timeout before its broker removed it.
        span = view.timeout_of(departed.member) + EXPIRY_SCAN_MS + PULL_HELD_MS
        last = _last_pull(view, queue, departed.left_at, span)
        return departed.left_at if last is None else last
    return departed.left_at if departed.left_at < at else None


def _last_pull(view: GroupView, queue: Queue, until: int, span: int) -> int | None:
    """Return an owner's last observed pull if it is recent enough to have been its last one."""
    last = view.group.pulls.get(queue)
    return last if last is not None and until - span <= last <= until else None
