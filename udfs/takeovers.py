"""Core: queues that go from one member to another where nobody coordinates it: for how long they stand still. No I/O.

A queue stands still from its old owner's release to its new owner's first pull. The release is the old owner's going,
else the report that shows it without the queue; of one that hung it is its last pull. Of others a pull says nothing: a
broker holds it for as long as there is nothing to read, and answers it all the while. What the new owner says shows its
latest pull; its first report with the queue comes within one poll of the first. Where one of the two was not seen, the
clients' own timings give an estimate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from udfs.client_timings import (
    EXPIRY_SCAN_MS,
    PULL_HELD_MS,
    Loss,
    learning_ms,
    queue_wait_ms,
    whole_wait_ms,
)
from udfs.events import HeldQueue
from udfs.group_state import MAX_STANDING, Owners, Queue, Standstill, key_of
from udfs.journal import QueueResumed
from udfs.turn import Turn


def is_timed(turn: Turn) -> bool:
    """Judge whether members of this group take queues over by themselves, at times that can be told or estimated."""
    return turn.group.generation is None and turn.system != "kafka" and turn.mode == "clustering"


def moved(before: Owners, after: Owners) -> dict[Queue, tuple[str, str]]:
    """Answer the queues that go from one owner to another, with both; of several owners the first that changed."""
    found: dict[Queue, tuple[str, str]] = {}
    for queue, holders in after.items():
        losers = [one for one in before.get(queue, ()) if one not in holders]
        takers = [one for one in holders if one not in before.get(queue, ())]
        if losers and takers:
            found[queue] = (losers[0], takers[0])
    return found


# ---- estimates


def expected_waits(turn: Turn, before: Owners, after: Owners, kinds: Collection[str]) -> dict[Queue, int]:
    """Estimate for each queue that moves how long it has no owner."""
    group = turn.group
    learning = learning_ms(turn.system, kinds)
    waits: dict[Queue, int] = {}
    for queue, (loser, taker) in moved(before, after).items():
        member = group.members[taker]
        wait = queue_wait_ms(turn.system, learning, _loss(turn, loser), member.client_version, bool(member.ordered))
        waits[queue] = wait + _unnoticed(turn, loser)
    return waits


def estimates(
    turn: Turn, before: Owners, after: Owners, waits: Mapping[Queue, int], kinds: Collection[str]
) -> dict[str, int]:
    """Estimate a rebalance of which nobody saw how long it took; nothing where nobody held or nobody holds anything."""
    if not before or not after:
        return {}
    takers = {one for queue, holders in after.items() for one in holders if one not in before.get(queue, ())}
    # The last of several takers learns later than the middle one.
    whole = whole_wait_ms(learning_ms(turn.system, kinds), len(takers))
    return {
        "pause_estimated_ms": max(whole, max(waits.values(), default=0)),
        "queue_pause_estimated_ms": sum(waits.values()),
    }


def _loss(turn: Turn, loser: str) -> Loss:
    if loser in turn.group.members:
        return "alive"
    departed = turn.group.departed.get(loser)
    if departed is None or departed.left_reason not in ("left", "expired"):
        return "gone"
    return departed.left_reason


def _unnoticed(turn: Turn, loser: str) -> int:
    """Answer how long its broker takes to see an expiry that the member's own heartbeats told."""
    departed = None if loser in turn.group.members else turn.group.departed.get(loser)
    by_itself = departed is not None and departed.left_reason == "expired" and departed.member.by_heartbeats
    return EXPIRY_SCAN_MS // 2 if by_itself and turn.system == "rocketmq" else 0


# ---- what was seen


def first_pulls(turn: Turn, queues: Iterable[HeldQueue]) -> dict[Queue, int]:
    """Answer when a member is known to have read each queue that it says it holds."""
    told: dict[Queue, int] = {}
    for queue in queues:
        at = queue.last_pull_at if queue.held_since is None else queue.held_since
        if at is not None:
            told[key_of(queue, turn.system)] = at
    return told


def keep_pulls(turn: Turn, queues: Iterable[HeldQueue]) -> None:
    """Remember when each queue was last pulled, until its owner is another."""
    pulls = turn.group.pulls
    for queue in queues:
        if queue.last_pull_at is not None:
            pulls[key_of(queue, turn.system)] = queue.last_pull_at


def seen_pauses(
    turn: Turn, before: Owners, after: Owners, pulls: Mapping[Queue, tuple[str, int]], at: int
) -> dict[str, int]:
    """Measure a rebalance as far as its own moment shows all of it; nothing where it does not.

    Args:
        pulls: Who is seen to read each queue by then, and when.
    """
    changes = moved(before, after)
    total, end = 0, None
    for queue, (loser, taker) in changes.items():
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
    goings = [turn.group.departed[loser].left_at for loser, _ in changes.values() if loser in turn.group.departed]
    began = min((one for one in goings if one < at), default=None)
    seen = {"queue_pause_ms": total}
    return seen if began is None or began > end else {**seen, "pause_ms": end - began}


def expect(turn: Turn, waits: Mapping[Queue, int]) -> None:
    """Remember what moves, until its new owner is seen; nothing where nobody says what he holds."""
    group = turn.group
    if not group.has_reported:
        return
    for queue, wait in waits.items():
        standing = group.standing.get(queue)
        if standing is not None:
            standing.estimate, standing.taker = wait, None
        elif len(group.standing) < MAX_STANDING:
            group.standing[queue] = Standstill(wait)


def release(turn: Turn, queue: Queue, loser: str, at: int, *, seen_without: bool) -> None:
    """Note that a queue's last owner holds it no more.

    Args:
        seen_without: The queue is seen without any owner now; else it has its next one already.
    """
    group = turn.group
    standing = group.standing.get(queue)
    if standing is None:
        if len(group.standing) >= MAX_STANDING:
            return
        standing = group.standing[queue] = Standstill()
    released = _released_at(turn, queue, loser, at)
    standing.released_at = at if released is None and seen_without else released
    standing.taker = None
    group.pulls.pop(queue, None)


def take_over(turn: Turn, queue: Queue, taker: str, at: int) -> tuple[int | None, int | None]:
    """Note that a queue is seen with a new owner; answer for how long it had none: measured, estimated."""
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
        # Its release will not be seen any more, or it was read before that was seen: both happened between two looks.
        del group.standing[queue]
    else:
        standing.taker = taker
    return None, standing.estimate


def resume(turn: Turn, member_id: str, at: int) -> None:
    """Write of queues that a member took over before when it is now seen to have read them."""
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


def _released_at(turn: Turn, queue: Queue, loser: str, at: int) -> int | None:
    """Answer when an owner let a queue go; None where nothing tells but that it holds it no more, seen at ``at``."""
    departed = None if loser in turn.group.members else turn.group.departed.get(loser)
    if departed is None:
        return None
    if departed.left_reason == "expired":
        # It hung for a session timeout before its broker noticed.
        span = turn.timeout_of(departed.member) + EXPIRY_SCAN_MS + PULL_HELD_MS
        last = _last_pull(turn, queue, departed.left_at, span)
        return departed.left_at if last is None else last
    return departed.left_at if departed.left_at < at else None


def _last_pull(turn: Turn, queue: Queue, until: int, span: int) -> int | None:
    """Answer an owner's last known pull where it is young enough to have been its last."""
    last = turn.group.pulls.get(queue)
    return last if last is not None and until - span <= last <= until else None
