"""Core: the causes of a reported generation, found by comparing it with the previous one. No I/O."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from udfs.group.assignment_diff import by_owner
from udfs.group.client_ids import match_departures
from udfs.group.departures import INFERRED, DepartureCause, departure_cause
from udfs.group.descriptions import distinct
from udfs.group.state import Evidence, Member, Owners, Queue
from udfs.group.view import GroupView
from udfs.model.events import Departure, GroupSnapshot, MemberInfo
from udfs.model.journal import Trigger, TriggerKind
from udfs.packets.packet import queue_keys
from udfs.strategies.registry import qualified_name

# Kafka clients send at least three heartbeats per session timeout (heartbeat.interval.ms): a member's last heartbeat
# before it died is at most a third of the timeout older than its last commit.
_HEARTBEATS_IN_A_TIMEOUT = 3


class Causes:
    """The causes of one reported generation.

    Attributes:
        triggers: What was observed. goings: How each missing member departed.
        began_at: The first evidence that the rebalance began; None when there is none.
        evidence_left: What was learned and this generation does not show.
    """

    def __init__(self) -> None:
        self.triggers: list[Trigger] = []
        self.goings: dict[str, DepartureCause] = {}
        self.began_at: int | None = None
        self.evidence_left: list[Evidence] = []

    def add(self, kind: TriggerKind, evidence: Evidence | None = None, **fields: str | None) -> None:
        """Add one cause; evidence of its own names its event."""
        if evidence is not None and evidence.event_id is not None:
            fields = {**fields, "event_id": evidence.event_id}
        self.triggers.append(Trigger(kind=kind, **fields))

    def began(self, at: int) -> None:
        """Record that the rebalance had begun by then."""
        self.began_at = at if self.began_at is None else min(at, self.began_at)


def compare(
    view: GroupView, snapshot: GroupSnapshot, event_id: str, at: int, grown: Mapping[str, tuple[int | None, int]]
) -> Causes:
    """Compare a new generation with the current one.

    Args:
        grown: Topics subscribed in both generations whose queue count changed: before, now.
    """
    causes, group = Causes(), view.group
    infos = {info.member_id: info for info in snapshot.members}
    evidence = [one for one in group.evidence if one.time <= at]
    gone = [member_id for member_id in group.members if member_id not in infos]
    inferred = _infer_departures(view, gone, at)
    departures = match_departures([group.members[one] for one in sorted(gone)], snapshot.departures or ())
    for member_id in sorted(gone):
        last = view.last_heartbeat_or_none(member_id, at)
        heeded = [one for one in evidence if last is None or one.time >= last or one.member_id != member_id]
        going = _departure(heeded, member_id, departures.get(member_id), inferred, at, event_id)
        causes.goings[member_id] = going
        causes.triggers.append(
            Trigger(kind=going.kind, member_id=member_id, detail=going.detail, event_id=going.event_id)
        )
        if going.at < at:
            causes.began(going.at)
    for member_id, info in sorted(infos.items()):
        known = group.members.get(member_id)
        proof = _newest(evidence, "member_joined", member_id) if known is None else None
        if known is None:
            causes.add("member_joined", proof, member_id=member_id, event_id=event_id)
        elif _subscribes_otherwise(known, info):
            proof = _newest(evidence, "subscription_changed", member_id)
            causes.add("subscription_changed", proof, member_id=member_id, event_id=event_id)
        if proof is not None:
            causes.began(proof.time)
    _compare_strategies(view, snapshot, infos, event_id, causes)
    for topic, (before, now) in sorted(grown.items()):
        proof = next((one for one in reversed(evidence) if one.topic == topic), None)
        earlier = "unknown" if before is None else before
        causes.add("queue_count_changed", proof, topic=topic, detail=f"{earlier} -> {now}", event_id=event_id)
    causes.evidence_left = _evidence_left(group.evidence, causes, infos, at)
    return causes


def _subscribes_otherwise(member: Member, info: MemberInfo) -> bool:
    return info.subscriptions is not None and distinct(info.subscriptions) != (member.subscriptions or ())


def _compare_strategies(
    view: GroupView, snapshot: GroupSnapshot, infos: Mapping[str, MemberInfo], event_id: str, causes: Causes
) -> None:
    group = view.group
    if not group.members or not infos:
        return
    if snapshot.strategy:
        now = qualified_name(snapshot.strategy, view.system)
        before = group.last_strategy
        if before is not None and qualified_name(before, view.system) != now:
            causes.add("strategy_changed", detail=f"{before} -> {now}", event_id=event_id)
        return
    for member_id, info in sorted(infos.items()):
        known = group.members.get(member_id)
        if known is not None and info.strategies is not None and known.strategies not in (None, info.strategies):
            causes.add("strategy_changed", member_id=member_id, event_id=event_id)


def _newest(evidence: Sequence[Evidence], kind: TriggerKind, member_id: str) -> Evidence | None:
    return next((one for one in reversed(evidence) if one.kind == kind and one.member_id == member_id), None)


def _departure(
    evidence: Sequence[Evidence],
    member_id: str,
    departure: Departure | None,
    inferred: Mapping[str, TriggerKind],
    at: int,
    event_id: str,
) -> DepartureCause:
    """Return how a member departed: from an event or the snapshot, else from its commits, else ``member_gone``."""
    for one in reversed(evidence):
        if one.member_id == member_id and one.kind in ("member_left", "session_expired"):
            return DepartureCause(one.kind, min(one.time, at), None, one.event_id or event_id)
    if member_id in inferred and (departure is None or departure.kind == "gone"):
        return DepartureCause(inferred[member_id], at, INFERRED, event_id)
    return departure_cause(departure, at, event_id)


def _infer_departures(view: GroupView, gone: Sequence[str], at: int) -> dict[str, TriggerKind]:
    """Infer from commits how members departed.

    A member that committed until well within its session timeout cannot have expired: it left. A member whose
    commits stopped a whole session timeout before did expire. Commits older than its assignment are not its own.
    """
    group = view.group
    if not gone or not view.facts.progress:
        return {}
    held = by_owner(group.reported if group.has_reported else group.computed)
    earliest = min(_holds_since(group.members[member_id]) for member_id in gone)
    queues = [queue for member_id in gone for queue in held.get(member_id, ())]
    commits = newest_commits(view, queues, earliest, at)
    inferred: dict[str, TriggerKind] = {}
    for member_id in gone:
        member = group.members[member_id]
        mine = [commits[queue] for queue in held.get(member_id, ()) if queue in commits]
        last = max(mine, default=None)
        if last is None or last < _holds_since(member):
            continue
        silence, timeout = at - last, view.timeout_of(member)
        if silence >= timeout:
            inferred[member_id] = "session_expired"
        elif silence < timeout - timeout // _HEARTBEATS_IN_A_TIMEOUT:
            inferred[member_id] = "member_left"
    return inferred


def _holds_since(member: Member) -> int:
    return member.joined_at if member.holds_since is None else member.holds_since


def _evidence_left(
    evidence: Sequence[Evidence], causes: Causes, shown_members: Container[str], at: int
) -> list[Evidence]:
    """Return evidence without what this generation shows, of members that it has no more, and expiries it disproves."""
    shown = {(one.kind, one.member_id, one.topic) for one in causes.triggers}
    gone = set(causes.goings)

    def is_open(one: Evidence) -> bool:
        if one.time > at:
            return True
        if one.kind == "session_expired" and one.member_id in shown_members:
            return False
        return (one.kind, one.member_id, one.topic) not in shown and one.member_id not in gone

    return [one for one in evidence if is_open(one)]


def newest_commits(view: GroupView, queues: Sequence[Queue], since: int, until: int) -> dict[Queue, int]:
    """Return the newest commit of each queue from ``since`` on and before ``until``, where there is one."""
    progress = view.facts.progress
    if not queues or not progress:
        return {}
    found: dict[Queue, int] = {}
    for queue, key in zip(queues, queue_keys(queues).tolist(), strict=True):
        commits = [time for time in progress.get(key, ()) if since <= time < until]
        if commits:
            found[queue] = max(commits)
    return found


def released(before: Owners, after: Owners) -> list[Queue]:
    """Return the queues that had an owner and now have none."""
    return [queue for queue in before if queue not in after]
