"""Fleets in which clients crash again and again, deploys roll, autoscalers work, periods beat and topics are found.

Around these are groups whose clients come and go without a common cause. `python -m tests.simulation.episodes [FLEETS]`
prints recall and precision of each kind, how often its culprit is the planted one, and the findings `flapping` of
groups that are deployed and scaled only; the target is 99 %, and no finding.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tests.core_config import core_config
from tests.simulation.client_history import KINDS as SYSTEM_KINDS
from tests.simulation.client_history import ClientHistory, Event
from tests.simulation.core_run import CoreRun, rows_of

START = 1_767_225_600_000
SECOND, MINUTE = 1_000, 60_000
LENGTH = 90 * MINUTE
BATCH_MS = 2 * MINUTE
KINDS = ("same_client_again", "periodic", "rolling_deploy", "scaling", "topic_discovered")
HEALTHY = ("deployed", "autoscaled")
FATES = ("crashes", "ghosts", "polls_late", "refreshes", "deployed", "autoscaled", "discovers", "churns", "lone")
Deed = tuple[str, str]


class Planted(NamedTuple):
    """An episode that must be found: its kind, its culprit, and between which times."""

    kind: str
    who: str | None
    since: int
    until: int


class Fleet(ClientHistory):
    """A group and its fate."""

    def __init__(self, seed: str, kind: str, fate: str) -> None:
        super().__init__(kind, f"{fate}-{kind}-{seed}", kind, queues=24)
        self.chance = random.Random(f"{seed} {kind} {fate}")
        self.fate = fate
        self.app = self.chance.choice(("payments", "orders-eu", "search"))
        self.size = self.chance.randrange(3, 7)
        self.clients = [f"{self.app}-{number}" for number in range(self.size)]
        self.planted: list[Planted] = []

    def live(self) -> None:
        """Play the group's life."""
        self.begin(0, self.clients)
        getattr(self, f"_{self.fate}")()
        self.clock(LENGTH)

    def _some(self, low: int, high: int) -> int:
        """Return a span in seconds, as milliseconds that are not whole seconds."""
        return round(1_000 * self.chance.uniform(low, high))

    def _plant(self, kind: str, who: str | None, since: int, until: int) -> None:
        self.planted.append(Planted(kind, who, since, until))

    def _crashes(self) -> None:
        """One client crashes and comes back, with a back-off that grows."""
        client = self.chance.choice(self.clients)
        begin = at = 20 * MINUTE + self._some(0, 60)
        back_off = self._some(5, 15)
        for _ in range(self.chance.randrange(4, 8)):
            self.change(at, [(self.chance.choice("-!"), client)])
            last = at + back_off
            self.change(last, [("+", client)])
            at = last + self._some(2, 90)
            back_off = min(2 * back_off, 5 * MINUTE)
        self._plant("same_client_again", self._name(client), begin, last)

    def _ghosts(self) -> None:
        """One client dies without leaving, and its successor joins at once."""
        client = self.chance.choice(self.clients)
        begin = at = 20 * MINUTE + self._some(0, 60)
        for _ in range(self.chance.randrange(3, 6)):
            self.crash(client)
            if self.kind == "kafka":
                self.change(at, [("!", client), ("+", client)])
                last = at
            else:
                self.change(at, [("+", client)])
                last = at + self._some(15, 40)
                self.change(last, [("!", client)])
            at = last + self._some(20, 100)
        self._plant("same_client_again", self._name(client), begin, last)

    def _polls_late(self) -> None:
        """One client leaves by poll timeout, again and again at the same period."""
        client = self.chance.choice(self.clients)
        first = 20 * MINUTE + self._some(0, 60)
        beats = self.chance.randrange(5, 8)
        for beat in range(beats):
            at = first + beat * 300 * SECOND + self._some(-1, 1)
            self.change(at, [("~", client)])
            last = at + self._some(1, 20)
            self.change(last, [("+", client)])
        self._plant("periodic", self._name(client), first - SECOND, last)

    def _refreshes(self) -> None:
        """The subscriptions follow a pattern, and each refresh of the metadata shows another topic."""
        first = 20 * MINUTE + self._some(0, 60)
        beats = self.chance.randrange(5, 8)
        for beat in range(beats):
            last = first + beat * 300 * SECOND + self._some(-1, 1)
            self.subscribe(last, self.clients[0], f"{self.group}.{beat}")
        self._plant("periodic", None, first - SECOND, last)

    def _deployed(self) -> None:
        """Two deploys, client by client."""
        at = 20 * MINUTE
        for _ in range(2):
            begin = at = at + self._some(120, 600)
            for client in self.chance.sample(self.clients, self.size):
                self.change(at, [("-", client)])
                last = at + self._some(1, 25)
                self.change(last, [("+", client)])
                at = last + self._some(5, 30)
            self._plant("rolling_deploy", self.app, begin, last)
            at += 2 * MINUTE

    def _autoscaled(self) -> None:
        """Waves of an autoscaler, up and down."""
        added = [f"{self.app}-{self.size + number}" for number in range(self.chance.randrange(3, 7))]
        at = 20 * MINUTE
        for deed, clients in (("+", added), ("-", added[::-1])):
            begin = at = at + self._some(0, 300)
            for client in clients:
                last = at
                self.change(at, [(deed, client)])
                at += self._some(3, 60)
            self._plant("scaling", self.app, begin, last)
            at += 15 * MINUTE

    def _discovers(self) -> None:
        """Each member finds a new topic with its own refresh of the metadata."""
        begin = 20 * MINUTE
        topic = f"{self.group}.new"
        times = sorted(begin + self._some(1, 300) for _ in self.clients)
        for at, client in zip(times, self.chance.sample(self.clients, self.size), strict=True):
            self.subscribe(at, client, topic)
        self._plant("topic_discovered", topic, times[0], times[-1])

    def _churns(self) -> None:
        """Clients of different kinds come and go, each for a reason of its own."""
        at = 20 * MINUTE
        names = [f"{word}-{self.chance.randrange(100)}" for word in ("batch", "tool", "report", "probe", "export")]
        for name in names:
            at += self._some(60, 400)
            self.change(at, [("+", name)])
            if self.chance.random() < 0.6:
                self.change(at + self._some(40, 500), [("-", name)])
                at += 500 * SECOND

    def _lone(self) -> None:
        """One client restarts, and once more long after."""
        for at in (20 * MINUTE, 60 * MINUTE):
            client = self.chance.choice(self.clients)
            at += self._some(0, 60)
            self.change(at, [("-", client)])
            self.change(at + self._some(1, 30), [("+", client)])

    def _name(self, client: str) -> str:
        return f"{client}@{self.hosts[client]}"

    def verdicts(self, found: Sequence[Event]) -> Iterator[tuple[str, bool, bool]]:
        """Yield for each episode its kind, whether it is a planted one, and whether its culprit is.

        Planted episodes that were not found come last, as ``missed KIND``.
        """
        left = list(self.planted)
        for row in found:
            of_it = next(
                (
                    planted
                    for planted in left
                    if planted.kind == row["kind"]
                    and planted.since <= row["began_at"] - START
                    and row["last_at"] - START <= planted.until + SECOND
                    and row["closed_at"] is not None
                ),
                None,
            )
            if of_it is not None:
                left.remove(of_it)
            who = row["client"] or row["prefix"] or row["topic"]
            yield row["kind"], of_it is not None, of_it is not None and who == of_it.who
        for planted in left:
            yield f"missed {planted.kind}", False, False


