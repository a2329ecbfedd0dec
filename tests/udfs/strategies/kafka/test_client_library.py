"""What depends on the library of the group's leader, and the order of members in each."""

import msgspec
import pytest

from tests.kit.differential import our_answer
from tests.udfs.strategies.groups import group, queue
from udfs.model.events import QueueRef
from udfs.strategies.kafka.client_library import Library, assign_blocks, by_member, in_order, leader_library, library_of
from udfs.strategies.problem import Participant, Problem


@pytest.mark.parametrize(
    ("text", "library", "static_first", "uses_racks"),
    [
        (None, Library("java"), True, True),
        ("", Library("java"), True, True),
        ("ruby-kafka", Library("java"), True, True),
        ("sarama", Library("sarama"), True, False),
        ("aiokafka, lists differ", Library("aiokafka", lists_differ=True), True, False),
        ("java-", Library("java"), True, True),
        ("java-2.3.9", Library("java", (2, 3, 9)), False, False),
        ("java-2.4", Library("java", (2, 4)), True, False),
        ("java-3.4", Library("java", (3, 4)), True, False),
        ("java-3.5.1", Library("java", (3, 5, 1)), True, True),
        ("java-4", Library("java", (4, 0)), True, True),
        ("java-10.0", Library("java", (10, 0)), True, True),
        ("librdkafka", Library("librdkafka"), True, True),
        ("librdkafka-2.11", Library("librdkafka", (2, 11)), True, True),
        ("librdkafka-2.1", Library("librdkafka", (2, 1)), False, False),
        ("librdkafka, racks ignored", Library("librdkafka", racks_ignored=True), True, False),
        ("sarama-1.33", Library("sarama", (1, 33)), False, False),
    ],
)
def test_a_library_is_read_from_its_name_and_version(
    text: str | None, library: Library, static_first: bool, uses_racks: bool
) -> None:
    found = leader_library(group({}, {}, settings={"library": text}))
    assert (found, found.static_first, found.uses_racks) == (library, static_first, uses_racks)


def test_the_setting_overrides_the_leader_and_the_leader_the_first_that_joined() -> None:
    first, second = group({"a": [], "b": []}, {}).members
    first = msgspec.structs.replace(first, client_library="java-1.0")
    second = msgspec.structs.replace(second, client_library="java-2.0")
    problem = Problem(group="g", members=(first, second), topics={})
    assert leader_library(problem).version == (1, 0)
    assert leader_library(msgspec.structs.replace(problem, leader="b")).version == (2, 0)
    # A leader that is not among the members is as good as none.
    assert leader_library(msgspec.structs.replace(problem, leader="gone")).version == (1, 0)
    chosen = msgspec.structs.replace(problem, leader="b", settings={"library": "java-3.0"})
    assert leader_library(chosen).version == (3, 0)


def participants(*members: str) -> list[Participant]:
    """Make members of ``id`` or ``id/instance``."""
    pairs = [member.split("/") for member in members]
    return [
        Participant(member_id=pair[0], name=pair[0], instance_id=pair[1] if len(pair) > 1 else None) for pair in pairs
    ]


@pytest.mark.parametrize(
    ("library", "members", "order"),
    [
        # Static members first, by instance id; the others by their own.
        (Library("java"), ["a", "z/2", "c/3", "b"], "z c a b"),
        (Library("java", (2, 3)), ["a", "z/2", "c/3", "b"], "a b c z"),
        # UTF-16: a surrogate pair comes before U+FFFF.
        (Library("java"), ["\uffff", "\U0001f600"], "\U0001f600 \uffff"),
        (Library("java"), ["a/\uffff", "b/\U0001f600"], "b a"),
        (Library("librdkafka"), ["\U0001f600", "\uffff"], "\uffff \U0001f600"),
        (Library("kafka-python"), ["b/1", "a"], "b a"),
        (Library("kafka-python", (2, 2)), ["b/1", "a"], "a b"),
        (Library("librdkafka"), ["b/1", "a/2"], "b a"),
        (Library("librdkafka"), ["b", "a"], "a b"),
        # Instance ids compare only where both have one: c before b by those, a before both by member ids.
        (Library("librdkafka"), ["c/1", "a", "b/2"], "a c b"),
        (Library("librdkafka"), ["a/9", "b/1", "c"], "b a c"),
    ],
)
def test_members_come_in_the_order_of_the_library(library: Library, members: list[str], order: str) -> None:
    assert [member.member_id for member in in_order(participants(*members), library)] == order.split()


def test_members_of_one_instance_id_keep_the_order_of_the_leaders_map() -> None:
    # The slots of "Aa" and "BB" are one, that of "a" comes later.
    members = participants("a/1", "BB/1", "Aa/1")
    assert [member.member_id for member in in_order(members, Library("java"))] == ["BB", "Aa", "a"]


@pytest.mark.parametrize(
    ("queues", "takers", "held"),
    [
        (7, [0, 1, 2], ["0 1 2", "3 4", "5 6"]),
        (2, [2, 0, 1], ["1", "", "0"]),
        (4, [1, 2], ["", "0 1", "2 3"]),
        (0, [0], ["", "", ""]),
    ],
)
def test_blocks_are_added_in_the_order_of_the_takers(queues: int, takers: list[int], held: list[str]) -> None:
    found: list[list[QueueRef]] = [[], [], []]
    assign_blocks([queue(f"t-{number}") for number in range(queues)], takers, found)
    assert [" ".join(str(ref.queue_id) for ref in refs) for refs in found] == held


def test_members_queues_are_returned_in_the_order_of_joining() -> None:
    problem = group({"b": [], "a": []}, {})
    held = by_member(problem, [*reversed(problem.members)], [[queue("t-0")], [queue("t-1")]])
    assert list(held.items()) == [("b", [queue("t-1")]), ("a", [queue("t-0")])]


@pytest.mark.parametrize(("version", "taken"), [("3.6.2", 2), ("3.7", 2), ("3.7.0", 2), ("3.7.1", 1), ("3.7.2", 1)])
def test_patch_numbers_count_from_3_7_1_on_the_owned_partitions_are_sorted(version: str, taken: int) -> None:
    owned = [{"topic": topic, "queue_id": number} for topic in ("s", "t") for number in (0, 1)]
    case = {
        "strategy": "kafka.sticky",
        "settings": {"library": f"java-{version}"},
        "members": [
            {"member_id": "a", "subscriptions": ["s", "t"], "owned": owned, "generation": 1},
            {"member_id": "b", "subscriptions": ["s", "t"], "generation": -1},
        ],
        "topics": {"s": {"queue_count": 2}, "t": {"queue_count": 2}},
    }
    held = our_answer(case).held
    assert held is not None
    # The real classes: 3.6.2 and 3.7.0 take all of t from a, 3.7.1 and 3.7.2 one of each topic.
    assert sum(topic == "t" for topic, _, _ in held["b"]) == taken


@pytest.mark.parametrize(("text", "by_hash"), [("sarama-1.34.0", True), ("sarama-1.34.1", False), ("sarama", False)])
def test_sarama_assigns_blocks_since_a_patch_of_its_1_34(text: str, by_hash: bool) -> None:
    assert library_of(text).ranges_by_hash is by_hash
