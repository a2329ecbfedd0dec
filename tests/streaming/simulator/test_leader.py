"""The leaders of simulated groups assign as the real assignors do: both get the same groups."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streaming.simulator.leader import Member, Partitions, assign_range, assign_roundrobin, cooperative
from udfs.model.events import QueueInfo, QueueRef
from udfs.strategies.kafka.range import kafka_range
from udfs.strategies.kafka.roundrobin import kafka_roundrobin
from udfs.strategies.kafka.sticky import kafka_sticky
from udfs.strategies.problem import Participant, Problem, Topic

_TOPICS = ("a", "b", "c")


@st.composite
def groups(draw: st.DrawFn, *, equal: bool) -> tuple[list[Member], dict[str, int]]:
    """Make members as the simulator names them; they hold what an earlier generation may have assigned them."""
    counts = {topic: draw(st.integers(0, 9)) for topic in _TOPICS}
    names = draw(st.lists(st.text("0123456789abcdef-", min_size=1, max_size=9), unique=True, min_size=1, max_size=14))
    held: dict[str, Partitions] = {name: [] for name in names}
    for topic in _TOPICS:
        for number in range(counts[topic]):
            owner = draw(st.sampled_from([None, *names]))
            if owner is not None:
                held[owner].append((topic, number))
    is_static = draw(st.booleans())
    return [
        (name, name[::-1] if is_static else None, _TOPICS if equal else draw(_some_topics), held[name])
        for name in names
    ], counts


_some_topics = st.lists(st.sampled_from(_TOPICS), unique=True).map(lambda topics: tuple(sorted(topics)))


def _problem(members: list[Member], counts: dict[str, int]) -> Problem:
    return Problem(
        group="g",
        members=tuple(
            Participant(
                member_id=name,
                name=name,
                instance_id=instance,
                subscriptions=topics,
                owned=tuple(QueueRef(topic, number) for topic, number in held),
                generation=1,
            )
            for name, instance, topics, held in members
        ),
        topics={
            topic: Topic(name=topic, queues=tuple(QueueInfo(queue_id=number) for number in range(count)))
            for topic, count in counts.items()
        },
    )


def _plain(assignment: dict[str, list[QueueRef]]) -> dict[str, Partitions]:
    return {name: sorted((queue.topic, queue.queue_id) for queue in queues) for name, queues in assignment.items()}


@given(groups(equal=True))
def test_the_sticky_leader_assigns_as_kafkas_does(group: tuple[list[Member], dict[str, int]]) -> None:
    assert cooperative(*group) == _plain(kafka_sticky(_problem(*group)))


@given(groups(equal=False))
def test_the_range_and_the_roundrobin_leader_assign_as_kafkas_do(group: tuple[list[Member], dict[str, int]]) -> None:
    for ours, kafkas in ((assign_range, kafka_range), (assign_roundrobin, kafka_roundrobin)):
        assert {name: sorted(held) for name, held in ours(*group).items()} == _plain(kafkas(_problem(*group)))


def test_range_assigns_pieces_and_the_first_get_more() -> None:
    members = [(name, None, ("t",), []) for name in ("b", "a", "c")]
    assert assign_range(members, {"t": 7}) == {  # Kafka's RangeAssignor: 7 = 3 + 2 + 2
        "a": [("t", 0), ("t", 1), ("t", 2)],
        "b": [("t", 3), ("t", 4)],
        "c": [("t", 5), ("t", 6)],
    }


def test_roundrobin_passes_over_members_that_do_not_subscribe() -> None:
    # The example in the javadoc of Kafka's RoundRobinAssignor.
    members = [("C0", None, ("t0",), []), ("C1", None, ("t0", "t1"), []), ("C2", None, ("t0", "t1", "t2"), [])]
    assert assign_roundrobin(members, {"t0": 1, "t1": 2, "t2": 3}) == {
        "C0": [("t0", 0)],
        "C1": [("t1", 0)],
        "C2": [("t1", 1), ("t2", 0), ("t2", 1), ("t2", 2)],
    }
