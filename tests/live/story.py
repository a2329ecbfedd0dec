"""A group's life with real consumers, step by step; each step ends when the members report that it is done."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from streaming.collectors.kafka.metadata_client import OFFSETS_TOPIC
from tests.kit.brokers import Broker
from tests.kit.java_members import WAIT_S
from tests.kit.members import Member, Partition, wait_until, wait_until_assigned
from tests.kit.topics import add_partitions, create_topic
from udfs.kafka.consumer_offsets import events_of
from udfs.model.events import Progress

StartMember = Callable[..., Member]
# A queue's state keeps its last commits of this many seconds, so they show how often a member commits.
_SECONDS_WITH_COMMITS = 3
_STEADY_MS = 30_000  # of who is not to expire, or must be back within it, on a busy machine too


@dataclass(frozen=True)
class Step:
    """What one generation should say.

    Attributes:
        what: For people. generation: As the members know it.
        triggers: Kinds, and the client id of the member that they name (None: no member), in any order.
        given: What each member holds in it, by member id, as the members themselves say; None of one that was not
            answered: the leader had joined again before, and the coordinator sent the member to the next generation.
        is_stale: Its leader had no metadata of a topic. matched: The topic that a member's pattern newly matches.
    """

    what: str
    generation: int
    triggers: frozenset[tuple[str, str | None]]
    given: Mapping[str, tuple[Partition, ...] | None]
    is_stale: bool = False
    matched: str | None = None


@dataclass
class Story:
    """The steps of one group."""

    group: str
    steps: list[Step] = field(default_factory=list)

    def record(
        self, what: str, members: list[Member], *triggers: tuple[str, str | None], matched: str | None = None
    ) -> None:
        """Note a step that has just ended."""
        generation = members[0].generation
        assert generation is not None
        given = {member.member_id or "": member.owned for member in members}
        self.steps.append(Step(what, generation, frozenset(triggers), given, matched=matched))

    def record_perhaps_stale(
        self, what: str, members: list[Member], cause: tuple[str, str | None], matched: str | None = None
    ) -> None:
        """Note a step in which the leader may assign before it has metadata of all topics, and joins again with it."""
        number = self.steps[-1].generation + 1
        if members[0].generation == number + 1:
            given = {member.member_id or "": _owned_in(member, number) for member in members}
            self.steps.append(Step("not knowing a topic yet", number, frozenset({cause}), given, is_stale=True))
            cause, matched = ("topic_learned", None), None
        self.record(what, members, cause, matched=matched)


def partitions(topic: str, count: int) -> list[Partition]:
    """Return a topic's partitions."""
    return [(topic, number) for number in range(count)]


