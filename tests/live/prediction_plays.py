"""Scripts of joins, restarts, crashes and leaves that real groups play, each in a group and with topics of its own."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.kit.brokers import Broker
from tests.kit.members import Member, Partition, wait_until, wait_until_assigned
from tests.kit.topics import add_partitions, create_topic
from tests.live.story import partitions
from tests.simulation.core_run import CoreRun, run_of

StartMember = Callable[..., Member]
# A member that is killed is missed after its session; it is back before the longer one is over, on a busy machine too.
SESSION_MS, LONG_MS = 6_000, 24_000
# How long nobody does anything after a member left for good, so that its longer session is over.
_WAIT_S = LONG_MS / 1_000 + 3
ONE, TWO = "one", "two"


class Action(NamedTuple):
    """What happens to a group.

    Attributes:
        kind: ``join``; ``restart``, in order; ``crash``, with a return after the session; ``leave``, for good;
            ``away``, the same, but what comes next does not wait for the session of a static member; ``wait``, for a
            longer session; or ``grow``, of the first topic.
    """

    kind: str
    client: str = ""
    total: int = 0


class Settings(NamedTuple):
    """How a group plays a script.

    Attributes:
        group: Its name, which no other name of a group has in it. counts: The partitions of its topics.
        more: Of each consumer. waits: Whether it waits for longer sessions than its own.
    """

    group: str
    counts: Mapping[str, int]
    strategies: tuple[str, ...] = ("range",)
    is_static: bool = False
    session_ms: int = SESSION_MS
    more: Mapping[str, str] = {}
    waits: bool = False


class Moment(NamedTuple):
    """A group before and after an action.

    Attributes:
        at: A time right before it, epoch ms. joined: The id of the member that joined; empty if none did.
        left: The id of the member that left; empty if none did. held: The client that holds each partition after it.
    """

    action: Action
    at: int
    joined: str
    left: str
    held: dict[Partition, str]


class Play:
    """A group that plays a script.

    Attributes:
        ids: The member ids that the coordinator gave each client, one after the other.
    """

    def __init__(self, broker: Broker, start: StartMember, settings: Settings) -> None:
        self._broker, self._start, self.settings = broker, start, settings
        self._counts = dict(settings.counts)
        self._present: dict[str, Member] = {}
        self.ids: dict[str, list[str]] = {}
        self.moments: list[Moment] = []
        for topic, number in settings.counts.items():
            create_topic(broker, self.topic(topic), number)

    def topic(self, name: str) -> str:
        """Return the name of a topic of the group."""
        return f"{self.settings.group}.{name}"

    def play(self, script: Sequence[Action]) -> Play:
        """Let everything happen; each action begins when the group has settled after the one before."""
        for action in script:
            at = time.time_ns() // 1_000_000
            joined = left = ""
            if action.kind == "grow":
                add_partitions(self._broker, self.topic(ONE), action.total)
                self._counts[ONE] = action.total
            elif action.kind == "wait":
                time.sleep(_WAIT_S * self.settings.waits)
            elif action.kind != "join":
                left = self._depart(action)
            if action.kind in ("join", "restart", "crash"):
                joined = self._join(action.client)
            if action.kind != "away" or not self.settings.is_static:
                self._settle()
            held = {
                (topic.removeprefix(f"{self.settings.group}."), number): client
                for client, member in self._present.items()
                for topic, number in member.owned
            }
            self.moments.append(Moment(action, at, joined, left, held))
        return self

    def _settle(self) -> None:
        everything = [place for topic, count in self._counts.items() for place in partitions(self.topic(topic), count)]
        members = [*self._present.values()]
        if "group.protocol" in self.settings.more:
            wait_until(members, lambda: _is_even(members, everything))
        else:
            wait_until_assigned(members, everything)
        for client, member in self._present.items():
            ids = self.ids.setdefault(client, [])
            assert member.member_id is not None
            if member.member_id not in ids:
                ids.append(member.member_id)

    def _join(self, client: str) -> str:
        settings = self.settings
        self._present[client] = self._start(
            self._broker,
            settings.group,
            [self.topic(topic) for topic in settings.counts],
            client_id=client,
            strategies=settings.strategies,
            session_timeout_ms=settings.session_ms,
            instance_id=client if settings.is_static else None,
            settings=settings.more,
        )
        self._settle()
        return self.ids[client][-1]

    def _depart(self, action: Action) -> str:
        member = self._present.pop(action.client)
        if action.kind == "crash":
            member.kill()
        else:
            member.stop()
        if action.kind == "leave" or not self.settings.is_static:
            self._settle()
        return self.ids[action.client][-1]


def _is_even(members: Sequence[Member], everything: Sequence[Partition]) -> bool:
    """Return whether a group whose members move from epoch to epoch one by one has come to its balanced end."""
    held = [member.owned for member in members]
    numbers = [len(owned) for owned in held]
    return sorted(place for owned in held for place in owned) == sorted(everything) and max(numbers) - min(numbers) <= 1


def random_script(seed: int) -> list[Action]:
    """Return joins, restarts and crashes, a rolling restart, a leave for good, and later the join of somebody else."""
    chance = random.Random(seed)
    clients = list("bcd")
    chance.shuffle(clients)
    script = [Action("join", client) for client in clients]
    kinds = ["crash", "restart"]
    chance.shuffle(kinds)
    script += [Action(kind, chance.choice(clients)) for kind in kinds]
    chance.shuffle(clients)
    script += [Action("restart", client) for client in clients]
    return [*script, Action("leave", chance.choice(clients)), Action("wait"), Action("join", chance.choice("ae"))]


def run_of_group(folder: Path, group: str, others: Sequence[str]) -> CoreRun:
    """Run what a collector wrote of one of several groups."""
    return run_of(text for text in _lines(folder) if not any(other.encode() in text for other in others))


def renamed_run(folder: Path, was: Play, now: Play, others: Sequence[str]) -> CoreRun:
    """Run what a collector wrote of one group under the names that another one has, which played the same script.

    No one knows beforehand which ids a coordinator gives; a prediction has to be right for those that it gave.
    """
    names = {was.settings.group: now.settings.group}
    for client, ids in was.ids.items():
        assert len(ids) == len(now.ids[client]), (client, ids, now.ids[client])
        names |= dict(zip(ids, now.ids[client], strict=True))
    left_out = [other for other in others if other != was.settings.group]
    lines = []
    for text in _lines(folder):
        if not any(other.encode() in text for other in left_out):
            for old, new in names.items():
                text = text.replace(old.encode(), new.encode())
            lines.append(text)
    return run_of(lines)


def _lines(folder: Path) -> list[bytes]:
    return [line for file in sorted(folder.glob("*.jsonl")) for line in file.read_bytes().splitlines()]
