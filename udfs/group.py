"""Core: what becomes of one group: its events moment by moment, its rebalances, its sessions and spans. No I/O.

All is a pure function of the events in the order of their times: at one moment in the order of their kinds, then
expiries, then the rebalance that takes all of it in. How the events were cut into batches leaves no trace.
"""

from __future__ import annotations

import bisect
import heapq

from udfs.diff import resized
from udfs.errors import InvariantError
from udfs.events import (
    ORDER_AT_ONE_MOMENT,
    AssignmentReported,
    GroupDeleted,
    GroupSettings,
    GroupSnapshot,
    Heartbeat,
    MemberJoined,
    MemberLeft,
    System,
    TopicQueues,
)
from udfs.facts import Advanced, Due, GroupFacts, RepeatLedger, TopicsView
from udfs.findings import late_found
from udfs.group_codec import decode_group, encode_group
from udfs.group_export import snapshot_of
from udfs.group_life import (
    change_settings,
    delete,
    forget,
    restore,
    stop_following,
    take_observations,
    told_empty,
)
from udfs.group_state import Evidence, Group
from udfs.holdings import (
    awaits_comparison,
    compare_with_reports,
    take_report,
    take_told_assignment,
    take_waiting_reports,
)
from udfs.membership import beat, describes, expire, leave, meet, poll
from udfs.rebalancing import decide_counted
from udfs.reported import (
    infer_earlier,
    is_under_way,
    take_generation,
    told_owners,
)
from udfs.rules import Rules
from udfs.turn import Turn

__all__ = [
    "Group",
    "advance",
    "decode_group",
    "encode_group",
    "members_by_heartbeat",
    "new_group",
    "snapshot_of",
]

_BEAT = ORDER_AT_ONE_MOMENT[Heartbeat]
_EXPIRY = 100  # after all events of its moment
# What a generation of the same moment may show already.
_EVIDENCE = (TopicQueues, MemberLeft, MemberJoined, Heartbeat)

# What means nothing in a group that is not followed.
_OF_MEMBERS = (MemberLeft, MemberJoined, Heartbeat, AssignmentReported)

# Time, order at one moment, the event's own time, generation, id, number; what is to be done.
_Entry = tuple[int, int, int, int, str, int, "Due | str"]


def new_group(cluster: str, system: System, group_id: str) -> Group:  # noqa: ARG001
    """Make a group of which nothing is known yet; what it is called comes with the facts."""
    return Group()


def members_by_heartbeat(group: Group) -> list[str]:
    """Answer the members that ``Advanced.last_seen`` named, in the order in which they joined."""
    return [member.member_id for member in group.members.values() if member.by_heartbeats]


def advance(group: Group, facts: GroupFacts, topics: TopicsView, ledger: RepeatLedger, rules: Rules) -> Advanced:
    """Apply all that is due for a group, which is changed, and answer what it decided."""
    return _Loop(Turn(group, facts, topics, rules), ledger).run()


