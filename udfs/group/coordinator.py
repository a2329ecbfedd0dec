"""Core: applies one group's due events in order and decides its rebalances, sessions and spans. No I/O.

The output is a pure function of the events in the order of their event times; at one event time in the order of their
types, then expiries, then the one rebalance that covers all of them. How events were cut into batches does not matter.
"""

from __future__ import annotations

import bisect
import heapq

from udfs.group.context import GroupContext
from udfs.group.due_events import apply_event, apply_late, decide_pending, take_reports
from udfs.group.event_order import BEAT, EXPIRY, generation_of, order_of
from udfs.group.lifecycle import forget
from udfs.group.membership import on_expiry, on_heartbeat
from udfs.group.reported_assignment import awaits_comparison, compare_with_reports
from udfs.group.same_time import end_event_time
from udfs.group.snapshot import snapshot_of
from udfs.group.state import Group
from udfs.group.state_format import decode_group, encode_group
from udfs.group.topic_changes import learn_topic
from udfs.model.config import CoreConfig
from udfs.model.errors import InvariantError
from udfs.model.events import GroupSnapshot, Heartbeat, MemberJoined, MemberLeft, System, TopicQueues
from udfs.model.garbage_collection import makes_no_cycles
from udfs.model.group_api import DedupView, DueEvent, GroupInput, GroupOutput, TopicsView

__all__ = [
    "Group",
    "advance",
    "decode_group",
    "encode_group",
    "members_by_heartbeat",
    "new_group",
    "snapshot_of",
]

# What a generation of the same event time may show already.
_EVIDENCE = (TopicQueues, MemberLeft, MemberJoined, Heartbeat)

# Time, order within one event time, the event's own time, generation, id, number; what to do.
_Entry = tuple[int, int, int, int, str, int, "DueEvent | str"]


def new_group(cluster: str, system: System, group_id: str) -> Group:  # noqa: ARG001
    """Return an empty group; its name and system come with the facts."""
    return Group()


def members_by_heartbeat(group: Group) -> list[str]:
    """Return the members that ``GroupOutput.last_heartbeat`` named, in the order in which they joined."""
    return [member.member_id for member in group.members.values() if member.by_heartbeats]


@makes_no_cycles
def advance(group: Group, facts: GroupInput, topics: TopicsView, ledger: DedupView, rules: CoreConfig) -> GroupOutput:
    """Apply everything that is due to a group, in place, and return what was decided."""
    return EventLoop(GroupContext(group, facts, topics, rules), ledger).run()


