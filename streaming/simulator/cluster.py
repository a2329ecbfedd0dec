"""Shell: one simulated cluster: its topics, its source of events with delays, losses and repeats, its silences."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import NotRequired, Protocol, cast

from streaming.simulator.timeline import Delivery, Post, Timeline
from streaming.simulator.truth import SilentSource, Truth
from udfs.model.events import AnyEvent, Clock, EventFields, QueueInfo, TopicQueues, event_fields
from udfs.model.systems import System

CLOCK_INTERVAL_MS = 5_000
# Disorder stays below the default of allowed_lateness (2 s); later events are scripted, never random.
USUAL_DELAY_MS, LONGEST_DELAY_MS = 400, 1_900
# Topics change half a second past a full second and groups never do, so both share a time only on purpose.
TOPIC_CHANGE_MS = 500
# Repeats stay below the default of repeat_span (10 minutes).
LONGEST_REPEAT_MS = 240_000


class SourceFields(EventFields):
    """The fields of any event, which may have an id."""

    event_id: NotRequired[str]


class GroupOfCluster(Protocol):
    """The interface of a group for its cluster."""

    def start(self) -> None:
        """Start."""

    def on_topic_changed(self, topic: str) -> None:
        """Record that the source has reported other queues of a topic."""

    def topic_grown(self, topic: str) -> None:
        """Record that the topic itself has other queues."""

    def source_falls_silent(self) -> None:
        """Record that nothing is reported from now on."""


class SimulatedTopic:
    """One topic; ``count`` is its queues, ``reported`` those that the source has reported."""

    def __init__(self, name: str, brokers: tuple[str | None, ...], count: int) -> None:
        self.name = name
        self.brokers = brokers
        self.count = count  # for each broker
        self.reported: int | None = None

    def queues(self, count: int) -> tuple[QueueInfo, ...]:
        """Return this many queues for each broker, by broker and id."""
        return tuple(QueueInfo(queue_id=number, broker=broker) for broker in self.brokers for number in range(count))


class Cluster:
    """One cluster and its only source."""

    def __init__(
        self,
        *,
        name: str,
        system: System,
        rng: random.Random,
        timeline: Timeline,
        post: Post,
        truth: Truth,
        disorder: float,
        speed: float,
    ) -> None:
        self.name = name
        self.system: System = system
        self.rng = rng
        self.timeline = timeline
        self.truth = truth
        self.speed = speed
        self.disorder = disorder
        self.topics: dict[str, SimulatedTopic] = {}
        self.groups: list[GroupOfCluster] = []
        # Only one kind of collector writes CloudEvents.
        self._envelope = f"/collectors/{name}" if system == "metaq" else None
        self._held: dict[str, int] = {}
        self._post = post
        self._ids = 0
        self._last_reported = timeline.now
        self.silent_from, self.silent_to = self._next_silence(timeline.now)

    @property
    def now(self) -> int:
        """The simulated time."""
        return self.timeline.now

    # -- life ------------------------------------------------------------------------------------------------

    def start(self, late_topic: str | None) -> None:
        """Report the topics, all but one at once, and start everything."""
        for topic in self.topics.values():
            if topic.name == late_topic:
                self._at_topic_time(self.now + 15_000, partial(self._emit_topic, topic))
            else:
                self._emit_topic(topic)
        for group in self.groups:
            group.start()
        self._tick()
        self._plan_topic_change()
        self.timeline.at(self.silent_from, self._fall_silent)

    def finish(self) -> None:
        """Report, unless silent, that everything up to now was reported."""
        if not self.is_silent():
            self.emit(Clock(**self.common()), delay_ms=LONGEST_DELAY_MS)

    def is_silent(self) -> bool:
        """Return whether the source is out."""
        return self.silent_from <= self.now < self.silent_to

    def undisturbed_until(self, time_ms: int) -> bool:
        """Return whether the source reports everything from now until then."""
        return not self.is_silent() and self.silent_from > time_ms

    # -- events ----------------------------------------------------------------------------------------------

    def common(self, with_id: bool = False) -> SourceFields:
        """Return the fields that every event has at the current time."""
        fields = cast("SourceFields", event_fields(self.system, self.name, self.now))
        if with_id:
            self._ids += 1
            fields["event_id"] = f"{self.name}-{self._ids:07d}"
        return fields

    def emit(
        self,
        event: AnyEvent,
        *,
        delay_ms: int | None = None,
        may_repeat: bool = True,
        rng: random.Random | None = None,
    ) -> None:
        """Let the source write an event some time later, perhaps twice.

        Args:
            delay_ms: The scripted delay; otherwise a random one within the allowed lateness.
        """
        dice = rng or self.rng
        if delay_ms is None:
            often = dice.random() < 0.85 or not self.disorder
            delay_ms = dice.randrange(USUAL_DELAY_MS if often else LONGEST_DELAY_MS)
        self._last_reported = max(self._last_reported, self.now)
        self.truth.reported(self.name, self.now)
        otherwise = dice.random() < 0.3
        self._post.send(Delivery(self.now + delay_ms, event, otherwise, self._envelope))
        if may_repeat and dice.random() < 0.03 * self.disorder:
            again = self.now + delay_ms + dice.randrange(1, LONGEST_REPEAT_MS)
            self._post.send(Delivery(again, event, not otherwise, self._envelope))

    # -- topics ----------------------------------------------------------------------------------------------

    def grow(self, topic: SimulatedTopic, count: int, poll_delay_ms: int) -> None:
        """Change the number of a topic's queues now; the source reports it at its next poll."""
        topic.count = count
        for group in self.groups:
            group.topic_grown(topic.name)
        self._at_topic_time(self.now + poll_delay_ms, lambda: self._emit_topic(topic))

    def steady(self, topics: list[str]) -> bool:
        """Return whether these topics are reported, have queues, and have no pending change."""
        return all(self.topics[name].reported == self.topics[name].count != 0 for name in topics)

    def hold_topics(self, topics: list[str], until_ms: int) -> None:
        """Keep these topics unchanged until then."""
        for name in topics:
            self._held[name] = max(until_ms, self._held.get(name, 0))

    def _emit_topic(self, topic: SimulatedTopic) -> None:
        if self.is_silent():
            self._at_topic_time(self.silent_to + 1_000, lambda: self._emit_topic(topic))
            return
        changed = topic.reported != topic.count
        topic.reported = topic.count
        if topic.brokers == (None,) or not topic.count:
            event = TopicQueues(**self.common(with_id=True), topic=topic.name, queue_count=topic.count)
        else:
            event = TopicQueues(**self.common(with_id=True), topic=topic.name, queues=topic.queues(topic.count))
        self.emit(event)
        if changed:
            for group in self.groups:
                group.on_topic_changed(topic.name)

    def _plan_topic_change(self) -> None:
        wait = int(self.rng.expovariate(1 / 45_000) / self.speed) + 5_000
        self._at_topic_time(self.now + wait, self._change_some_topic)

    def _change_some_topic(self) -> None:
        topic = self.rng.choice(sorted(self.topics.values(), key=lambda topic: topic.name))
        if self.is_silent() or topic.reported is None or self._held.get(topic.name, 0) > self.now:
            pass
        elif self.rng.random() < 0.25 or topic.count >= 24:
            self._emit_topic(topic)  # a repeated report is not a change
        elif self.system != "kafka" and topic.count and self.rng.random() < 0.15:
            before = topic.count
            self.grow(topic, 0, 0)
            self.timeline.at(self.now + 12_000, lambda: self.grow(topic, before, 0))
        elif topic.count:
            # A consumer's own metadata may be newer or older than the last poll.
            poll = self.rng.randrange(0, CLOCK_INTERVAL_MS) if self.system == "kafka" else 0
            self.grow(topic, topic.count + self.rng.randint(1, 4), poll)
        self._plan_topic_change()

    def _at_topic_time(self, time_ms: int, action: Callable[[], None]) -> None:
        self.timeline.at(time_ms + (TOPIC_CHANGE_MS - time_ms) % 1_000, action)

    # -- the source ------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        if not self.is_silent():
            self.emit(Clock(**self.common()))
        self.timeline.at(self.now + CLOCK_INTERVAL_MS, self._tick)

    def _next_silence(self, after_ms: int) -> tuple[int, int]:
        if not self.disorder:
            return after_ms + 10**12, after_ms + 10**12
        start = after_ms + 150_000 + int(self.rng.expovariate(1 / 240_000) / self.disorder)
        return start, start + self.rng.choice((8_000, 25_000, 70_000, 140_000))

    def _fall_silent(self) -> None:
        last = self._last_reported
        for group in self.groups:
            group.source_falls_silent()
        self.timeline.at(self.silent_to, lambda: self._speak_again(last))

    def _speak_again(self, silent_since: int) -> None:
        self.emit(Clock(**self.common()))
        self.truth.silences.append(SilentSource(cluster=self.name, silent_from=silent_since, silent_to=self.now))
        self.silent_from, self.silent_to = self._next_silence(self.now)
        self.timeline.at(self.silent_from, self._fall_silent)