class _Loop:
    """The moments of one batch, in order."""

    def __init__(self, turn: Turn, ledger: RepeatLedger) -> None:
        self.turn = turn
        self.ledger = ledger
        self.clock = turn.facts.clock
        self.heap: list[_Entry] = []
        self.pushed = 0
        self.generations: set[int] = set()

    def run(self) -> Advanced:
        self._apply_late()
        self._schedule()
        while self._step():
            pass
        for topic in list(self.turn.group.guessed_topics):
            infer_earlier(self.turn, topic, self.clock - 1)
        return self._answer()

    # ---- what comes when

    def _schedule(self) -> None:
        turn, group = self.turn, self.turn.group
        for due in turn.facts.events:
            if due.late:
                continue
            own = due.event.event_time
            at = max(own, group.last_applied or own)
            event = due.event
            if isinstance(event, GroupSnapshot) and event.generation is not None and not event.restored:
                self.generations.add(at)
            self._push(at, ORDER_AT_ONE_MOMENT[type(event)], own, due.event_id, due, _generation(due))
        for member_id, times in turn.facts.heartbeats.items():
            if member_id not in turn.seen and times:
                self._push_beat(member_id, times[0])
        for member_id in turn.seen:
            self._watch(member_id)
        turn.touched.clear()

    def _push(self, at: int, order: int, own: int, tie: str, what: Due | str, generation: int = 0) -> None:
        self.pushed += 1
        heapq.heappush(self.heap, (at, order, own, generation, tie, self.pushed, what))

    def _push_beat(self, member_id: str, own: int) -> None:
        at = max(own, self.turn.group.last_applied or own)
        self._push(at, _BEAT, own, member_id, member_id)

    def _push_next_beat(self, member_id: str, after: int) -> None:
        times = self.turn.facts.heartbeats.get(member_id, ())
        place = bisect.bisect_right(times, after)
        if place < len(times):
            self._push_beat(member_id, times[place])

    def _watch(self, member_id: str) -> None:
        """Look at a member again once its deadline, as it is known now, is past."""
        turn = self.turn
        member = turn.group.members.get(member_id)
        if member is None:
            raise InvariantError(f"group {turn.facts.group_id}", "a member", member_id)
        deadline = turn.seen[member_id] + turn.timeout_of(member)
        if deadline < self.clock:
            self._push(max(deadline, turn.group.last_applied or deadline), _EXPIRY, deadline, member_id, member_id)

    def _step(self) -> bool:
        """Do the next thing: events, else the rebalance that waits for its window to close, else what time does."""
        turn, group = self.turn, self.turn.group
        times = [self.heap[0][0] if self.heap else self.clock, self.clock, self.clock, self.clock, self.clock]
        if group.pending is not None:
            times[1] = group.pending.opened_at + turn.rules.settle_ms
        closing = [(one.closes_at, kind) for kind, one in group.findings.items() if one.closes_at is not None]
        if closing:
            times[2] = min(closing)[0]
        forget_at = self._forget_at()
        if forget_at is not None:
            times[3] = forget_at
        if self._compare_at() is not None:
            times[4] = group.compare_at or 0
        at = min(times)
        if at >= self.clock:
            return False
        which = times.index(at)
        if which == 0:
            self._moment(at)
        elif which == 1:
            self._decide()
        elif which == 2:
            turn.set_finding(min(closing)[1], None, at)
        elif which == 3:
            forget(turn, at)
        else:
            compare_with_reports(turn, at)
        return True

    def _compare_at(self) -> int | None:
        """Answer when members should hold what they should, where all say what they hold."""
        return self.turn.group.compare_at if awaits_comparison(self.turn) else None

    def _forget_at(self) -> int | None:
        group = self.turn.group
        if group.members or group.pending is not None or not group.followed or group.touched_at is None:
            return None
        return group.touched_at + self.turn.rules.forget_after_ms

    def _decide(self) -> None:
        turn = self.turn
        decide_counted(turn)
        take_waiting_reports(turn, turn.group.last_rebalance_at or 0)

    # ---- one moment

    def _moment(self, at: int) -> None:
        if at in self.generations and self.turn.group.generation is not None:
            self.generations.discard(at)
            self._show_evidence_first(at)
            return
        _, order, own, _, _, _, what = heapq.heappop(self.heap)
        if isinstance(what, Due):
            self._apply(what, at)
        elif order == _EXPIRY:
            self._expire(what, own)
        else:
            self._beat(what, at, own)
        self._follow_members()

    def _show_evidence_first(self, at: int) -> None:
        """Apply a moment with a new generation: what was learned at that very moment may be its cause."""
        dues: list[Due] = []
        rest: list[_Entry] = []
        while self.heap and self.heap[0][0] == at:
            entry = heapq.heappop(self.heap)
            if isinstance(entry[-1], Due):
                dues.append(entry[-1])
            else:
                rest.append(entry)
        for entry in rest:
            heapq.heappush(self.heap, entry)
        for due in sorted(dues, key=lambda due: not isinstance(due.event, _EVIDENCE)):
            self._apply(due, at)
            self._follow_members()

    def _apply_late(self) -> None:
        """Apply what came late, at the clock as it stood before the batch, before everything else."""
        turn, group, at = self.turn, self.turn.group, self.turn.facts.clock_before
        late = [due for due in turn.facts.events if due.late]
        if not late or at is None:
            return
        late.sort(key=lambda due: (_generation(due), due.event.event_time, _order(due), due.event_id))
        for due in late:
            turn.heeded = False
            self._apply(due, at)
            if isinstance(due.event, Heartbeat) and not turn.heeded:
                turn.answer.unheeded.append(due.event_id)
                continue
            group.late_events += 1
            turn.set_finding("events_late", late_found(at, group.late_events, due.event_id), at)
        turn.departed_now.clear()
        turn.touched.clear()

    def _apply(self, due: Due, at: int) -> None:
        turn, event = self.turn, due.event
        if isinstance(event, TopicQueues):
            self._change_topic(due, event, at)
            return
        if not turn.group.followed and isinstance(event, _OF_MEMBERS):
            return
        plain = isinstance(event, Heartbeat) and not describes(event)
        if not plain and self.ledger.is_repeat(due.event_id, event.event_time):
            return
        match event:
            case GroupSettings():
                change_settings(turn, due, event, at)
            case GroupDeleted():
                delete(turn, due, at)
            case GroupSnapshot():
                self._snapshot(due, event, at)
            case MemberLeft():
                leave(turn, due, event, at)
            case MemberJoined() | Heartbeat():
                meet(turn, due, event, at)
            case AssignmentReported():
                take_report(turn, event, at)
            case _:
                pass

    def _snapshot(self, due: Due, snapshot: GroupSnapshot, at: int) -> None:
        turn, group = self.turn, self.turn.group
        if snapshot.restored:
            restore(turn, snapshot, at)
            return
        turn.applied(at)
        if snapshot.state == "not_followed":
            stop_following(turn, snapshot, at)
            return
        if is_under_way(snapshot):
            if group.preparing_since is None:
                group.preparing_since = snapshot.event_time
            return
        group.followed = True
        take_observations(turn, due, snapshot, at)
        if snapshot.generation is not None:
            self._give_way(at)
            take_generation(turn, due, snapshot, at)
        elif group.generation is None:
            poll(turn, due, snapshot, at)
            self._take_told_assignment(snapshot, at)
            told_empty(turn, at)
        else:
            self._take_told_assignment(snapshot, at)
        group.last_snapshot_at = max(snapshot.event_time, group.last_snapshot_at or snapshot.event_time)

    def _give_way(self, at: int) -> None:
        """Settle what is pending of counted generations before a reported one takes over."""
        turn, pending = self.turn, self.turn.group.pending
        if pending is None:
            return
        if pending.changed_at < at or turn.group.exists is False:
            self._decide()
            return
        turn.group.pending = None
        for trigger in pending.triggers:
            turn.learn(Evidence(trigger.kind, at, trigger.member_id, trigger.topic, trigger.event_id))

    def _take_told_assignment(self, snapshot: GroupSnapshot, at: int) -> None:
        turn, group = self.turn, self.turn.group
        told = told_owners(turn, snapshot)
        if told is None:
            return
        told = {queue: kept for queue, held in told.items() if (kept := tuple(m for m in held if m in group.members))}
        if group.pending is not None:
            group.pending.told = sorted(told.items(), key=lambda one: (one[0][0], one[0][1] or "", one[0][2]))
        elif group.last_rebalance_id is not None:
            take_told_assignment(turn, told, at)

    def _change_topic(self, due: Due, event: TopicQueues, at: int) -> None:
        turn, group = self.turn, self.turn.group
        topic = event.topic
        if not any(topic in (member.subscriptions or ()) for member in group.members.values()):
            return
        before, after = turn.queues_at(topic, event.event_time - 1), turn.queues_at(topic, at)
        if group.generation is not None and topic in group.guessed_topics:
            infer_earlier(turn, topic, at)
            return
        if (before or ()) == (after or ()):
            return
        said = resized(before, after or ())
        if due.late:
            said += f", told late: happened at {event.event_time}, applied at {at}"
            turn.cause(at, "late_evidence", None, topic, due.event_id, said)
        turn.cause(at, "queue_count_changed", None, topic, due.event_id, said)

    # ---- liveness

    def _beat(self, member_id: str, at: int, own: int) -> None:
        departed = self.turn.group.departed.get(member_id)
        if departed is not None and own <= departed.left_at and member_id not in self.turn.group.members:
            # As old as its going: only a later one is a join.
            self._push_next_beat(member_id, departed.left_at)
            return
        if self.turn.group.followed:
            beat(self.turn, member_id, at, own)
        if member_id not in self.turn.group.members:
            self._push_next_beat(member_id, own)

    def _expire(self, member_id: str, deadline: int) -> None:
        turn = self.turn
        if member_id not in turn.seen or member_id not in turn.group.members:
            return
        turn.saw(member_id, turn.last_seen(member_id, deadline))
        now = turn.seen[member_id] + turn.timeout_of(turn.group.members[member_id])
        if now > deadline:
            self._watch(member_id)
        elif now == deadline:
            expire(turn, member_id, max(deadline, turn.group.last_applied or deadline))

    def _follow_members(self) -> None:
        """Watch the deadlines of members that came or changed, and the next heartbeats of those that went."""
        turn = self.turn
        while turn.touched:
            member_id = turn.touched.pop()
            if member_id in turn.seen:
                self._watch(member_id)
        while turn.departed_now:
            member_id, at = turn.departed_now.pop()
            self._push_next_beat(member_id, at - 1)

    # ---- the answer

    def _answer(self) -> Advanced:
        turn, group, answer = self.turn, self.turn.group, self.turn.answer
        for member in group.members.values():
            if member.by_heartbeats:
                answer.last_seen[member.member_id] = turn.last_seen(member.member_id, self.clock)
                answer.session_timeouts_ms[member.member_id] = turn.timeout_of(member)
        answer.topics = group.subscribed_topics()
        answer.last_applied_ms = group.last_applied
        answer.wake_at = _earliest(
            None if group.pending is None else group.pending.opened_at + turn.rules.settle_ms,
            self._forget_at(),
            self._compare_at(),
            *(finding.closes_at for finding in group.findings.values()),
        )
        return answer


def _order(due: Due) -> int:
    return ORDER_AT_ONE_MOMENT[type(due.event)]


def _generation(due: Due) -> int:
    """Answer what snapshots of one moment are sorted by, polls last."""
    if isinstance(due.event, GroupSnapshot) and due.event.generation is not None:
        return due.event.generation
    return 2**63


def _earliest(*moments: int | None) -> int | None:
    return min((moment for moment in moments if moment is not None), default=None)