def wait_for_commits(broker: Broker, group: str, held: Sequence[Partition]) -> None:
    """Return once each of these partitions was committed in several seconds from now on."""
    consumer = Consumer({**broker.client_settings(), "group.id": "story", "enable.auto.commit": False})
    try:
        places = consumer.list_topics(OFFSETS_TOPIC, timeout=WAIT_S).topics[OFFSETS_TOPIC].partitions
        consumer.assign([TopicPartition(OFFSETS_TOPIC, number, OFFSET_END) for number in places])
        seconds: dict[Partition, set[int]] = defaultdict(set)
        deadline = time.monotonic() + WAIT_S
        while not all(len(seconds[partition]) >= _SECONDS_WITH_COMMITS for partition in held):
            assert time.monotonic() < deadline, f"{group} does not commit: {seconds}"
            message = consumer.poll(0.5)
            if message is None or message.error() is not None:
                continue
            for event in events_of(message.key(), message.value(), message.timestamp()[1], "c"):
                if isinstance(event, Progress) and event.group == group:
                    for queue in event.queues:
                        seconds[queue.topic, queue.queue_id].add(message.timestamp()[1] // 1_000)
    finally:
        consumer.close()


def dynamic_members(broker: Broker, group: str, start: StartMember) -> Story:
    """Join, join, crash, join, leave, subscribe to more, grow, leave."""
    story = Story(group)
    first_topic, second_topic = f"{group}.orders", f"{group}.bills"
    create_topic(broker, first_topic, 4)
    create_topic(broker, second_topic, 2)
    orders, bills = partitions(first_topic, 4), partitions(second_topic, 2)

    a = start(broker, group, [first_topic], client_id="a", session_timeout_ms=_STEADY_MS)
    wait_until_assigned([a], orders)
    story.record("the first member", [a], ("group_created", None), ("member_joined", "a"))
    wait_for_commits(broker, group, orders)

    b = start(broker, group, [first_topic], client_id="b")
    wait_until_assigned([a, b], orders)
    story.record("a second joins", [a, b], ("member_joined", "b"))
    wait_for_commits(broker, group, orders)

    b.kill()
    wait_until_assigned([a], orders)
    story.record("it is killed", [a], ("session_expired", "b"))
    wait_for_commits(broker, group, orders)

    c = start(broker, group, [first_topic], client_id="c", session_timeout_ms=_STEADY_MS)
    wait_until_assigned([a, c], orders)
    story.record("a third joins", [a, c], ("member_joined", "c"))
    wait_for_commits(broker, group, orders)

    c.stop()
    wait_until_assigned([a], orders)
    story.record("it leaves", [a], ("member_left", "c"))
    wait_for_commits(broker, group, orders)

    a.subscribe([first_topic, second_topic])
    wait_until_assigned([a], orders + bills)
    story.record_perhaps_stale("it subscribes to a second topic", [a], ("subscription_changed", "a"))
    wait_for_commits(broker, group, orders + bills)

    add_partitions(broker, first_topic, 6)
    orders = partitions(first_topic, 6)
    wait_until_assigned([a], orders + bills)
    story.record("its topic grows", [a], ("queue_count_changed", None))
    wait_for_commits(broker, group, orders + bills)

    last = a.generation
    assert last is not None
    a.stop()
    story.steps.append(Step("the last one leaves", last + 1, frozenset({("member_left", "a")}), {}))
    return story


def mixed_members(broker: Broker, group: str, start: StartMember) -> Story:
    """Round robin: members that subscribe to different topics, one of them by a pattern."""
    story = Story(group)
    first_topic, second_topic, later_topic = (f"{group}.{name}" for name in ("orders", "bills", "later"))
    create_topic(broker, first_topic, 5)
    create_topic(broker, second_topic, 2)
    orders, both = partitions(first_topic, 5), partitions(first_topic, 5) + partitions(second_topic, 2)

    equal = {"strategies": ("roundrobin",), "session_timeout_ms": _STEADY_MS}
    a = start(broker, group, [first_topic], client_id="a", **equal)
    wait_until_assigned([a], orders)
    story.record("the first member", [a], ("group_created", None), ("member_joined", "a"))
    wait_for_commits(broker, group, orders)

    b = start(broker, group, [first_topic, second_topic], client_id="b", **equal)
    wait_until_assigned([a, b], both)
    story.record_perhaps_stale("one of more topics joins", [a, b], ("member_joined", "b"))
    wait_for_commits(broker, group, both)

    c = start(broker, group, [], client_id="c", **equal)
    c.subscribe_pattern(f"{group}\\..*")
    wait_until_assigned([a, b, c], both)
    story.record_perhaps_stale("one with a pattern joins", [a, b, c], ("member_joined", "c"))
    wait_for_commits(broker, group, both)

    create_topic(broker, later_topic, 3)
    wait_until_assigned([a, b, c], both + partitions(later_topic, 3))
    changed = ("subscription_changed", "c")
    story.record_perhaps_stale("the pattern matches another topic", [a, b, c], changed, matched=later_topic)
    return story


def static_members(broker: Broker, group: str, start: StartMember) -> Story:
    """Two static members; one is started again, then stays away."""
    story = Story(group)
    topic = f"{group}.orders"
    create_topic(broker, topic, 4)
    orders = partitions(topic, 4)

    first = start(broker, group, [topic], client_id="s1", instance_id="one", session_timeout_ms=_STEADY_MS)
    wait_until_assigned([first], orders)
    story.record("the first member", [first], ("group_created", None), ("member_joined", "one"))
    wait_for_commits(broker, group, orders)

    second = start(broker, group, [topic], client_id="s2", instance_id="two", session_timeout_ms=_STEADY_MS)
    wait_until_assigned([first, second], orders)
    story.record("a second joins", [first, second], ("member_joined", "two"))
    generation = second.generation
    wait_for_commits(broker, group, orders)

    second.stop()
    second = start(broker, group, [topic], client_id="s2", instance_id="two", session_timeout_ms=_STEADY_MS)
    wait_until([first, second], lambda: len(second.owned) == 2)
    assert second.generation == generation, "a static member that comes back makes no generation"
    wait_for_commits(broker, group, orders)

    second.kill()
    wait_until_assigned([first], orders)
    story.record("it stays away", [first], ("session_expired", "two"))
    wait_for_commits(broker, group, orders)
    return story


def sticky_members(broker: Broker, group: str, start: StartMember) -> Story:
    """Start three members of the sticky strategy, and let the first one leave, which leads."""
    story = Story(group)
    topic = f"{group}.orders"
    create_topic(broker, topic, 7)
    orders = partitions(topic, 7)

    members: list[Member] = []
    for name in ("a", "b", "c"):
        members.append(
            start(broker, group, [topic], client_id=name, strategies=("sticky",), session_timeout_ms=_STEADY_MS)
        )
        wait_until_assigned(members, orders)
        created = [("group_created", None)] if name == "a" else []
        story.record(f"{name} joins", members, *created, ("member_joined", name))
        wait_for_commits(broker, group, orders)

    leader, *others = members
    leader.stop()
    wait_until_assigned(others, orders)
    story.record("the leader leaves", others, ("member_left", "a"))
    wait_for_commits(broker, group, orders)
    return story


def cooperative_members(broker: Broker, group: str, start: StartMember) -> Story:
    """Let a second member join: its queues are revoked in one generation and assigned in the next."""
    story = Story(group)
    topic = f"{group}.orders"
    create_topic(broker, topic, 4)
    orders = partitions(topic, 4)

    cooperating = {"strategies": ("cooperative-sticky",), "session_timeout_ms": _STEADY_MS}
    a = start(broker, group, [topic], client_id="a", **cooperating)
    wait_until_assigned([a], orders)
    story.record("the first member", [a], ("group_created", None), ("member_joined", "a"))
    first = story.steps[-1].generation
    wait_for_commits(broker, group, orders)

    b = start(broker, group, [topic], client_id="b", **cooperating)
    wait_until_assigned([a, b], orders)
    taken = {member.member_id or "": _owned_in(member, first + 1) for member in (a, b)}
    story.steps.append(Step("a second joins", first + 1, frozenset({("member_joined", "b")}), taken))
    story.record("it is given its share", [a, b], ("cooperative_follow_up", None))
    assert story.steps[-1].generation == first + 2
    wait_for_commits(broker, group, orders)
    return story


def _owned_in(member: Member, generation: int) -> tuple[Partition, ...] | None:
    return next((report.owned for report in member.assignments if report.generation == generation), None)
