"""Core: a rebalance as its group remembers it: what clients did, and which topics were new. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from udfs.group.batch.standstill_texts import names_late_poll
from udfs.group.state.episodes import MAX_ROOT_CLIENTS, MAX_ROOT_TOPICS, Culprit, Deed, Root, RootClient
from udfs.group.state.flapping import mark_of
from udfs.group.state.group import Member, Owners
from udfs.group.state.view import GroupView
from udfs.model.journal import TRIGGER_ORDER, Rebalance, Trigger

_DEEDS: Final[Mapping[str, int]] = {
    "member_joined": Deed.JOINED,
    "member_left": Deed.DEPARTED | Deed.LEFT,
    "member_gone": Deed.DEPARTED,
    "session_expired": Deed.DEPARTED,
    "subscription_changed": Deed.SUBSCRIBED,
}
# What distinguishes the clients of a deployment: numbers, hashes, and the suffixes that Kubernetes makes, without
# vowels and without 0, 1 and 3.
_SUFFIXES = re.compile(r"(?:(?:^|[-_.])(?:\d+|[bcdfghjklmnpqrstvwxz2456789]{5,10}|[0-9a-f]{4,32}))+$")


def root_of(view: GroupView, row: Rebalance, former: Sequence[Root], before: Owners) -> tuple[Root, dict[int, Culprit]]:
    young = {
        topic
        for root in former
        if any(client.deeds & Deed.SUBSCRIBED for client in root.clients)
        for topic in root.topics
    }
    named: dict[int, Culprit] = {}
    deeds: dict[int, int] = {}
    ghosts: dict[int, tuple[int, int]] = {}
    topics: set[str] = set()
    is_first = row.trigger == "group_created"
    namesakes = _namesakes(view, row)
    for trigger in () if is_first else row.triggers:
        if trigger.kind == "queue_count_changed" and trigger.topic is not None:
            topics.add(trigger.topic)
        deed = _DEEDS.get(trigger.kind)
        if deed is None or trigger.client is None or trigger.member_id is None:
            continue
        if deed == Deed.SUBSCRIBED:
            found = _new_topics(view, trigger.member_id, young)
            topics |= found
            if found:
                deeds[mark_of(trigger.member_id)] = deed
            continue
        mark = mark_of(trigger.client)
        member = view.member_of_id(trigger.member_id)
        named[mark] = Culprit(mark, trigger.client, trigger.host, None if member is None else member.instance_id)
        if names_late_poll(trigger.detail):
            deed |= Deed.POLLED_TOO_LATE
        deed |= _of_namesakes(view, row, trigger, namesakes.get(trigger.client, ()), before, ghosts)
        deeds[mark] = deeds.get(mark, 0) | deed
    clients = [
        RootClient(mark, _mark_of_prefix(named[mark].client) if mark in named else 0, deed, *ghosts.get(mark, ()))
        for mark, deed in deeds.items()
    ]
    root = Root(
        at=row.event_time,
        rebalance_id=bytes.fromhex(row.rebalance_id),
        kind=TRIGGER_ORDER.index(row.trigger),
        clients=clients[:MAX_ROOT_CLIENTS],
        moved=row.queues_moved,
        pause_ms=row.pause_ms,
        queue_pause_ms=row.queue_pause_ms,
        repeated=row.repeated_messages,
        topics=sorted(topics)[:MAX_ROOT_TOPICS],
        follows=row.logical_id not in (None, row.rebalance_id) and bool(former),
    )
    return root, named


def _new_topics(view: GroupView, member_id: str, young: Iterable[str]) -> set[str]:
    """Return topics that a member subscribes to and the group had not, or only since the remembered rebalances."""
    member = view.group.members.get(member_id)
    topics = set(() if member is None else member.subscriptions or ())
    return {topic for topic in topics if topic in young or topic not in view.group.counts}


def _namesakes(view: GroupView, row: Rebalance) -> dict[str, list[Member]]:
    """Return the present members of the clients that come or go, by client."""
    clients = {trigger.client for trigger in row.triggers if trigger.client and trigger.kind in _DEEDS}
    found: dict[str, list[Member]] = {client: [] for client in clients}
    for member in view.group.members.values() if clients else ():
        client = view.client_of(member)
        if client in found:
            found[client].append(member)
    return {client: sorted(members, key=_by_session) for client, members in found.items()}


def _of_namesakes(
    view: GroupView,
    row: Rebalance,
    trigger: Trigger,
    present: Sequence[Member],
    before: Owners,
    ghosts: dict[int, tuple[int, int]],
) -> int:
    """Return what the present members of a client show: a ghost, or that several processes have its name.

    Args:
        present: Those that joined first in front.
    """
    at, client = row.event_time, trigger.client or ""
    for older, younger in pairwise(present):
        # A process that is dead when its successor joins has been removed a session timeout later.
        if younger.joined_at + view.timeout_of(older) < at:
            return Deed.SHARED
    if trigger.kind == "member_joined":
        return Deed.BESIDE if any(member.member_id != trigger.member_id for member in present) else 0
    departed = view.group.departed.get(trigger.member_id or "")
    if departed is None:
        return 0
    successor = next((member for member in present if member.joined_at >= departed.member.joined_at), None)
    if successor is None:
        return 0
    stayed = departed.left_at - successor.joined_at
    if trigger.kind == "session_expired" and successor.joined_at >= at:
        stayed = row.pause_ms or 0  # the coordinator waited for it before its successor could join
    if stayed <= 0:
        return 0
    held = sum(trigger.member_id in holders for holders in before.values())
    former = ghosts.get(mark_of(client), (0, 0))
    ghosts[mark_of(client)] = max(former, (stayed, held))
    return Deed.GHOST


def members_of(view: GroupView, client: str) -> list[Member]:
    """Return the present members of a client."""
    return [member for member in view.group.members.values() if view.client_of(member) == client]


def _by_session(member: Member) -> tuple[int, str]:
    return member.joined_at, member.member_id


def prefix_of(client: str | None) -> str:
    """Return what the clients of one deployment have in common; empty for an address.

    Example:
        >>> prefix_of("payments-3@10.0.0.7"), prefix_of("payments-6d9f7c8b5d-x2k4p@10.0.0.7"), prefix_of("10.0.0.7")
        ('payments', 'payments', '')
    """
    return _SUFFIXES.sub("", (client or "").partition("@")[0])


def _mark_of_prefix(client: str | None) -> int:
    prefix = prefix_of(client)
    return mark_of(prefix) if prefix else 0
