"""Core: pauses of queues that move between members without a coordinator. No I/O.

A queue is paused from its old owner's release to its new owner's first pull. The release is the old owner's departure,
else the report that shows it without the queue. For a member that hung it is its last pull. Otherwise a pull is not
evidence: a broker holds a pull of an empty queue and replies later. The new owner's report has its latest pull; its
first report with the queue comes within one poll of its first pull. Where one of the two was not observed, the clients'
own timings give an estimate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from udfs.group.assignment_diff import Changed
from udfs.group.client_timings import (
    EXPIRY_SCAN_MS,
    PULL_HELD_MS,
    Loss,
    learning_ms,
    queue_wait_ms,
    whole_wait_ms,
)
from udfs.group.context import GroupContext
from udfs.group.state import MAX_IDLE_QUEUES, IdleQueue, Owners, Queue, key_of
from udfs.model.events import HeldQueue
from udfs.model.journal import QueueResumed


def is_timed(turn: GroupContext) -> bool:
    """Return whether members of this group take over queues by themselves, at times that are known or estimated."""
    return turn.group.generation is None and turn.system != "kafka" and turn.mode == "clustering"


def moved_queues(changed: Iterable[Changed]) -> dict[Queue, tuple[str, str]]:
    """Return the queues that move from one owner to another, with both; of several owners the first that changed."""
    found: dict[Queue, tuple[str, str]] = {}
    for queue, old, new in changed:
        losers = [one for one in old if one not in new]
        takers = [one for one in new if one not in old]
        if losers and takers:
            found[queue] = (losers[0], takers[0])
    return found


# ---- estimates


def expected_waits(
    turn: GroupContext, moved: Mapping[Queue, tuple[str, str]], kinds: Collection[str]
) -> dict[Queue, int]:
    """Estimate for each queue that moves how long it has no owner."""
    group = turn.group
    learning = learning_ms(turn.system, kinds)
    of_pairs: dict[tuple[str, str], int] = {}
    for loser, taker in moved.values():
        if (loser, taker) not in of_pairs:
            member = group.members[taker]
            wait = queue_wait_ms(turn.system, learning, _loss(turn, loser), member.client_version, bool(member.ordered))
            of_pairs[loser, taker] = wait + _unnoticed(turn, loser)
    return {queue: of_pairs[pair] for queue, pair in moved.items()}


def estimates(
    turn: GroupContext, before: Owners, after: Owners, waits: Mapping[Queue, int], kinds: Collection[str]
) -> dict[str, int]:
    """Estimate an unobserved duration of a rebalance; nothing where there were or are no owners."""
    if not before or not after:
        return {}
    takers = {one for _, old, new in turn.changed_queues(before, after) for one in new if one not in old}
    # The last of several new owners learns later than the middle one.
    whole = whole_wait_ms(learning_ms(turn.system, kinds), len(takers))
    return {
        "pause_estimated_ms": max(whole, max(waits.values(), default=0)),
        "queue_pause_estimated_ms": sum(waits.values()),
    }


def _loss(turn: GroupContext, loser: str) -> Loss:
    if loser in turn.group.members:
        return "alive"
    departed = turn.group.departed.get(loser)
    if departed is None or departed.left_reason not in ("left", "expired"):
        return "gone"
    return departed.left_reason


def _unnoticed(turn: GroupContext, loser: str) -> int:
    """Return how long the broker takes to notice an expiry that follows from the member's own heartbeats."""
    departed = None if loser in turn.group.members else turn.group.departed.get(loser)
    by_itself = departed is not None and departed.left_reason == "expired" and departed.member.by_heartbeats
    return EXPIRY_SCAN_MS // 2 if by_itself and turn.system == "rocketmq" else 0


# ---- observed pauses


def first_pulls(turn: GroupContext, queues: Iterable[HeldQueue]) -> dict[Queue, int]:
    """Return the time of each pull that a member reports with its queues."""
    told: dict[Queue, int] = {}
    for queue in queues:
        at = queue.last_pull_at if queue.held_since is None else queue.held_since
        if at is not None:
            told[key_of(queue, turn.system)] = at
    return told


def keep_pulls(turn: GroupContext, queues: Iterable[HeldQueue]) -> None:
    """Remember when each queue was last pulled, until its owner changes."""
    pulls = turn.group.pulls
    for queue in queues:
        if queue.last_pull_at is not None:
            pulls[key_of(queue, turn.system)] = queue.last_pull_at