class EventLoop:
    """Event times of one batch, in order."""

    def __init__(self, turn: GroupContext, ledger: DedupView) -> None:
        self.turn = turn
        self.ledger = ledger
        self.clock = turn.facts.clock
        self.heap: list[_Entry] = []
        self.pushed = 0
        self.generations: set[int] = set()
        self.moment: int | None = None  # the event time whose events are being applied
        self.done_at: int | None = None

    def run(self) -> GroupOutput:
        apply_late(self.turn, self.ledger)
        self._schedule()
        while self._step():
            pass
        for topic in list(self.turn.group.topics_without_metadata):
            learn_topic(self.turn, topic, self.clock - 1)
        return self._answer()

    # ---- scheduling

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
            self._push(at, order_of(due), own, due.event_id, due, generation_of(due))
        for member_id, times in turn.facts.heartbeats.items():
            if member_id not in turn.seen and times:
                self._push_beat(member_id, times[0])
        for member_id, seen in turn.seen.items():
            member = group.members.get(member_id)
            if member is None or seen + turn.timeout_of(member) < self.clock:
                self._watch(member_id)
        turn.touched.clear()

    def _push(self, at: int, order: int, own: int, tie: str, what: DueEvent | str, generation: int = 0) -> None:
        self.pushed += 1
        heapq.heappush(self.heap, (at, order, own, generation, tie, self.pushed, what))

    def _push_beat(self, member_id: str, own: int) -> None:
        at = max(own, self.turn.group.last_applied or own)
        self._push(at, BEAT, own, member_id, member_id)

    def _push_next_beat(self, member_id: str, after: int) -> None:
        times = self.turn.facts.heartbeats.get(member_id, ())
        place = bisect.bisect_right(times, after)
        if place < len(times):
            self._push_beat(member_id, times[place])

    def _watch(self, member_id: str) -> None:
        """Schedule a check of a member at its deadline as it is known now, if that has passed."""
        turn = self.turn
        member = turn.group.members.get(member_id)
        if member is None:
            raise InvariantError(f"group {turn.facts.group_id}", "a member", member_id)
        deadline = turn.deadline_of(member)
        if deadline < self.clock:
            self._push(max(deadline, turn.group.last_applied or deadline), EXPIRY, deadline, member_id, member_id)

    def _step(self) -> bool:
        """Apply the next step: events first, then a rebalance whose settling time is over, then the other timers."""
        turn, group = self.turn, self.turn.group
        if self.moment is not None and (not self.heap or self.heap[0][0] != self.moment):
            end_event_time(turn, self.moment)
            take_reports(turn, self.moment)
            self.moment = None
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
        # After a late event, with the clock unchanged, due steps apply at the clock itself: they are not due again.
        if at >= self.clock and not self.heap:
            return False
        if self._must_stop(at):
            # The rest is at or after this time: as if the clock had advanced no further.
            self.clock = turn.answer.stopped_at = at
            return False
        self.done_at = at
        which = times.index(at)
        if which == 0:
            self._apply_next(at)
        elif which == 1:
            decide_pending(turn)
        elif which == 2:
            turn.set_finding(min(closing)[1], None, at)
        elif which == 3:
            forget(turn, at)
        else:
            compare_with_reports(turn, at)
        return True

    def _must_stop(self, at: int) -> bool:
        """Return whether the batch's bound is reached and everything before this time is complete."""
        turn = self.turn
        if turn.facts.work_limit is None or turn.work < turn.facts.work_limit or self.done_at is None:
            return False
        # Late events were applied at the clock before the batch: what they make due then belongs to them.
        return all(at > time for time in (self.done_at, turn.group.last_applied, turn.facts.clock_before) if time)

    def _compare_at(self) -> int | None:
        """Return by when members should own their computed queues, where all of them report their queues."""
        return self.turn.group.compare_at if awaits_comparison(self.turn) else None

    def _forget_at(self) -> int | None:
        group = self.turn.group
        if group.members or group.pending is not None or not group.followed or group.touched_at is None:
            return None
        return group.touched_at + self.turn.rules.forget_after_ms

    # ---- one event time

    def _apply_next(self, at: int) -> None:
        if self.moment is None:
            self.moment = at
            self.turn.begin_event_time()
            self.turn.first_change = len(self.turn.answer.changes)
        if at in self.generations and self.turn.group.generation is not None:
            self.generations.discard(at)
            self._show_evidence_first(at)
            return
        _, order, own, _, _, _, what = heapq.heappop(self.heap)
        if isinstance(what, DueEvent):
            apply_event(self.turn, self.ledger, what, at)
        elif order == EXPIRY:
            self._expire(what, own)
        else:
            self._beat(what, at, own)
        self._follow_members()

    def _show_evidence_first(self, at: int) -> None:
        """Apply an event time with a new generation, evidence first: it may be the generation's cause."""
        dues: list[DueEvent] = []
        rest: list[_Entry] = []
        while self.heap and self.heap[0][0] == at:
            entry = heapq.heappop(self.heap)
            if isinstance(entry[-1], DueEvent):
                dues.append(entry[-1])
            else:
                rest.append(entry)
        for entry in rest:
            heapq.heappush(self.heap, entry)
        for due in sorted(dues, key=lambda due: not isinstance(due.event, _EVIDENCE)):
            apply_event(self.turn, self.ledger, due, at)
            self._follow_members()

    # ---- liveness

    def _beat(self, member_id: str, at: int, own: int) -> None:
        departed = self.turn.group.departed.get(member_id)
        if departed is not None and own <= departed.left_at and member_id not in self.turn.group.members:
            # As old as the departure: only a later heartbeat is a join.
            self._push_next_beat(member_id, departed.left_at)
            return
        if self.turn.group.followed:
            on_heartbeat(self.turn, member_id, at, own)
        if member_id not in self.turn.seen:
            self._push_next_beat(member_id, own)

    def _expire(self, member_id: str, deadline: int) -> None:
        turn = self.turn
        if member_id not in turn.seen or member_id not in turn.group.members:
            return
        turn.saw(member_id, turn.last_heartbeat(member_id, deadline))
        now = turn.deadline_of(turn.group.members[member_id])
        if now > deadline:
            self._watch(member_id)
        elif now == deadline:
            on_expiry(turn, member_id, max(deadline, turn.group.last_applied or deadline))

    def _follow_members(self) -> None:
        """Schedule the deadlines of members that joined or changed, and the next heartbeats of those that departed."""
        turn = self.turn
        while turn.touched:
            member_id = turn.touched.pop()
            if member_id in turn.seen:
                self._watch(member_id)
        while turn.departed_now:
            member_id, at = turn.departed_now.pop()
            self._push_next_beat(member_id, at - 1)

    # ---- the output

    def _answer(self) -> GroupOutput:
        turn, group, answer = self.turn, self.turn.group, self.turn.answer
        for member in group.members.values():
            if member.by_heartbeats:
                answer.last_heartbeat[member.member_id] = turn.last_heartbeat(member.member_id, self.clock - 1)
                answer.session_timeouts_ms[member.member_id] = turn.timeout_of(member)
        answer.topics = group.subscribed_topics()
        answer.work = turn.work
        answer.last_applied_ms = group.last_applied
        answer.wake_at = _earliest(
            None if group.pending is None else group.pending.opened_at + turn.rules.settle_ms,
            self._forget_at(),
            self._compare_at(),
            *(finding.closes_at for finding in group.findings.values()),
        )
        return answer


def _earliest(*moments: int | None) -> int | None:
    return min((moment for moment in moments if moment is not None), default=None)
