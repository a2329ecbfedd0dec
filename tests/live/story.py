"""A group's life with real consumers, told step by step; each step ends when the members say that it is done."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.kit.brokers import Broker
from tests.kit.members import Member, Partition, wait_until, wait_until_dealt
from tests.kit.topics import add_partitions, create_topic

StartMember = Callable[..., Member]
_COMMITS_S = 2.5  # two rounds of commits: what a member does is seen by them
_STATIC_MS = 15_000  # a static member must be back within it, on a busy machine too


@dataclass(frozen=True)
class Step:
    """What one generation should say.

    Attributes:
        what: For people. generation: As the members know it.
        triggers: Kinds, and the client id of whom they name (None = nobody), in any order.
        given: What each member holds in it, by member id, as the members themselves say.
    """

    what: str
    generation: int
    triggers: frozenset[tuple[str, str | None]]
    given: dict[str, tuple[Partition, ...]]


@dataclass
class Story:
    """The steps of one group."""

    group: str
    steps: list[Step] = field(default_factory=list)

    def tell(self, what: str, members: list[Member], *triggers: tuple[str, str | None]) -> None:
        """Note a step that has just ended."""
        generation = members[0].generation
        assert generation is not None
        given = {member.member_id or "": member.owned for member in members}
        self.steps.append(Step(what, generation, frozenset(triggers), given))

    def rename(self, former: str | None, now: str | None) -> None:
        """Say that a static member goes on under another id: so do its spans, from their beginning."""
        assert former is not None
        assert now is not None
        given = self.steps[-1].given
        given[now] = given.pop(former)


def partitions(topic: str, count: int) -> list[Partition]:
    """Answer a topic's partitions."""
    return [(topic, number) for number in range(count)]


def dynamic_members(broker: Broker, group: str, start: StartMember) -> Story:
    """Join, join, crash, join, leave, subscribe to more, grow, leave."""
    story = Story(group)
    first_topic, second_topic = f"{group}.orders", f"{group}.bills"
    create_topic(broker, first_topic, 4)
    create_topic(broker, second_topic, 2)
    orders, bills = partitions(first_topic, 4), partitions(second_topic, 2)

    a = start(broker, group, [first_topic], client_id="a")
    wait_until_dealt([a], orders)
    story.tell("the first member", [a], ("group_created", None), ("member_joined", "a"))
    time.sleep(_COMMITS_S)

    b = start(broker, group, [first_topic], client_id="b")
    wait_until_dealt([a, b], orders)
    story.tell("a second joins", [a, b], ("member_joined", "b"))
    time.sleep(_COMMITS_S)

    b.kill()
    wait_until_dealt([a], orders)
    story.tell("it is killed", [a], ("session_expired", "b"))
    time.sleep(_COMMITS_S)

    c = start(broker, group, [first_topic], client_id="c")
    wait_until_dealt([a, c], orders)
    story.tell("a third joins", [a, c], ("member_joined", "c"))
    time.sleep(_COMMITS_S)

    c.stop()
    wait_until_dealt([a], orders)
    story.tell("it leaves", [a], ("member_left", "c"))
    time.sleep(_COMMITS_S)

    a.subscribe([first_topic, second_topic])
    wait_until_dealt([a], orders + bills)
    story.tell("it subscribes to a second topic", [a], ("subscription_changed", "a"))
    time.sleep(_COMMITS_S)

    add_partitions(broker, first_topic, 6)
    orders = partitions(first_topic, 6)
    wait_until_dealt([a], orders + bills)
    story.tell("its topic grows", [a], ("queue_count_changed", None))
    time.sleep(_COMMITS_S)

    last = a.generation
    assert last is not None
    a.stop()
    story.steps.append(Step("the last one leaves", last + 1, frozenset({("member_left", "a")}), {}))
    return story


def static_members(broker: Broker, group: str, start: StartMember) -> Story:
    """Two static members; one is started again, then stays away."""
    story = Story(group)
    topic = f"{group}.orders"
    create_topic(broker, topic, 4)
    orders = partitions(topic, 4)

    first = start(broker, group, [topic], client_id="s1", instance_id="one", session_timeout_ms=_STATIC_MS)
    wait_until_dealt([first], orders)
    story.tell("the first member", [first], ("group_created", None), ("member_joined", "one"))
    time.sleep(_COMMITS_S)

    second = start(broker, group, [topic], client_id="s2", instance_id="two", session_timeout_ms=_STATIC_MS)
    wait_until_dealt([first, second], orders)
    story.tell("a second joins", [first, second], ("member_joined", "two"))
    generation = second.generation
    time.sleep(_COMMITS_S)

    former = second.member_id
    second.stop()
    second = start(broker, group, [topic], client_id="s2", instance_id="two", session_timeout_ms=_STATIC_MS)
    wait_until([first, second], lambda: len(second.owned) == 2)
    assert second.generation == generation, "a static member that comes back makes no generation"
    story.rename(former, second.member_id)
    time.sleep(_COMMITS_S)

    second.kill()
    wait_until_dealt([first], orders)
    story.tell("it stays away", [first], ("session_expired", "two"))
    time.sleep(_COMMITS_S)
    return story


def cooperative_members(broker: Broker, group: str, start: StartMember) -> Story:
    """A second member joins: what it shall have is taken in one generation and given in the next."""
    story = Story(group)
    topic = f"{group}.orders"
    create_topic(broker, topic, 4)
    orders = partitions(topic, 4)

    a = start(broker, group, [topic], client_id="a", strategies=("cooperative-sticky",))
    wait_until_dealt([a], orders)
    story.tell("the first member", [a], ("group_created", None), ("member_joined", "a"))
    first = story.steps[-1].generation
    time.sleep(_COMMITS_S)

    b = start(broker, group, [topic], client_id="b", strategies=("cooperative-sticky",))
    wait_until_dealt([a, b], orders)
    taken = {member.member_id or "": _owned_in(member, first + 1) for member in (a, b)}
    story.steps.append(Step("a second joins", first + 1, frozenset({("member_joined", "b")}), taken))
    story.tell("it is given its share", [a, b], ("cooperative_follow_up", None))
    assert story.steps[-1].generation == first + 2
    time.sleep(_COMMITS_S)
    return story


def _owned_in(member: Member, generation: int) -> tuple[Partition, ...]:
    return next(report.owned for report in member.assignments if report.generation == generation)