def measured_pauses(
    turn: GroupContext, moved: Mapping[Queue, tuple[str, str]], pulls: Mapping[Queue, tuple[str, int]], at: int
) -> dict[str, int]:
    """Measure the pauses of a rebalance if its own event time shows all of them; else return nothing.

    Args:
        pulls: The member known to pull each queue by then, and when.
    """
    total, end = 0, None
    for queue, (loser, taker) in moved.items():
        who, pulled = pulls.get(queue, (None, 0))
        if who != taker:
            return {}
        released = _released_at(turn, queue, loser, at)
        if released is None or pulled < released:
            return {}
        total += pulled - released
        end = pulled if end is None else max(end, pulled)
    if end is None:
        return {}
    goings = [turn.group.departed[loser].left_at for loser, _ in moved.values() if loser in turn.group.departed]
    began = min((one for one in goings if one < at), default=None)
    seen = {"queue_pause_ms": total}
    return seen if began is None or began > end else {**seen, "pause_ms": end - began}


def expect(turn: GroupContext, waits: Mapping[Queue, int]) -> None:
    """Remember the moving queues until their new owner is observed; none where members report no queues."""
    group = turn.group
    if not group.has_reported:
        return
    for queue, wait in waits.items():
        standing = group.standing.get(queue)
        if standing is not None:
            standing.estimate, standing.taker = wait, None
        elif len(group.standing) < MAX_IDLE_QUEUES:
            group.standing[queue] = IdleQueue(wait)


def release(turn: GroupContext, queue: Queue, loser: str, at: int, *, seen_without: bool) -> None:
    """Record that a queue's last owner released it.

    Args:
        seen_without: The queue is now reported without an owner; else it already has its next one.
    """
    group = turn.group
    standing = group.standing.get(queue)
    if standing is None:
        if len(group.standing) >= MAX_IDLE_QUEUES:
            return
        standing = group.standing[queue] = IdleQueue()
    released = _released_at(turn, queue, loser, at)
    standing.released_at = at if released is None and seen_without else released
    standing.taker = None
    group.pulls.pop(queue, None)


def take_over(turn: GroupContext, queue: Queue, taker: str, at: int) -> tuple[int | None, int | None]:
    """Record a queue's new owner; return how long it had none: measured, estimated."""
    group = turn.group
    standing = group.standing.get(queue)
    pulled = turn.pulled.get(queue)
    if pulled is None and turn.system == "metaq":
        pulled = at  # an owner's node is the owning itself
    if standing is None:
        return None, None
    released = standing.released_at
    if pulled is not None and released is not None and pulled >= released:
        del group.standing[queue]
        return pulled - released, None
    if released is None or pulled is not None:
        # Its release was not observed, or it was pulled before that: both happened between two polls.
        del group.standing[queue]
    else:
        standing.taker = taker
    return None, standing.estimate


def resume(turn: GroupContext, member_id: str, at: int) -> None:
    """Write the pauses of queues taken over earlier whose new owner now reports its first pull."""
    group = turn.group
    for queue, pulled in turn.pulled.items():
        standing = group.standing.get(queue)
        if standing is None or standing.taker != member_id or standing.released_at is None:
            continue
        if pulled >= standing.released_at:
            topic, broker, queue_id = queue
            del group.standing[queue]
            turn.write(
                at,
                QueueResumed(
                    topic=topic,
                    broker=broker,
                    queue_id=queue_id,
                    member_id=member_id,
                    origin="reported",
                    pause_ms=pulled - standing.released_at,
                ),
            )


def _released_at(turn: GroupContext, queue: Queue, loser: str, at: int) -> int | None:
    """Return when an owner released a queue; None where only a report at ``at`` without the queue shows it."""
    departed = None if loser in turn.group.members else turn.group.departed.get(loser)
    if departed is None:
        return None
    if departed.left_reason == "expired":
        # It hung for a session timeout before its broker removed it.
        span = turn.timeout_of(departed.member) + EXPIRY_SCAN_MS + PULL_HELD_MS
        last = _last_pull(turn, queue, departed.left_at, span)
        return departed.left_at if last is None else last
    return departed.left_at if departed.left_at < at else None


def _last_pull(turn: GroupContext, queue: Queue, until: int, span: int) -> int | None:
    """Return an owner's last known pull if it is recent enough to have been its last one."""
    last = turn.group.pulls.get(queue)
    return last if last is not None and until - span <= last <= until else None