def fleet(seed: int) -> list[Fleet]:
    """Return groups of all kinds of systems with all fates that they can have."""
    groups = [
        Fleet(str(seed), kind, fate)
        for kind in SYSTEM_KINDS
        for fate in FATES
        # Only Kafka's clients leave by poll timeout; records of the new protocol show topics by their ids.
        if (kind.startswith("kafka") or fate != "polls_late") and (kind != "kafka-new" or fate not in _BY_TOPICS)
    ]
    for group in groups:
        group.live()
    return groups


_BY_TOPICS = ("refreshes", "discovers")


def tables_of(groups: Sequence[Fleet], batch_ms: int = BATCH_MS) -> dict[str, list[Event]]:
    """Return the tables of the clusters of one fleet."""
    batches: dict[int, list[bytes]] = {}
    for event in (event for group in groups for event in group.events):
        fields = {"schema_version": 1, **event, "event_time": START + event["t"]}
        del fields["t"]
        batches.setdefault(fields["event_time"] // batch_ms, []).append(json.dumps(fields).encode())
    run = CoreRun(core_config(shards=2, settle_ms=200))
    for number in sorted(batches):
        run.batch((number + 1) * batch_ms + SECOND, batches[number])
    return dict(rows_of(run.changes))


class Figures(NamedTuple):
    """Episodes of a kind: planted, found, right, and right with the right culprit."""

    planted: int
    found: int
    right: int
    named: int


def measured(seeds: Sequence[int]) -> tuple[dict[str, Figures], int]:
    """Return the figures of each kind, and how many findings ``flapping`` healthy groups have."""
    counts: Counter[tuple[str, str]] = Counter()
    flapping = 0
    for seed in seeds:
        groups = fleet(seed)
        tables = tables_of(groups)
        for group in groups:
            counts.update(("planted", planted.kind) for planted in group.planted)
            rows = [row for row in tables["episodes"] if row["group_id"] == group.group]
            for kind, is_right, is_named in group.verdicts(sorted(rows, key=_began)):
                counts["found", kind] += 1
                counts["right", kind] += is_right
                counts["named", kind] += is_named
                if not (is_right and is_named):
                    sys.stderr.write(f"{group.group}: {kind}\n")
            findings = [row for row in tables["findings"] if row["group_id"] == group.group]
            flapping += group.fate in HEALTHY and any(row["kind"] == "flapping" for row in findings)
    return {kind: Figures(*(counts[name, kind] for name in Figures._fields)) for kind in KINDS}, flapping


def _began(row: Mapping[str, Any]) -> int:
    return int(row["began_at"])


def main() -> None:
    """Print recall, precision, and how often the culprit is the planted one."""
    found, flapping = measured(range(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
    for kind, figures in found.items():
        shares = (
            f"recall {figures.right / figures.planted:7.2%}  precision {figures.right / max(figures.found, 1):7.2%}"
        )
        named = f"culprit {figures.named / max(figures.right, 1):7.2%}"
        sys.stdout.write(f"{kind:18} {figures.planted:5} planted, {figures.found:5} found  {shares}  {named}\n")
    sys.stdout.write(f"findings flapping of groups that are only deployed or scaled: {flapping}\n")


if __name__ == "__main__":
    main()
