"""One group that lives: its queues are written, its members read and commit them; what is planted is its truth."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

START = 1_767_225_600_000
SECOND, MINUTE = 1_000, 60_000
LENGTH = 40 * MINUTE
STEP = 5 * SECOND  # between two commits of a member
ENDS_EVERY = 10 * SECOND
SYSTEMS = ("kafka", "rocketmq", "metaq")
Event = dict[str, Any]
Span = tuple[int, int]


class Planted(NamedTuple):
    """A finding that must open and close between these times.

    Attributes:
        queues: All queues that it names. members: All members that it names, by their ids. client: The first of the
            clients that it names. text: A part of its last message. is_true: Whether that message is true.
    """

    kind: str
    opens: Span
    closes: Span
    queues: frozenset[int] = frozenset()
    members: frozenset[str] = frozenset()
    client: str | None = None
    text: str = ""
    is_true: Callable[[str], bool] = str.__len__

    def fits(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row of ``findings`` is this one."""
        if self.client is not None:
            is_culprit = [named["client"] for named in row["clients"] or ()][:1] == [self.client]
        else:
            is_culprit = self.members == {member["member_id"] for member in row["members"] or ()}
        return (
            row["kind"] == self.kind
            and self.opens[0] <= row["opened_at"] <= self.opens[1]
            and row["closed_at"] is not None
            and self.closes[0] <= row["closed_at"] <= self.closes[1]
            and self.queues == {queue["queue_id"] for queue in row["queues"] or ()}
            and is_culprit
            and self.text in row["message"]
            and bool(self.is_true(row["message"]))
        )


