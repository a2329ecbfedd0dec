"""Core: groups whose generations a coordinator reports, snapshot by snapshot. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from udfs.asking import Known, ask_strategy, basis
from udfs.causes import Causes, compare, released
from udfs.diff import held_only_by, owners_of
from udfs.events import GroupSnapshot, MemberInfo, QueueInfo
from udfs.facts import Due
from udfs.findings import counted
from udfs.group_state import Owners, Queue, key_of, queue_order
from udfs.holdings import take_waiting_reports
from udfs.journal import GroupChanged, Rebalance, Trigger
from udfs.membership import arrive_by_snapshot, describe
from udfs.pauses import began_at, estimated_pause, queue_pause
from udfs.rebalancing import COOPERATIVE, Decision, balance_of, carry_out, in_order, next_id, write_spans
from udfs.static_members import carry_over, returned
from udfs.strategies import qualified_name
from udfs.turn import Turn

# The coordinator is in the middle of a rebalance: who is a member is not settled (DescribeGroups, GroupState).
_UNDER_WAY = frozenset({"preparingrebalance", "completingrebalance"})


def is_under_way(snapshot: GroupSnapshot) -> bool:
    """Answer whether the snapshot fell into a rebalance."""
    return (snapshot.state or "").replace("_", "").lower() in _UNDER_WAY


def take_generation(turn: Turn, due: Due, snapshot: GroupSnapshot, at: int) -> None:
    """Take in a snapshot with a generation of the coordinator's own."""
    group, standing = turn.group, turn.group.generation
    generation = snapshot.generation or 0
    if due.late and standing is not None and generation < standing:
        _tell_of_old_generation(turn, due, snapshot, at)
        return
    if generation == 0 and not snapshot.members:
        _take_generation_zero(turn, at)
        return
    if standing == generation and group.exists:
        _rename_static_members(turn, snapshot, at)
        if {info.member_id for info in snapshot.members} == set(group.members):
            _take_same_generation(turn, snapshot, at)
            return
    _take_new_generation(turn, due, snapshot, at)


def _take_new_generation(turn: Turn, due: Due, snapshot: GroupSnapshot, at: int) -> None:
    group, standing = turn.group, turn.group.generation
    generation = snapshot.generation or 0
    told = _told_owners(turn, snapshot)
    subscribed_before = set(group.subscribed_topics())
    after = {topic for info in snapshot.members for topic in _subscriptions(turn, info)}
    known, guessed = queues_shown(turn, after, told, at)
    resized = {topic: _sizes(turn, topic, known, guessed) for topic in after & subscribed_before}
    grown = {topic: (was, now) for topic, (was, now) in resized.items() if was != now}
    causes = compare(turn, snapshot, due.event_id, at, grown)
    before = group.reported if group.has_reported else group.computed
    _move_members(turn, snapshot, causes, at)
    group.generation = generation
    group.leader = snapshot.leader
    if told is not None:
        told = held_only_by(told, group.members)
    handed = _name_the_rest(turn, due, snapshot, standing, told, causes, at)
    missed = generation - standing - 1 if standing is not None and generation > standing + 1 else None
    dealt = ask_strategy(turn, known, snapshot.strategy or None, at)
    began = began_at(turn, snapshot, causes, at)
    pause = None if began is None else at - began
    cooperative = COOPERATIVE in (dealt.strategy, snapshot.strategy)
    handing_over = released(before, told) if cooperative and told is not None and group.members else []
    handing_over = [queue for queue in handing_over if queue[0] in known]
    decision = Decision(
        at=at,
        triggers=causes.triggers,
        known=known,
        dealt=dealt,
        guessed=guessed,
        reported=told,
        compared=None,
        generations_missed=missed,
        pause_ms=pause,
        queue_pause_ms=queue_pause(turn, before, told, pause, cooperative, handing_over, handed, at),
        **estimated_pause(turn, before, told, pause, cooperative, at),
        handed_over=handing_over,
    )
    group.preparing_since = None
    carry_out(turn, decision)
    take_waiting_reports(turn, at)


# ---- what the generation shows


def _subscriptions(turn: Turn, info: MemberInfo) -> tuple[str, ...]:
    if info.subscriptions is not None:
        return info.subscriptions
    known = turn.group.members.get(info.member_id)
    return (known.subscriptions or ()) if known is not None else ()


def _told_owners(turn: Turn, snapshot: GroupSnapshot) -> Owners | None:
    """Answer the assignment that a snapshot carries, None where it carries none.

    Without members nobody holds anything, which says something only where assignments are reported at all.
    """
    if snapshot.assignments is None:
        return {} if turn.group.has_reported and not snapshot.members else None
    return owners_of(
        {member: [key_of(queue, turn.system) for queue in queues] for member, queues in snapshot.assignments.items()}
    )


def told_owners(turn: Turn, snapshot: GroupSnapshot) -> Owners | None:
    """Answer the assignment that a poll carries; None where it says nothing of it."""
    return None if snapshot.assignments is None else _told_owners(turn, snapshot)


