"""Core: topics that members newly subscribe to by a pattern, and topics of which a group learned late. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from udfs.group.assignment.metadata_age import metadata_age_ms
from udfs.group.assignment.rebalance_plan import COOPERATIVE
from udfs.group.batch.finding_texts import counted
from udfs.group.members.departure_causes import INFERRED
from udfs.group.state.group import Member, Owners
from udfs.group.state.view import GroupView
from udfs.model.events import MemberInfo
from udfs.model.first_few import first_few
from udfs.model.journal import TriggerKind

_TOPICS_NAMED = 3
# A client finds a new topic within the age of its metadata; the rebalance that follows may take as long again.
_METADATA_AGES = 2


def subscription_change(
    view: GroupView, member: Member, info: MemberInfo, pattern: str | None, assigned: Collection[str], at: int
) -> tuple[str | None, str | None]:
    """Return how a member's subscription changed with a generation.

    Clients of classic groups resolve their patterns themselves and do not send them. If all added topics are newer than
    the metadata of the member's other topics, and none was dropped, a pattern has found them.

    Args:
        pattern: The member's pattern, if its coordinator resolves patterns. assigned: The topics of which the
            generation assigns queues: one that metadata does not show yet has just been made.

    Returns: the topic, if a pattern newly matches just this one; which topics were added and which dropped, None if
        only their order changed.
    """
    before, now = set(member.subscriptions or ()), set(info.subscriptions or ())
    added, dropped = now - before, before - now
    parts = [] if pattern is None else [f"pattern {pattern}"]
    parts += [f"added {first_few(sorted(added), _TOPICS_NAMED)}"] if added else []
    parts += [f"dropped {first_few(sorted(dropped), _TOPICS_NAMED)}"] if dropped else []
    detail = ", ".join(parts) or None
    if pattern is None:
        made_at = None if dropped else _made_at(view, [member], before, added, assigned, at)
        if made_at is None:
            return None, detail
        age = "just" if made_at == at else f"{(at - made_at) / 1000:.1f} s"
        detail = f"{detail}; {INFERRED}: a pattern matches what was made {age} before"
    return (next(iter(added)) if len(added) == 1 else None), detail


def _made_at(
    view: GroupView,
    members: Iterable[Member],
    before: Collection[str],
    added: Collection[str],
    assigned: Collection[str],
    at: int,
) -> int | None:
    """Return when the last of some topics was made, if all are so new that members may just have found them.

    A topic that is reported for the first time may be old, unless other topics of the members had been reported before.
    """
    times = [
        at if topic in assigned and view.topics.at(topic, at) is None else view.topics.appeared_at(topic, at)
        for topic in added
    ]
    known = [time for time in times if time is not None]
    if not known or len(known) < len(times) or min(known) < at - _METADATA_AGES * metadata_age_ms(members):
        return None
    if not any(view.topics.before(topic, min(known)) for topic in before):
        return None
    return max(known)


def learned_topics(view: GroupView, reported: Owners | None, at: int) -> Iterator[tuple[TriggerKind, str, str]]:
    """Yield topics of which the last generation assigned nothing, and this one does: kind of cause, topic, detail.

    The assignors of clients assign all queues of all subscribed topics that they know, so the leader did not know them.
    """
    group, last = view.group, view.group.last_rebalance_at or 0
    is_whole = group.has_reported and (group.assigned_at or 0) >= last
    is_cooperative = group.last_strategy == COOPERATIVE
    # A cooperative generation may hold queues back, but only those that members are still to release.
    if reported is None or not is_whole or (is_cooperative and group.revoked_pending):
        return
    numbers = Counter(queue[0] for queue in reported)
    known = group.current_topics()
    for topic in sorted(numbers.keys() & known - {queue[0] for queue in group.reported}):
        if is_cooperative and not group.counts.get(topic):
            continue  # they may have been such queues
        made_at = _made_at(view, group.members.values(), known - {topic}, {topic}, (), at)
        if made_at is not None and made_at > last:
            yield "queue_count_changed", topic, f"0 -> {numbers[topic]}"
        else:
            yield "topic_learned", topic, learned_detail(view, topic)


def learned_detail(view: GroupView, topic: str) -> str:
    """Return what is known of a topic that a group learned late."""
    queues = view.topics.before(topic, (view.group.last_rebalance_at or 0) + 1)
    if queues:
        return f"{INFERRED}: nothing of it was assigned before, though it had {counted(len(queues), 'queue')}"
    return "nothing of it was assigned before, and it may be new"