class LivedGroup:
    """A group to which nothing happens; each fate is a class of its own that overrides what differs.

    Attributes:
        systems: Where the fate can be. planted: The findings that must open, and no others. episodes: The kinds of its
            episodes; None: of no interest.
    """

    systems: ClassVar[tuple[str, ...]] = SYSTEMS
    sizes: ClassVar[range] = range(2, 5)
    rates: ClassVar[tuple[int, ...]] = (3, 10, 200)
    episodes: ClassVar[frozenset[str] | None] = frozenset()

    def __init__(self, seed: str, system: str) -> None:
        fate = type(self).__name__
        self.chance = random.Random(f"{seed} {system} {fate}")
        self.system, self.name = system, f"{fate}-{system}-{seed}"
        self.topic = f"of-{self.name}"
        self.app = self.chance.choice(("payments", "orders-eu", "search"))
        size = self.chance.choice(self.sizes)
        # At most ten: beyond that MetaQ sorts queue 10 before queue 2, and members hold no ranges.
        self.queues = size * self.chance.randrange(2, min(3, 10 // size) + 1)
        self.rate = [self.chance.choice(self.rates) for _ in range(self.queues)]
        self.ends = [self.chance.randrange(1_000) for _ in range(self.queues)]
        self.read = list(self.ends)
        self.generation = self.serial = 0
        self.members: dict[int, str] = {number: self.new_member(number) for number in range(size)}
        self.begin = START + self.chance.randrange(12, 18) * MINUTE + self.chance.randrange(MINUTE)
        self.begin -= self.begin % STEP
        self.end = self.begin + self.chance.randrange(7, 14) * MINUTE
        self.culprit = self.chance.randrange(size)
        self.polled: dict[int, int] = {}
        self.events: list[Event] = []
        self.planted: list[Planted] = []

    # What a fate overrides.

    def act(self, at: int) -> None:
        """Do what happens at a step, before its messages are written."""

    def written(self, queue: int, at: int) -> int:
        """Return how many messages of a queue were written since the ends were read."""
        return self.rate[queue] + (self.chance.random() < 0.5)

    def reads_to(self, queue: int, at: int) -> int:
        """Return the offset that the owner of a queue commits at a step."""
        return self.ends[queue]

    def start_of(self, queue: int, at: int) -> int | None:
        """Return where the log of a queue begins; None if its source does not report it."""
        return None

    # What fates use.

    def held(self, number: int) -> list[int]:
        """Return the queues of a member, which every strategy assigns in ranges."""
        order = sorted(self.members)
        each, more = divmod(self.queues, len(order))
        bounds = [0, *accumulate(each + (place < more) for place in range(len(order)))]
        place = order.index(number)
        return list(range(bounds[place], bounds[place + 1]))

    def client(self, number: int) -> str:
        """Return the name of a client with its host."""
        return f"{self.app}-{number}@10.0.0.{number + 1}"

    def new_member(self, number: int) -> str:
        """Return the id of a new member of a client."""
        self.serial += 1
        return f"{self.app}-{number}-{self.serial}"

    def emit(self, at: int, kind: str, **fields: Any) -> None:
        """Add an event."""
        common = {"schema_version": 1, "event_time": at, "system": self.system, "cluster": self.system, "type": kind}
        self.events.append(common | fields)

    def ref(self, queue: int, **fields: Any) -> Event:
        """Return a queue as events name it."""
        return {"topic": self.topic} | self.place(queue) | fields

    def place(self, queue: int) -> Event:
        """Return a queue as events of its topic name it."""
        return {"queue_id": queue} | ({} if self.system == "kafka" else {"broker": "b"})

    def describe(self, at: int, **fields: Any) -> None:
        """Report the queues of the topic."""
        queues = [self.place(queue) for queue in range(self.queues)]
        self.emit(at, "topic_queues", topic=self.topic, queues=queues, **fields)

    def replace(self, at: int, leave: list[int], join: list[int]) -> None:
        """Let clients leave, then join, at once."""
        left = [self.members.pop(number) for number in leave]
        self.members |= {number: self.new_member(number) for number in join}
        if self.system == "kafka":
            self.report(at)
            return
        for member_id in left:
            self.emit(at, "member_left", group=self.name, member_id=member_id)
        for number in join:
            self.emit(at, "member_joined", group=self.name, **self._described(number))

    def report(self, at: int) -> None:
        """Report a new generation of a group of Kafka."""
        self.generation += 1
        self.emit(
            at,
            "group_snapshot",
            group=self.name,
            generation=self.generation,
            state="Stable" if self.members else "Empty",
            strategy="range",
            members=[self._described(number) for number in self.members],
            assignments={
                member_id: [self.ref(queue) for queue in self.held(number)]
                for number, member_id in self.members.items()
            },
        )

    def live(self) -> list[Event]:
        """Return the events of the group's life."""
        self.describe(START)
        if self.system == "kafka":
            self.report(START)
        else:
            for number in self.members:
                self.emit(START, "member_joined", group=self.name, **self._described(number))
        for at in range(START + STEP, START + LENGTH, STEP):
            self.act(at)
            if (at - START) % ENDS_EVERY == 0:
                self._write(at)
            if self.members:
                self._commit(at + 300)
            if self.system != "kafka" and (at - START) % (4 * STEP) == 0:
                for member_id in self.members.values():
                    self.emit(at + 1, "heartbeat", group=self.name, member_id=member_id)
        return self.events

    def _described(self, number: int) -> Event:
        client_id, host = self.client(number).split("@")
        return {
            "member_id": self.members[number],
            "client_id": client_id,
            "host": host,
            "subscriptions": [self.topic],
        }

    def _write(self, at: int) -> None:
        for queue in range(self.queues):
            self.ends[queue] += self.written(queue, at)
        queues = []
        for queue, end in enumerate(self.ends):
            start = self.start_of(queue, at)
            if self.system == "kafka" or start is not None:
                begins = {} if start is None else {"start_offset": start}
                queues.append(self.place(queue) | {"end_offset": end} | begins)
        if queues:
            self.emit(at, "queue_ends", topic=self.topic, queues=queues)

    def _commit(self, at: int) -> None:
        moved = []
        for queue in range(self.queues):
            now = self.reads_to(queue, at)
            if now != self.read[queue]:
                self.read[queue] = now
                moved.append(queue)
        queues = []
        if self.system == "kafka":
            queues = [self.ref(queue, offset=self.read[queue]) for queue in moved]
        elif (at - START) % ENDS_EVERY < STEP:  # a poll shows what moved, and whose lag did
            for queue in range(self.queues):
                moves = self.polled.get(queue) != self.read[queue]
                self.polled[queue] = self.read[queue]
                queues.append(self.ref(queue, offset=self.read[queue], end_offset=self.ends[queue], moved=moves))
        if queues:
            self.emit(at, "progress", group=self.name, queues=queues)

    def verdicts(self, found: list[Event]) -> Iterator[tuple[str, bool]]:
        """Yield each finding with whether it is a planted one, and each planted one that was not found."""
        left = list(self.planted)
        for row in found:
            fitting = next((planted for planted in left if planted.fits(row)), None)
            if fitting is not None:
                left.remove(fitting)
            yield row["kind"], fitting is not None
        for planted in left:
            yield f"missed {planted.kind}", False