def queues_shown(
    turn: Turn, topics: Iterable[str], told: Owners | None, at: int
) -> tuple[dict[str, tuple[QueueInfo, ...]], list[str]]:
    """Answer the queues of each topic as the leader of this generation knew them.

    What an assignment names exists, whatever metadata has shown. More than it names exists only if it was known
    before: a generation that does not use new queues was made before its leader saw them.

    Returns: also the topics of which metadata has told nothing yet.
    """
    counts = turn.group.counts
    named: dict[str, set[Queue]] = {}
    for queue in told or ():
        named.setdefault(queue[0], set()).add(queue)
    known: dict[str, tuple[QueueInfo, ...]] = {}
    guessed: list[str] = []
    for topic in sorted(topics):
        infos = turn.queues_at(topic, at)
        used = named.get(topic, set())
        if infos is None:
            guessed.append(topic)
        if infos is None or not any(one.topic == topic and one.time <= at for one in turn.group.evidence):
            # What an earlier assignment named still exists, though a cooperative move gives it to nobody yet,
            # unless metadata has told otherwise since.
            used = used | {queue for queue in turn.group.reported if queue[0] == topic}
            used |= {queue for queue in turn.group.handed_over if queue[0] == topic}
        listed = {key_of(info, turn.system, topic): info for info in infos or ()}
        before = counts.get(topic)
        if told and used and before is not None and before < len(listed) and _highest(used) < before:
            listed = {queue: info for queue, info in listed.items() if queue[2] < before}
        for queue in _up_to(topic, used):
            if queue not in listed:
                listed[queue] = QueueInfo(queue[2], queue[1])
        if listed:
            known[topic] = tuple(listed[queue] for queue in sorted(listed, key=queue_order))
    return known, guessed


def _highest(queues: Iterable[Queue]) -> int:
    return max(queue[2] for queue in queues)


def _up_to(topic: str, used: Iterable[Queue]) -> list[Queue]:
    """Answer the queues that must exist when these do: ids begin at 0 on each broker."""
    highest: dict[str | None, int] = {}
    for _, broker, queue_id in used:
        highest[broker] = max(queue_id, highest.get(broker, 0))
    return [(topic, broker, number) for broker in sorted(highest, key=str) for number in range(highest[broker] + 1)]


def _sizes(turn: Turn, topic: str, known: Known, guessed: Iterable[str]) -> tuple[int | None, int]:
    """Answer how many queues a topic had in the standing generation and has in this one; None: it was not known."""
    group, now = turn.group, len(known.get(topic, ()))
    before = group.counts.get(topic)
    if before is not None:
        return before, now
    if topic in guessed:
        # Named by nobody so far, and now by an assignment: it grew.
        return (None, now) if now and group.has_reported else (now, now)
    # First known now: that holds for all earlier time. Known before, and not counted: it had been deleted.
    return (now if topic in group.guessed_topics else 0), now


def _name_the_rest(
    turn: Turn,
    due: Due,
    snapshot: GroupSnapshot,
    standing: int | None,
    told: Owners | None,
    causes: Causes,
    at: int,
) -> list[Queue]:
    """Add the causes that lie in the generation itself; answer the queues that a cooperative move gave on."""
    group, generation, event_id = turn.group, snapshot.generation or 0, due.event_id
    handed = [queue for queue in group.handed_over if queue in (told or {})]
    if handed:
        causes.add("cooperative_follow_up", event_id=event_id, detail=counted(len(handed), "queue") + " given on")
    if standing is not None and group.exists and generation <= standing:
        detail = f"generation {standing} -> {generation}"
        causes.add("coordinator_changed", detail=detail, event_id=event_id)
    if not group.exists:
        first_seen = generation > 1 and standing is None
        causes.add("group_created", event_id=event_id, detail="first seen" if first_seen else None)
    if due.late:
        detail = f"told late: happened at {snapshot.event_time}, applied at {at}"
        causes.add("late_evidence", detail=detail, event_id=event_id)
    if not causes.triggers:
        causes.add("unexplained", event_id=event_id)
    return handed


# ---- members


def _move_members(turn: Turn, snapshot: GroupSnapshot, causes: Causes, at: int) -> None:
    """End the sessions of who is gone, begin those of who came, describe the others anew; in the snapshot's order."""
    group = turn.group
    for member_id, going in sorted(causes.goings.items()):
        turn.close_session(member_id, at, going.at, going.reason)
    for info in snapshot.members:
        member = group.members.get(info.member_id)
        if member is not None:
            member.owned = member.owned_generation = None  # of another generation
        if member is None:
            arrive_by_snapshot(turn, info.member_id, info, at)
        elif describe(member, info) - {"owned", "owned_generation", "client_library", "ordered"}:
            turn.change_session(member, at)
    group.members = {info.member_id: group.members[info.member_id] for info in snapshot.members}


def _rename_static_members(turn: Turn, snapshot: GroupSnapshot, at: int) -> None:
    """Carry the session and the spans of a static member over to the id under which it came back."""
    group = turn.group
    renamed = returned(group, snapshot.members)
    if not renamed:
        return
    carry_over(turn, renamed, at)
    infos = {info.member_id: info for info in snapshot.members}
    for former_id, member_id in sorted(renamed.items()):
        member = group.members[member_id]
        member.by_heartbeats = False
        describe(member, msgspec.structs.replace(infos[member_id], subscriptions=None))
        turn.change_session(member, at, former=former_id)


