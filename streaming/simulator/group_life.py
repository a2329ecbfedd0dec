"""Shell: the common base of all simulated groups: a name, a random generator, one action after another."""

from __future__ import annotations

import random
from collections.abc import Callable

from streaming.simulator.cluster import TOPIC_CHANGE_MS, Cluster, SourceFields

MEAN_QUIET_MS = 45_000


class GroupEventFields(SourceFields):
    """The fields of any event of a group."""

    group: str


class GroupLife:
    """A group that does something, rests, and does something else."""

    def __init__(self, cluster: Cluster, group_id: str, topics: list[str], rng: random.Random) -> None:
        self.cluster = cluster
        self.group_id = group_id
        self.topics = topics
        self.rng = rng
        self.with_ids = rng.random() < 0.5
        self.may_repeat = True
        self.busy_until = 0

    @property
    def now(self) -> int:
        """The simulated time."""
        return self.cluster.timeline.now

    def actions(self) -> list[tuple[int, Callable[[], None]]]:
        """Return the possible actions of the group now, each with its weight; defined by each kind of group."""
        raise NotImplementedError

    def later(self, wait_ms: int, action: Callable[[], None]) -> None:
        """Run ``action`` after a while, but not while the source is silent, nor while topics change."""
        time_ms = self.now + wait_ms
        time_ms += time_ms % 1_000 == TOPIC_CHANGE_MS
        self.cluster.timeline.at(time_ms, lambda: self._unless_silent(action))

    def _unless_silent(self, action: Callable[[], None]) -> None:
        if self.cluster.is_silent():
            # Actions are postponed by the length of the silence, so that planned ones still happen in order.
            wait = self.cluster.silent_to - self.cluster.silent_from + 1_000
            self.busy_for(wait + 30_000)
            self.later(wait, action)
        else:
            action()

    def busy_for(self, span_ms: int) -> None:
        """Start nothing else for this long."""
        self.busy_until = max(self.busy_until, self.now + span_ms)

    def rest(self) -> None:
        """Wait a while, then act again."""
        quiet = int(self.rng.expovariate(1 / MEAN_QUIET_MS) / self.cluster.speed) + 500
        self.later(quiet, self._act)

    def _act(self) -> None:
        if self.busy_until <= self.now:
            possible = self.actions()
            if possible:
                weights = [weight for weight, _ in possible]
                self.rng.choices([action for _, action in possible], weights)[0]()
        self.rest()

    def fields(self) -> GroupEventFields:
        """Return the fields that every event of this group has at the current time."""
        return {**self.cluster.common(with_id=self.with_ids), "group": self.group_id}

    def hexadecimal(self, digits: int) -> str:
        """Return some hexadecimal digits."""
        return f"{self.rng.getrandbits(4 * digits):0{digits}x}"

    def some_topics(self) -> tuple[str, ...]:
        """Return one or more of the group's topics, sorted."""
        return tuple(sorted(self.rng.sample(self.topics, self.rng.randint(1, len(self.topics)))))
