"""Core: groups whose coordinator assigns, but whose generations only polls show, so the monitor counts them.

A snapshot of such a group has ``generation_source`` ``counted`` and no number. Kafka's admin calls return such
snapshots: all changes between two polls are one generation. Members with Kafka's own clients or librdkafka write the
generation before they joined into their subscription (KIP-792): that number is a lower bound, so counted numbers are
mostly the coordinator's own, and a gap shows generations between two polls. No I/O.
"""

from __future__ import annotations

from udfs.group.batch.finding_texts import counted
from udfs.group.events.reported_assignment import reported_owners
from udfs.group.kafka.triggers import Causes
from udfs.group.members.departure_causes import INFERRED
from udfs.group.members.descriptions import distinct
from udfs.group.members.static_members import returned
from udfs.group.state.group import Owners
from udfs.group.state.view import GroupView
from udfs.model.events import GroupSnapshot
from udfs.strategies.registry import qualified_name

# States in which members of the new protocol still give queues up and take them over (librdkafka has no names for these
# states).
_CONVERGING = frozenset({"assigning", "reconciling", "unknown"})
_NAMED_TOPICS = 10  # the detail of a cause names at most this many topics


def lacks_subscriptions(snapshot: GroupSnapshot) -> bool:
    """Return whether a snapshot lacks its members' subscriptions, so that nothing can be recomputed."""
    return is_counted(snapshot) and any(info.subscriptions is None for info in snapshot.members)


def is_counted(snapshot: GroupSnapshot) -> bool:
    """Return whether a snapshot's number is counted from polls."""
    return snapshot.generation_source == "counted"


def is_converging(snapshot: GroupSnapshot) -> bool:
    """Return whether a poll shows a group whose members have not yet reached their target."""
    return is_counted(snapshot) and (snapshot.state or "").lower() in _CONVERGING


def add_causes_of_assignment(
    view: GroupView, snapshot: GroupSnapshot, reported: Owners | None, causes: Causes, at: int, event_id: str | None
) -> None:
    """Add why a generation without any other cause was made, if polls do not show subscriptions.

    The assignors of brokers assign all queues of all subscribed topics. So a topic of which nothing was assigned before
    is new, or had no subscriber. A topic of which nothing is assigned any more was deleted, or has no subscriber any
    more; only the next polls of the metadata show which.

    Args:
        reported: The assignment that the poll shows.
    """
    group = view.group
    if causes.triggers or reported is None or not group.exists or not lacks_subscriptions(snapshot):
        return
    topics = {queue[0] for queue in reported}
    for topic in sorted(topics - group.counts.keys()):
        if view.queues_at(topic, at) is None:
            number = sum(queue[0] == topic for queue in reported)
            causes.add("queue_count_changed", topic=topic, detail=f"unknown -> {number}", event_id=event_id)
            continue
        detail = f"{INFERRED}: nothing of {topic} was assigned before"
        for member_id in sorted({holder for queue, held in reported.items() if queue[0] == topic for holder in held}):
            causes.add("subscription_changed", member_id=member_id, detail=detail, event_id=event_id)
    if causes.triggers:
        return
    if group.converging:
        causes.add("cooperative_follow_up", detail="members had not converged", event_id=event_id)
    elif left := sorted(group.counts.keys() - topics):
        detail = f"nothing of {counted(len(left), 'topic')} is assigned any more: {', '.join(left[:_NAMED_TOPICS])}"
        causes.add("unexplained", detail=detail, event_id=event_id)


def counted_generation(view: GroupView, snapshot: GroupSnapshot) -> int:
    """Return the number of the generation that a poll shows: the current one, or the next if anything changed.

    Returns: 0 for a new group without members.
    """
    group = view.group
    current = group.generation
    # A member that rejoined reports its previous generation.
    proven = 1 + max((info.owned_generation or 0 for info in snapshot.members), default=0)
    if current is None or (current == 0 and not group.exists):
        return proven if snapshot.members else 0
    if snapshot.event_time < (group.last_snapshot_at or snapshot.event_time):
        return current  # newer polls cover the rest
    if group.polled and snapshot.members and proven > current:
        return proven
    return current + 1 if _differs(view, snapshot) else current


def _differs(view: GroupView, snapshot: GroupSnapshot) -> bool:
    """Return whether a poll shows a generation other than the current one."""
    group = view.group
    if group.preparing_since is not None:
        return True
    renamed = returned(group, snapshot.members)
    if {renamed.get(member_id, member_id) for member_id in group.members} != {
        info.member_id for info in snapshot.members
    }:
        return True
    if not snapshot.members:
        return False
    if snapshot.strategy and qualified_name(snapshot.strategy, view.system) != group.last_strategy:
        return True
    by_new_id = {renamed.get(member_id, member_id): member for member_id, member in group.members.items()}
    for info in snapshot.members:
        before = by_new_id[info.member_id].subscriptions
        if info.subscriptions is not None and before is not None and distinct(info.subscriptions) != before:
            return True
    reported = reported_owners(view, snapshot)
    return reported is not None and reported != _under_new_ids(group.reported, renamed)


def _under_new_ids(owners: Owners, renamed: dict[str, str]) -> Owners:
    if not renamed:
        return owners
    return {queue: tuple(renamed.get(holder, holder) for holder in held) for queue, held in owners.items()}
