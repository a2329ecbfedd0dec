"""What may happen to a group that reads: faults, each with the findings that must open, and what looks like one."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import ClassVar

from streaming.simulator.truth import epoch_ms
from tests.simulation.lived_group import ENDS_EVERY, MINUTE, SECOND, START, STEP, LivedGroup, Planted, Span

# The end of a span of event time, at which groups are evaluated, comes at the latest this long after what it shows.
_SEEN_WITHIN = MINUTE + STEP + ENDS_EVERY
_STALLED_AFTER = 3 * MINUTE
_UNREAD_AFTER = 5 * MINUTE
_COMMIT_INTERVAL = 5 * SECOND


def _within(at: int, span: int = _SEEN_WITHIN) -> Span:
    return at, at + span


class _Stalls(LivedGroup):
    """Queues stand while their owners are alive."""

    kind: ClassVar[str]

    def __init__(self, seed: str, system: str) -> None:
        super().__init__(seed, system)
        self.standing = self.planned()
        owners = frozenset(self.members[number] for number in self.members if self.standing & {*self.held(number)})
        # It needs one more commit, and two more reads of ends, to be known as standing.
        opens = self.begin, self.begin + _STALLED_AFTER + _SEEN_WITHIN + ENDS_EVERY
        self.planted.append(Planted(self.kind, opens, _within(self.end), self.standing, owners))

    def planned(self) -> frozenset[int]:
        """Return the queues that stand."""
        return frozenset(self.held(self.culprit))

    def reads_to(self, queue: int, at: int) -> int:
        """Stand for a while."""
        return self.read[queue] if queue in self.standing and self.begin <= at < self.end else self.ends[queue]


class MemberStalls(_Stalls):
    """A member reads none of its queues."""

    kind = "member_stalled"


class QueueStalls(_Stalls):
    """A member reads all of its queues but one."""

    kind = "queue_stalled"

    def planned(self) -> frozenset[int]:
        """Return the queues that stand."""
        return frozenset(self.held(self.culprit)[:1])


class GroupStalls(_Stalls):
    """No member reads."""

    kind = "group_stalled"

    def planned(self) -> frozenset[int]:
        """Return the queues that stand."""
        return frozenset(range(self.queues))


class Grows(LivedGroup):
    """The topic grows, and no generation takes the new queues in."""

    systems = ("kafka",)
    episodes = None
    taken_in_time = False

    def __init__(self, seed: str, system: str) -> None:
        super().__init__(seed, system)
        self.former = self.queues
        if self.taken_in_time:
            self.end = self.begin + self.chance.randrange(60, 55 * 5) // 5 * STEP
            return
        free = frozenset(range(self.queues, self.queues + len(self.members)))
        self.planted.append(Planted("queues_unread", _within(self.begin + _UNREAD_AFTER), _within(self.end), free))

    def act(self, at: int) -> None:
        """Grow, and be assigned."""
        if at == self.begin:
            more = len(self.members)
            self.queues += more
            self.rate += [10] * more
            self.ends += [0] * more
            self.read += [0] * more
            self.describe(at)
        elif at == self.end:
            self.report(at)

    def reads_to(self, queue: int, at: int) -> int:
        """Read what is assigned."""
        return self.ends[queue] if queue < self.former or at >= self.end else self.read[queue]


class GrowsInTime(Grows):
    """A generation takes new queues in within the age that metadata may have."""

    taken_in_time = True


class LosesQueue(LivedGroup):
    """A member reports that it no longer has a queue that its strategy gives it."""

    systems = ("rocketmq", "metaq")

    def __init__(self, seed: str, system: str) -> None:
        super().__init__(seed, system)
        self.lost = self.held(self.culprit)[0]
        unread = _within(self.begin + _UNREAD_AFTER), _within(self.end), frozenset({self.lost})
        self.planted.append(Planted("queues_unread", *unread))

    def act(self, at: int) -> None:
        """Report who has what."""
        if at == START + STEP:
            for number in self.members:
                self._report_of(number, at, self.held(number))
        elif at == self.begin:
            self._report_of(self.culprit, at, self.held(self.culprit)[1:])
        elif at == self.end:
            self._report_of(self.culprit, at, self.held(self.culprit))

    def _report_of(self, number: int, at: int, queues: list[int]) -> None:
        held = [self.ref(queue) for queue in queues]
        self.emit(at, "assignment_reported", group=self.name, member_id=self.members[number], queues=held)

    def reads_to(self, queue: int, at: int) -> int:
        """Read what is held."""
        return self.read[queue] if queue == self.lost and self.begin <= at < self.end else self.ends[queue]


class Rewinds(LivedGroup):
    """A member seeks back, and reads it again."""

    systems = ("kafka",)

    def __init__(self, seed: str, system: str) -> None:
        super().__init__(seed, system)
        self.rewound = self.held(self.culprit)[0]
        self.before: int | None = None

    def reads_to(self, queue: int, at: int) -> int:
        """Go back, then read faster than is written."""
        if queue != self.rewound or at < self.begin:
            return self.ends[queue]
        if self.before is None:
            self.before = self.read[queue]
            self.after = self.before - self.chance.randrange(20, 200)
            self.steps = self.chance.randrange(4, 100)
            return self.after
        now = min(self.ends[queue], self.read[queue] + (self.before - self.after) // self.steps + self.rate[queue])
        if now >= self.before and not self.planted:
            text = f"-{queue} from {self.before} to {self.after}, at most {self.before - self.after} messages"
            owner = frozenset({self.members[self.culprit]})
            spans = _within(self.begin, STEP), _within(at)
            self.planted.append(Planted("commits_went_back", *spans, frozenset({queue}), owner, text=text))
        return now


class _Leaves(LivedGroup):
    """All members leave, and come back."""

    systems = ("kafka",)
    episodes = None

    def __init__(self, seed: str, system: str) -> None:
        super().__init__(seed, system)
        self.clients = list(self.members)
        self.touched = frozenset(self.held(self.culprit))

    def act(self, at: int) -> None:
        """Leave, and come back."""
        if at == self.begin - 5 * MINUTE:
            self.replace(at, self.clients, [])
        elif at == self.begin:
            self.happens(at)
        elif at == self.end:
            self.replace(at, [], self.clients)

    def happens(self, at: int) -> None:
        """Do what happens meanwhile."""


class IsReset(_Leaves):
    """An administrator resets the offsets of a member that is away."""

    def happens(self, at: int) -> None:
        """Reset them."""
        text = "The group had no members since"
        self.planted.append(Planted("commits_went_back", _within(at, STEP), _within(self.end), self.touched, text=text))
        self.read = [max(0, read - 100) if queue in self.touched else read for queue, read in enumerate(self.read)]
        self.emit(at, "progress", group=self.name, queues=[self.ref(q, offset=self.read[q]) for q in self.touched])


class Expires(_Leaves):
    """Commits of a group that is away are deleted."""

    def happens(self, at: int) -> None:
        """Delete them."""
        text = f"-{min(self.touched)} at {self.read[min(self.touched)]}"
        spans = (at + MINUTE, at + 2 * MINUTE), _within(self.end)
        self.planted.append(Planted("commits_expired", *spans, self.touched, text=text))
        self.emit(at, "commits_deleted", group=self.name, queues=[self.ref(queue) for queue in sorted(self.touched)])


class LosesItsTopic(_Leaves):
    """The topic of a group that is away is deleted."""

    def happens(self, at: int) -> None:
        """Delete it with its commits."""
        self.emit(at, "commits_deleted", group=self.name, queues=[self.ref(queue) for queue in range(self.queues)])
        self.emit(at + 3 * SECOND, "topic_queues", topic=self.topic, queue_count=0)
        self.queues, self.end = 0, START


class HasANewTopic(LivedGroup):
    """The topic is deleted and made again, so that its offsets begin at 0."""

    systems = ("kafka",)
    episodes = None

    def act(self, at: int) -> None:
        """Make it again."""
        if at in (START + STEP, self.begin):
            self.describe(at, topic_id=("A" if at < self.begin else "B") * 22)
        if at == self.begin:
            self.ends, self.read = [0] * self.queues, [0] * self.queues


class IsPolledBack(LivedGroup):
    """A broker that restarts answers an older commit for a while."""

    systems = ("rocketmq",)

    def reads_to(self, queue: int, at: int) -> int:
        """Go back for a while."""
        return max(0, self.ends[queue] - 50) if self.begin <= at < self.begin + MINUTE else self.ends[queue]


class _Retained(LivedGroup):
    """Retention deletes segments of half a minute once they are old."""

    rates = (50, 200, 1_000)
    segment = MINUTE // 2

    def __init__(self, seed: str, system: str) -> None:
        super().__init__(seed, system)
        self.begin = START + self.chance.randrange(10, 14) * MINUTE
        self.kept_for = self.chance.randrange(10, 12) * MINUTE
        self.ends_at: dict[int, list[int]] = {}
        self.first = list(self.ends)

    def ends_of(self, at: int) -> list[int]:
        """Return the ends of all queues at a time at which they were read."""
        return self.ends_at.get(at, self.first)

    def start_of(self, queue: int, at: int) -> int:
        """Return where the log begins, after a deletion."""
        self.ends_at[at] = list(self.ends)
        return self.ends_of(at - self.kept_for - (at - START - self.kept_for) % self.segment)[queue]


class IsOvertaken(_Retained):
    """A member reads a queue slowly, so that retention overtakes it."""

    share: ClassVar[tuple[float, float]] = (0.2, 0.4)
    is_saved = False

    def __init__(self, seed: str, system: str) -> None:
        super().__init__(seed, system)
        self.slow = self.held(self.culprit)[0]
        self.pace = self.chance.uniform(*self.share) * self.rate[self.slow] * STEP / ENDS_EVERY
        self.owed = 0.0
        self.reads: set[int] = set()
        self.end = START + 60 * MINUTE
        self.near_at: int | None = None
        self.lost_at: int | None = None
        self.known: list[tuple[int, int, int]] = []  # time, next unread offset, start of the log

    def act(self, at: int) -> None:
        """Plant what must be found, once it is known."""
        if not self.known or self.end < at:
            return
        _, read, start = self.known[-1]
        if self.near_at is None and at % MINUTE == 0 and 0 <= 10 * (read - start) < self.ends[self.slow] - start:
            self.near_at = at
            if self.is_saved:
                self.end = at + MINUTE + STEP
                self._plant("retention_risk", _within(at - _SEEN_WITHIN, 2 * _SEEN_WITHIN), _within(self.end))
        if self.near_at is not None and self.lost_at is None and start > read:
            self.lost_at = at
            self.end = at + self.chance.randrange(30, 60) * STEP
            self._plant("retention_risk", _within(self.near_at - _SEEN_WITHIN, 2 * _SEEN_WITHIN), _within(at - STEP))
            lost = _within(at - STEP + _COMMIT_INTERVAL)
            self._plant("messages_lost", lost, _within(self.end))

    def _plant(self, kind: str, opens: Span, closes: Span) -> None:
        queues, members = frozenset({self.slow}), frozenset({self.members[self.culprit]})
        is_true = self.is_time_left if kind == "retention_risk" else self.is_loss
        self.planted.append(Planted(kind, opens, closes, queues, members, is_true=is_true))

    def reads_to(self, queue: int, at: int) -> int:
        """Read slowly for a while."""
        if queue != self.slow or not self.begin <= at < self.end:
            return self.ends[queue]
        self.owed += self.pace
        now, (_, read, start) = self.read[queue] + int(self.owed) - int(self.owed - self.pace), self.known[-1]
        # What it had fetched before it was deleted does not last until the start of the log.
        self.reads.add(min(now, start - 1) if start > read else now)
        return max(self.reads)

    def start_of(self, queue: int, at: int) -> int:
        """Return where the log begins, and remember it."""
        start = super().start_of(queue, at)
        if queue == self.slow:
            self.known.append((at, self.read[queue], start))
        return start

    def is_time_left(self, message: str) -> bool:
        """Return whether the message that was next is deleted when the finding says, to two deletions."""
        said = re.search(r"offset (\d+) (?:in about (\d+) (s|min)|with its next deletion); its log", message)
        when = re.search(r"the log's start moved at ([^;]+);", message)
        if said is None or when is None:
            return False
        left = int(said[2] or 0) * (MINUTE if said[3] == "min" else SECOND)
        written_at = epoch_ms(when[1])
        passed_at = next((at for at, _, start in self.known if start > int(said[1])), None)
        return passed_at is None or abs(written_at + left - passed_at) <= 2 * self.segment

    def is_loss(self, message: str) -> bool:
        """Return whether so many messages were between the commit and the start of the log at one time."""
        said = re.search(r": ([\d,]+), from offset (\d+) on; its log begins at (\d+)", message)
        if said is None:
            return False
        number, read, start = (int(text.replace(",", "")) for text in said.groups())
        return number == start - read > 0 and read in self.reads and start in {start for _, _, start in self.known}


class IsNearlyOvertaken(IsOvertaken):
    """It reads faster again before anything is lost."""

    share = (0.7, 0.8)
    is_saved = True


class IsEmptied(_Retained):
    """Nothing more is written, and retention deletes all that was read."""

    def written(self, queue: int, at: int) -> int:
        """Write nothing from some time on."""
        return super().written(queue, at) if at < self.begin else 0


class LagsSafely(_Retained):
    """It reads what is half as old as retention allows, always."""

    def reads_to(self, queue: int, at: int) -> int:
        """Lag."""
        half = self.kept_for // 2
        return max(self.read[queue], self.ends_of(at - 300 - (at - 300 - START) % ENDS_EVERY - half)[queue])


class CrashLoops(LivedGroup):
    """One client crashes and comes back, again and again."""

    sizes = range(3, 5)
    episodes = frozenset({"same_client_again"})

    def __init__(self, seed: str, system: str) -> None:
        super().__init__(seed, system)
        gaps = [self.chance.randrange(4, 12) * STEP for _ in range(8)]
        self.rounds = {self.begin + gap for gap in accumulate(gaps)}
        last = max(self.rounds) + 2 * STEP
        spans = (self.begin, last + SECOND), (last, last + 11 * MINUTE)
        self.planted.append(Planted("flapping", *spans, client=self.client(self.culprit)))

    def act(self, at: int) -> None:
        """Crash, or come back."""
        if at in self.rounds:
            self.replace(at, [self.culprit], [])
        elif at - 2 * STEP in self.rounds:
            self.replace(at, [], [self.culprit])


class IsDeployed(LivedGroup):
    """All members are replaced, one after the other."""

    sizes = range(3, 5)
    episodes = frozenset({"rolling_deploy"})

    def act(self, at: int) -> None:
        """Replace the next one."""
        number, rest = divmod(at - self.begin, 4 * STEP)
        if rest == 0 and 0 <= number < len(self.members):
            self.replace(at, [number], [number])


class IsAutoscaled(LivedGroup):
    """Members are added, one after the other, and removed later."""

    sizes = range(3, 4)
    episodes = frozenset({"scaling"})

    def act(self, at: int) -> None:
        """Add or remove one."""
        for begin, leaves in ((self.begin, False), (self.begin + 15 * MINUTE, True)):
            number, rest = divmod(at - begin, 4 * STEP)
            if rest == 0 and 0 <= number < 3:
                self.replace(at, [5 - number] if leaves else [], [] if leaves else [3 + number])


class CommitsRarely(LivedGroup):
    """Each queue is committed every eight minutes."""

    def reads_to(self, queue: int, at: int) -> int:
        """Commit when it is its time."""
        return self.ends[queue] if (at - START) // STEP % 96 == queue else self.read[queue]


class Pauses(LivedGroup):
    """All stand for less than the limit."""

    def reads_to(self, queue: int, at: int) -> int:
        """Stand for two minutes."""
        return self.read[queue] if self.begin <= at < self.begin + 2 * MINUTE else self.ends[queue]


class WaitsWithoutTraffic(LivedGroup):
    """Messages wait, and nothing comes after them."""

    def written(self, queue: int, at: int) -> int:
        """Write a last time."""
        if at < self.begin:
            return super().written(queue, at)
        return 500 if at < self.begin + ENDS_EVERY else 0

    def reads_to(self, queue: int, at: int) -> int:
        """Stand from then on."""
        return self.ends[queue] if at < self.begin else self.read[queue]


class HasMarkers(LivedGroup):
    """A transaction's marker is always the last offset, and is never committed."""

    def reads_to(self, queue: int, at: int) -> int:
        """Commit all but the marker."""
        return max(self.read[queue], self.ends[queue] - 1)


FAULTS = (
    *(QueueStalls, MemberStalls, GroupStalls, Grows, LosesQueue, Rewinds, IsReset, Expires),
    *(IsOvertaken, IsNearlyOvertaken, CrashLoops),
)
HEALTHY = (IsDeployed, IsAutoscaled)
HARMLESS = (
    *(CommitsRarely, Pauses, WaitsWithoutTraffic, HasMarkers, GrowsInTime, LosesItsTopic, HasANewTopic, IsPolledBack),
    *(IsEmptied, LagsSafely),
)
