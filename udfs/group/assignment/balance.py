"""Core: how evenly a group's members hold its queues, not counting retry topics. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from udfs.group.state.assignment_diff import Balance, measure_balance
from udfs.group.state.group import Member, Owners, Queue
from udfs.group.state.view import GroupView


def balance_of(view: GroupView, owners: Owners, queues: Sequence[Queue]) -> Balance:
    """Return the balance figures of an assignment over these queues of subscribed topics, not counting retry topics."""
    subscribers, quiet = _subscribers(view, owners)
    if quiet:
        owners = {queue: holders for queue, holders in owners.items() if queue[0] not in quiet}
        queues = [queue for queue in queues if queue[0] not in quiet]
    return measure_balance(owners, subscribers, queues, view.mode == "message")


def idle_members(view: GroupView, owners: Owners) -> list[str]:
    """Return the members that ``balance_of`` counts as idle."""
    subscribers, quiet = _subscribers(view, owners)
    holding = {member for queue, holders in owners.items() if queue[0] not in quiet for member in holders}
    return [member_id for member_id in subscribers if member_id not in holding]


def _subscribers(view: GroupView, owners: Owners) -> tuple[list[str], set[str]]:
    """Return the members that subscribe to something, and the topics excluded from the figures (retry topics)."""
    members = view.group.members.values()
    topics = {topic for subscriptions in distinct_subscriptions(members) for topic in subscriptions}
    quiet = {topic for topic in topics | {queue[0] for queue in owners} if view.is_quiet(topic)}
    # Kafka's admin call does not return the subscriptions of new-protocol members: all take part.
    unknown = view.group.polled
    subscribers = [
        member.member_id
        for member in members
        if (member.subscriptions and not quiet.issuperset(member.subscriptions))
        or (unknown and member.subscriptions is None)
    ]
    return subscribers, quiet


def distinct_subscriptions(members: Iterable[Member]) -> set[tuple[str, ...]]:
    """Return the distinct topic lists to which members subscribe; usually there is one."""
    return {member.subscriptions for member in members if member.subscriptions}