def _take_same_generation(turn: Turn, snapshot: GroupSnapshot, at: int) -> None:
    """Take in the standing generation told again: no rebalance, though it may tell more of it."""
    group = turn.group
    for info in snapshot.members:
        # Another subscription than it was dealt for is for the next generation to show.
        told_anew = msgspec.structs.replace(info, subscriptions=None, owned=None, owned_generation=None)
        if describe(group.members[info.member_id], told_anew) - {"client_library", "ordered"}:
            turn.change_session(group.members[info.member_id], at)
    if snapshot.assignments is not None:
        told = held_only_by(_told_owners(turn, snapshot) or {}, group.members)
        if told != group.reported or not group.has_reported:
            write_spans(turn, "reported", told, at)
            group.has_reported = True


# ---- the ends of the scale


def _take_generation_zero(turn: Turn, at: int) -> None:
    """Take in a group that was just made and has no members: no rebalance."""
    group = turn.group
    for member_id in sorted(group.members):
        turn.close_session(member_id, at, at, "absent_from_snapshot")
    write_spans(turn, "computed", {}, at)
    write_spans(turn, "reported", {}, at)
    group.generation, group.members_decided = 0, 0
    group.counts, group.guessed_topics, group.handed_over = {}, [], []
    row = GroupChanged(system=turn.system, state="empty", generation=0, generation_source="reported", mode=turn.mode)
    row.last_rebalance_at, row.last_rebalance_id = group.last_rebalance_at, group.last_rebalance_id
    turn.write_row(at, row)


def _tell_of_old_generation(turn: Turn, due: Due, snapshot: GroupSnapshot, at: int) -> None:
    """Write the row of a generation that newer ones overtook; what stands now stays as it is."""
    group, generation = turn.group, snapshot.generation or 0
    if generation == 0:
        return
    standing, group.generation = group.generation, generation
    identity = next_id(turn, at)
    group.generation = standing
    detail = f"told late: happened at {snapshot.event_time}, applied at {at}; generation {standing} was known already"
    triggers = in_order([Trigger(kind="late_evidence", detail=detail, event_id=due.event_id)])
    owners = _told_owners(turn, snapshot) or {}
    turn.answer.rebalances.append(
        Rebalance(
            rebalance_id=identity,
            cluster=turn.facts.cluster,
            system=turn.system,
            group_id=turn.facts.group_id,
            generation=generation,
            generation_source="reported",
            event_time=at,
            detected_at=turn.facts.detected_at,
            trigger="late_evidence",
            triggers=triggers,
            strategy=qualified_name(snapshot.strategy, turn.system) if snapshot.strategy else None,
            leader=snapshot.leader,
            mode=turn.mode,
            members_before=len(snapshot.members),
            members_after=len(snapshot.members),
            queues_before=len(owners),
            queues_after=len(owners),
            queues_kept=len(owners),
        )
    )
    group.last_rebalance_at = at if group.last_rebalance_at is None else max(at, group.last_rebalance_at)


# ---- topics known only later


def infer_earlier(turn: Turn, topic: str, at: int) -> None:
    """Let the first known queues of a topic hold for the standing generation from its own time on."""
    group, since = turn.group, turn.group.last_rebalance_at
    if group.generation is None or topic not in group.guessed_topics or since is None or not group.members:
        return
    first = turn.queues_at(topic, at)
    if first is None:
        return
    group.guessed_topics = [other for other in group.guessed_topics if other != topic]
    counts = dict(group.counts)
    known: dict[str, tuple[QueueInfo, ...]] = {}
    for name in group.subscribed_topics():
        infos = turn.queues_at(name, at) if name == topic else turn.queues_at(name, since)
        if infos is None and name in counts:
            infos = tuple(QueueInfo(number) for number in range(counts[name]))
        if infos:
            known[name] = infos if name == topic else infos[: counts.get(name, len(infos))]
    named = [queue for queue in group.reported if queue[0] == topic]
    listed = {key_of(info, turn.system, topic): info for info in first}
    for queue in _up_to(topic, named):
        listed.setdefault(queue, QueueInfo(queue[2], queue[1]))
    if listed:
        known[topic] = tuple(listed[queue] for queue in sorted(listed, key=queue_order))
        group.counts[topic] = len(listed)
    dealt = ask_strategy(turn, known, group.dealt_strategy, since)
    if dealt.recomputed:
        write_spans(turn, "computed", dealt.owners, since, inferred=True)
    if group.row is None:
        return
    row = msgspec.structs.replace(group.row, queues=sum(group.counts.values()))
    if dealt.recomputed:
        queues = [key_of(info, turn.system, name) for name, infos in known.items() for info in infos]
        balance = balance_of(turn, basis(group), queues)
        row.idle_members, row.unassigned_queues, row.spread = balance.idle, balance.unassigned, balance.spread
    turn.write_row(at, row)
