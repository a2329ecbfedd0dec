"""Core: the causes of a reported generation, found by comparing it with the previous one. No I/O."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from udfs.group.events.topic_changes import FIRST_METADATA
from udfs.group.kafka.inferred_departures import Inferred, infer_departures
from udfs.group.kafka.topic_discovery import learned_detail, subscription_change
from udfs.group.members.client_ids import match_departures
from udfs.group.members.departure_causes import INFERRED, DepartureCause, departure_cause
from udfs.group.members.descriptions import distinct
from udfs.group.members.returned_clients import return_notes
from udfs.group.members.static_members import returned
from udfs.group.state.group import Evidence, Member, Owners, Queue
from udfs.group.state.view import GroupView
from udfs.model.events import Departure, GroupSnapshot, MemberInfo
from udfs.model.journal import TRIGGER_ORDER, Trigger, TriggerKind
from udfs.strategies.registry import qualified_name

# The detail of a topic that was deleted and re-created under its name.
MADE_AGAIN = ", made again"
_OF_MEMBERS = ("member_left", "session_expired", "member_gone", "member_joined")


class Causes:
    """The causes of one reported generation.

    Attributes:
        triggers: The observed causes. departures: How each missing member departed.
        began_at: The first evidence that the rebalance began; None if there is none.
        evidence_left: Evidence that this generation does not show.
        returned: The new ids of static members that came back under them with this generation.
        notes: Sentences about members that returned, or whose client did, by member id.
        learned: Topics of which only this generation assigns queues, with the kind of cause and its detail.
        leader: This generation's leader, if it is the same as the previous generation's.
    """

    def __init__(self) -> None:
        self.triggers: list[Trigger] = []
        self.departures: dict[str, DepartureCause] = {}
        self.began_at: int | None = None
        self.evidence_left: list[Evidence] = []
        self.returned: list[str] = []
        self.notes: dict[str, str] = {}
        self.learned: list[tuple[TriggerKind, str, str]] = []
        self.leader: str | None = None

    def add(self, kind: TriggerKind, evidence: Evidence | None = None, **fields: str | None) -> None:
        """Add one cause; its evidence, if any, names its event."""
        if evidence is not None and evidence.event_id is not None:
            fields = {**fields, "event_id": evidence.event_id}
        self.triggers.append(Trigger(kind=kind, **fields))

    def explain(self, reason: str | None) -> None:
        """Add the coordinator's own reason to the cause that it concerns: the named member's, else the main one."""
        if reason is None or not self.triggers:
            return
        named = [trigger for trigger in self.triggers if trigger.member_id is not None and trigger.member_id in reason]
        about = min(named or self.triggers, key=lambda trigger: TRIGGER_ORDER.index(trigger.kind))
        is_observed = about.detail is not None and not about.detail.startswith(INFERRED)
        if about.kind in ("member_left", "session_expired") and is_observed:
            return  # the departure's event already has that reason
        detail = reason if about.detail is None else f"{about.detail}; {reason}"
        self.triggers[self.triggers.index(about)] = msgspec.structs.replace(about, detail=detail)

    def add_notes(self) -> None:
        """Add the notes about returned members to their causes."""
        for place, trigger in enumerate(self.triggers):
            note = self.notes.get(trigger.member_id or "")
            if note is not None and trigger.kind in _OF_MEMBERS:
                detail = note if trigger.detail is None else f"{trigger.detail}; {note}"
                self.triggers[place] = msgspec.structs.replace(trigger, detail=detail)

    def began(self, at: int) -> None:
        """Record that the rebalance had begun by then."""
        self.began_at = at if self.began_at is None else min(at, self.began_at)


class ShownGeneration(NamedTuple):
    """What a new generation shows.

    Attributes:
        members: Its members. owners: The whole assignment, if it is known. strategy: The strategy, if one is named.
        departures: How members departed, as far as it says. joined_at: When they had joined.
        resized: The queue counts of topics subscribed in both generations: before, now.
        made_again: Topics among them that were re-created under that name.
        infers: Departures are inferred from commits up to the generation.
        members_at: When the members were these, if that is before the generation was complete: they may have departed
            since.
        patterns: Patterns of members that subscribe by pattern, if reported.
        counts: How many queues the new generation shows of each topic, if metadata may have shown more since.
    """

    members: Sequence[MemberInfo]
    owners: Owners | None
    strategy: str | None
    departures: Sequence[Departure]
    event_id: str
    at: int
    resized: Mapping[str, tuple[int | None, int]]
    made_again: Container[str] = ()
    joined_at: int | None = None
    infers: bool = True
    members_at: int | None = None
    patterns: Mapping[str, str] = MappingProxyType({})
    counts: Mapping[str, int] = MappingProxyType({})


def compare(view: GroupView, shown: ShownGeneration) -> Causes:
    """Compare a new generation with the current one."""
    at = shown.at
    causes, group = Causes(), view.group
    infos = {info.member_id: info for info in shown.members}
    evidence = [remembered for remembered in group.evidence if remembered.time <= at]
    departed = [member_id for member_id in group.members if member_id not in infos]
    # If no member stays, the departure of the last one would have ended the rebalance at once.
    has_other_cause = len(departed) != 1 or not infos or bool(infos.keys() - group.members.keys())
    has_other_cause |= any(before != now for before, now in shown.resized.values())
    joined_at = shown.joined_at or group.join_ended_at
    inferred = {}
    if shown.infers:
        inferred = infer_departures(view, departed, at, joined_at=joined_at, has_other_cause=has_other_cause)
    causes.departures = _departures(view, shown.departures, departed, inferred, at, shown.event_id)
    for member_id, cause in causes.departures.items():
        causes.triggers.append(
            Trigger(kind=cause.kind, member_id=member_id, detail=cause.detail, event_id=cause.event_id)
        )
        if cause.at < at:
            causes.began(cause.at)
    _compare_members(view, shown, infos, evidence, causes)
    _compare_strategies(view, shown, infos, causes)
    _compare_sizes(view, shown, evidence, causes)
    causes.notes = return_notes(view, infos, causes.departures, at)
    causes.evidence_left = _evidence_left(view, shown, causes, infos)
    return causes


def _compare_sizes(view: GroupView, shown: ShownGeneration, evidence: Sequence[Evidence], causes: Causes) -> None:
    event_id = shown.event_id
    for topic, (before, now) in sorted(shown.resized.items()):
        if before == now and topic not in shown.made_again:
            continue
        if before is None and view.group.recorded is None:
            causes.add("topic_learned", topic=topic, detail=learned_detail(view, topic), event_id=event_id)
            continue
        proofs = (
            topic_proof
            for topic_proof in reversed(evidence)
            if topic_proof.topic == topic
            and topic_proof.detail != FIRST_METADATA
            and not _exceeds(view, topic_proof, shown.counts, shown.at)
        )
        earlier = "unknown" if before is None else before
        detail = f"{earlier} -> {now}" + (MADE_AGAIN if topic in shown.made_again else "")
        causes.add("queue_count_changed", next(proofs, None), topic=topic, detail=detail, event_id=event_id)


def _compare_members(
    view: GroupView,
    shown: ShownGeneration,
    infos: Mapping[str, MemberInfo],
    evidence: Sequence[Evidence],
    causes: Causes,
) -> None:
    event_id = shown.event_id
    group, assigned = view.group, None
    for member_id, info in sorted(infos.items()):
        member, proof = group.members.get(member_id), None
        if member is None:
            proof = _newest(evidence, "member_joined", member_id)
            causes.add("member_joined", proof, member_id=member_id, event_id=event_id)
        elif _subscribes_otherwise(member, info):
            proof = _newest(evidence, "subscription_changed", member_id)
            assigned = assigned or {queue[0] for queue in shown.owners or ()}
            pattern = shown.patterns.get(member_id)
            topic, detail = subscription_change(view, member, info, pattern, assigned, shown.at)
            causes.add(
                "subscription_changed", proof, member_id=member_id, topic=topic, detail=detail, event_id=event_id
            )
        if proof is not None:
            causes.began(proof.time)


def _subscribes_otherwise(member: Member, info: MemberInfo) -> bool:
    return info.subscriptions is not None and distinct(info.subscriptions) != (member.subscriptions or ())


def _compare_strategies(
    view: GroupView, shown: ShownGeneration, infos: Mapping[str, MemberInfo], causes: Causes
) -> None:
    group = view.group
    if not group.members or not infos:
        return
    if shown.strategy:
        now = qualified_name(shown.strategy, view.system)
        before = group.last_strategy
        if before is not None and qualified_name(before, view.system) != now:
            causes.add("strategy_changed", detail=f"{before} -> {now}", event_id=shown.event_id)
        return
    for member_id, info in sorted(infos.items()):
        member = group.members.get(member_id)
        if member is not None and info.strategies is not None and member.strategies not in (None, info.strategies):
            causes.add("strategy_changed", member_id=member_id, event_id=shown.event_id)


def _newest(evidence: Sequence[Evidence], kind: TriggerKind, member_id: str) -> Evidence | None:
    return next((proof for proof in reversed(evidence) if proof.kind == kind and proof.member_id == member_id), None)


def returned_members(view: GroupView, snapshot: GroupSnapshot, at: int, event_id: str) -> dict[str, str]:
    """Return the new id of each static member that came back under one with a new generation.

    If an event, a deadline or the snapshot itself shows that the old member departed, another member has joined with
    its instance id. A departure inferred only from commits is no such sign: a restarting member stops committing, too.
    """
    found = returned(view.group, snapshot.members)
    departures = _departures(view, snapshot.departures or (), list(found), {}, at, event_id)
    return {former_id: found[former_id] for former_id, cause in departures.items() if cause.kind == "member_gone"}


def _departures(
    view: GroupView,
    named: Sequence[Departure],
    departed: Sequence[str],
    inferred: Mapping[str, Inferred],
    at: int,
    event_id: str,
) -> dict[str, DepartureCause]:
    """Return how the members departed that are missing from a generation, sorted."""
    group, found = view.group, dict[str, DepartureCause]()
    evidence = [proof for proof in group.evidence if proof.time <= at]
    departures = match_departures([group.members[departed_id] for departed_id in sorted(departed)], named)
    for member_id in sorted(departed):
        since = view.last_heartbeat_or_none(member_id, at) or 0
        own = [proof for proof in evidence if proof.member_id == member_id and proof.time >= since]
        found[member_id] = _departure(own, departures.get(member_id), inferred.get(member_id), at, event_id)
    return found


def _departure(
    own: Sequence[Evidence],
    departure: Departure | None,
    inferred: Inferred | None,
    at: int,
    event_id: str,
) -> DepartureCause:
    """Return how a member departed: from an event or the snapshot, else from its commits, else ``member_gone``."""
    for proof in reversed(own):
        if proof.kind in ("member_left", "session_expired"):
            return DepartureCause(proof.kind, min(proof.time, at), proof.detail, proof.event_id or event_id)
    if inferred is not None and (departure is None or departure.kind == "gone"):
        return DepartureCause(inferred.kind, at, f"{INFERRED}: {inferred.evidence}", event_id)
    return departure_cause(departure, at, event_id)


def _exceeds(view: GroupView, proof: Evidence, counts: Mapping[str, int], at: int) -> bool:
    """Return whether metadata showed more queues of a topic than a generation does, and still shows more."""
    topic = proof.topic
    if topic is None or topic not in counts:
        return False
    return all(len(view.queues_at(topic, time) or ()) > counts[topic] for time in (proof.time, at))


def _evidence_left(
    view: GroupView, shown: ShownGeneration, causes: Causes, shown_members: Container[str]
) -> list[Evidence]:
    """Return evidence except what this generation shows, members that it lacks, and expiries that it disproves.

    A static member that came back under another id counts as shown, and is not a cause. Of topics that are not among
    those of both generations, this one shows the current number of queues.
    """
    at, members_at, named = (
        shown.at,
        shown.members_at,
        {(trigger.kind, trigger.member_id, _topic_of(trigger)) for trigger in causes.triggers},
    )
    departed = set(causes.departures)

    def is_open(proof: Evidence) -> bool:
        if proof.time > at:
            return True
        may_have_departed = members_at is not None and proof.time >= members_at and proof.member_id in shown_members
        if may_have_departed and proof.kind in ("member_left", "session_expired"):
            return True
        if proof.kind in ("session_expired", "member_joined") and proof.member_id in shown_members:
            return False
        if proof.kind == "member_left" and ("member_joined", proof.member_id, None) in named:
            return False  # it belongs to an earlier session
        if _exceeds(view, proof, shown.counts, at):
            return True
        if proof.topic is not None and proof.topic not in shown.resized:
            return False
        return (proof.kind, proof.member_id, proof.topic) not in named and proof.member_id not in departed

    return [proof for proof in view.group.evidence if is_open(proof)]


def _topic_of(trigger: Trigger) -> str | None:
    """Return the topic that evidence of the same cause names: evidence of a member's subscription names none."""
    return None if trigger.kind == "subscription_changed" else trigger.topic


def released(before: Owners, after: Owners) -> list[Queue]:
    """Return the queues that had an owner and now have none."""
    return [queue for queue in before if queue not in after]
