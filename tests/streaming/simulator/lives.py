"""Lives of fleets, and the parts of them that tests compare."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from streaming.simulator import Cause, ExpectedRebalance, Fleet
from streaming.simulator.cluster import Cluster, SimulatedTopic
from streaming.simulator.timeline import Delivery, Post, Timeline
from streaming.simulator.truth import Truth
from udfs.model.events import System

TEN_MINUTES_MS = 600_000
SEEDS = range(6)
START_MS = 1_767_225_600_000


def lived(seed: int, **how: object) -> tuple[Fleet, list[Delivery]]:
    fleet = Fleet(seed, **how)  # type: ignore[arg-type]
    return fleet, [*fleet.deliveries_until(fleet.start_ms + TEN_MINUTES_MS), *fleet.finish()]


def counted(fleet: Fleet, kind: str) -> Iterator[tuple[ExpectedRebalance, Cause]]:
    """Yield the causes in counted groups that do not depend on the reader."""
    for rebalance in fleet.truth:
        for cause in rebalance.causes:
            in_time = rebalance.required and rebalance.late_until is None
            is_twin = (cause.member_id or "").endswith("#2")  # its events carry the id of the other
            if cause.kind == kind and rebalance.generation_source == "counted" and in_time and not is_twin:
                yield rebalance, cause


def departures_reported(deliveries: list[Delivery], kind: str) -> set[tuple[str, str, str, int]]:
    """Return the departures of one kind that polls report: cluster, group, member, time of the poll."""
    return {
        (delivery.event.cluster, delivery.event.group, departure.member_id, delivery.event.event_time)
        for delivery in deliveries
        for departure in getattr(delivery.event, "departures", None) or ()
        if departure.kind == kind
    }


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class OneCluster:
    """A single cluster, on a time that the test moves; its events reach the reader without random delays."""

    def __init__(self, system: System = "kafka", seed: int = 1) -> None:
        self.timeline, self.post, self.truth = Timeline(START_MS), Post(), Truth()
        self.cluster = Cluster(
            name="c",
            system=system,
            rng=random.Random(seed),
            timeline=self.timeline,
            post=self.post,
            truth=self.truth,
            disorder=0.0,
            speed=1.0,
        )
        self.cluster.topics["t"] = SimulatedTopic("t", (None,) if system == "kafka" else ("b0", "b1"), 4)

    def live(self, span_ms: int) -> list[Delivery]:
        """Let this much time pass; return the events that reach a reader meanwhile."""
        self.timeline.run_until(self.timeline.now + span_ms)
        return list(self.post.until(self.timeline.now))

    def silence(self, span_ms: int) -> None:
        """Let the source be silent for this long from now on."""
        self.cluster.silent_from, self.cluster.silent_to = self.timeline.now, self.timeline.now + span_ms
        self.cluster._fall_silent()

    def causes(self) -> list[tuple[int, list[str]]]:
        """Return the kinds of the causes that are expected so far, with their times from the start on."""
        return [
            (rebalance.event_time - START_MS, [cause.kind for cause in rebalance.causes])
            for rebalance in self.truth.rebalances()
        ]
