"""Shell: a whole simulated fleet, made from one seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from streaming.simulator.cluster import Cluster, GroupOfCluster, SimulatedTopic
from streaming.simulator.heartbeat_group import HeartbeatGroup
from streaming.simulator.polled_group import ForeignGroup, PolledGroup
from streaming.simulator.reported_group import CUSTOM_STRATEGY, ReportedGroup
from streaming.simulator.timeline import Delivery, Post, Timeline
from streaming.simulator.truth import ExpectedRebalance, SilentSource, Truth
from udfs.model.events import AnyEvent
from udfs.model.systems import System

# Recordings begin at this time, so that the same seed gives the same bytes.
RECORDINGS_START_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
CLUSTERS: tuple[tuple[str, System], ...] = (
    ("kafka-main", "kafka"),
    ("rocketmq-orders", "rocketmq"),
    ("metaq-legacy", "metaq"),
)
SUBJECTS = ("orders", "payments", "shipments", "invoices", "clicks", "users", "stock", "prices", "refunds", "mails")
PURPOSES = ("billing", "search", "fraud", "mailer", "audit", "export", "ranking", "alerts", "loyalty", "reports")
BROKERS: dict[System, tuple[str | None, ...]] = {
    "kafka": (None,),
    "rocketmq": ("broker-a", "broker-b"),
    "metaq": ("0", "1"),
}
# Kinds of groups in the order in which a cluster gets them.
KINDS: dict[System, tuple[str, ...]] = {
    "kafka": (
        "range",
        "heartbeats",
        "cooperative-sticky",
        "silent range",
        "roundrobin",
        "heartbeats",
        "custom",
        "foreign",
    ),
    "rocketmq": ("heartbeats", "heartbeats", "polled", "heartbeats"),
    "metaq": ("heartbeats", "polled", "heartbeats"),
}


class Fleet:
    """Clusters with topics, groups and members, driven by a script and chance.

    The same arguments give the same events in the same order, and the same truth.

    Args:
        clusters, groups, members: Numbers; groups over all clusters, members over all groups, approximately.
        speed: How many times as often as usual something happens to a group (usually about once in 45 s).
        disorder: How much goes wrong between source and reader: 0 for nothing but small delays, 1 for the usual.
        short_sessions: Every member reports a session timeout of some seconds, so that crashes show soon.
    """

    def __init__(
        self,
        seed: int,
        *,
        start_ms: int = RECORDINGS_START_MS,
        clusters: int = 3,
        groups: int = 24,
        members: int | None = None,
        speed: float = 1.0,
        disorder: float = 1.0,
        short_sessions: bool = False,
    ) -> None:
        if clusters < 1 or groups < clusters or speed <= 0 or disorder < 0:
            raise ValueError("a fleet needs a cluster, a group for each, a speed above 0 and no negative disorder")
        self.seed = seed
        self.start_ms = start_ms
        self._short_sessions = short_sessions
        self._mean_size = max(2.0, (members or 8 * groups) / groups)
        self._timeline = Timeline(start_ms)
        self._post = Post()
        self._truth = Truth()
        self.clusters = [self._cluster(number, speed, disorder) for number in range(clusters)]
        for number in range(groups):
            self._add_group(self.clusters[number % clusters], number // clusters)
        for cluster in self.clusters:
            unread = sorted(cluster.topics)[-1] if len(cluster.topics) > 2 else None
            cluster.start(late_topic=unread)

    # -- reading ---------------------------------------------------------------------------------------------

    def events_until(self, time_ms: int) -> Iterator[AnyEvent]:
        """Simulate until then, and return the events that reach a reader by then, in that order."""
        for delivery in self.deliveries_until(time_ms):
            yield delivery.event

    def deliveries_until(self, time_ms: int) -> Iterator[Delivery]:
        """Return the same as ``events_until``, with the time and form in which each event is written."""
        self._timeline.run_until(time_ms)
        return self._post.until(time_ms)

    def finish(self) -> Iterator[Delivery]:
        """End the simulation now, and return the events that are still in transit."""
        for cluster in self.clusters:
            cluster.finish()
        return self._post.until(None)

    @property
    def truth(self) -> list[ExpectedRebalance]:
        """Return every rebalance that a reader of all events so far must find."""
        return self._truth.rebalances()

    def drain_truth(self) -> list[ExpectedRebalance]:
        """Return the expected rebalances that were not returned before, and forget them to bound memory."""
        return self._truth.drain()

    @property
    def silences(self) -> list[SilentSource]:
        """Return every completed outage of a source."""
        return list(self._truth.silences)

    @property
    def newest(self) -> dict[str, int]:
        """Return the newest event time of each cluster so far."""
        return dict(self._truth.newest)

    # -- making ----------------------------------------------------------------------------------------------

    def _cluster(self, number: int, speed: float, disorder: float) -> Cluster:
        name, system = CLUSTERS[number % len(CLUSTERS)]
        if number >= len(CLUSTERS):
            name = f"{name}-{number // len(CLUSTERS) + 1}"
        rng = self._chance(name)
        cluster = Cluster(
            name=name,
            system=system,
            rng=rng,
            timeline=self._timeline,
            post=self._post,
            truth=self._truth,
            disorder=disorder,
            speed=speed,
        )
        for subject in SUBJECTS[: 6 if number < len(CLUSTERS) else 10]:
            topic = SimulatedTopic(subject, BROKERS[system], rng.randint(3, 12) // (1 if system == "kafka" else 2) + 1)
            cluster.topics[subject] = topic
        return cluster

    def _chance(self, *name: object) -> random.Random:
        return random.Random("/".join(map(str, (self.seed, *name))))

    def _add_group(self, cluster: Cluster, number: int) -> None:
        rng = self._chance(cluster.name, number)
        kind = KINDS[cluster.system][number % len(KINDS[cluster.system])]
        topics = rng.sample(sorted(cluster.topics), rng.choice((1, 2, 2, 3)))
        name = f"{topics[0]}-{PURPOSES[number % len(PURPOSES)]}"
        if number >= len(PURPOSES):
            name += f"-{number // len(PURPOSES) + 1}"
        size = max(2, round(self._mean_size * rng.choice((0.5, 0.75, 1.0, 1.0, 1.25, 1.5))))
        cluster.groups.append(self._group(cluster, kind, name, topics, rng, size))

    def _group(
        self, cluster: Cluster, kind: str, name: str, topics: list[str], rng: random.Random, size: int
    ) -> GroupOfCluster:
        if kind == "foreign":
            return ForeignGroup(cluster, name, topics, rng)
        if kind == "polled":
            return PolledGroup(cluster, name, topics, rng, size)
        if kind == "heartbeats":
            short = (6_000, 10_000, 15_000)
            timeout = rng.choice(short if self._short_sessions else (None, None, *short, 60_000))
            return HeartbeatGroup(cluster, name, topics, rng, size, timeout)
        strategy = {"custom": CUSTOM_STRATEGY, "silent range": "range"}.get(kind, kind)
        return ReportedGroup(
            cluster,
            name,
            topics,
            rng,
            size=size,
            timeout_ms=10_000 if self._short_sessions else rng.choice((10_000, 45_000)),
            strategy=strategy,
            commits=kind != "silent range",
            first_generation=rng.choice((1, 1, 1, rng.randint(2, 90))),
        )
