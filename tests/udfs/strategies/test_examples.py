"""Published examples, by name."""

import pytest

from tests.udfs.strategies.groups import group, told
from udfs.model.errors import StrategyError
from udfs.model.events import QueueInfo
from udfs.strategies.kafka.vote import vote
from udfs.strategies.problem import Participant, Problem, Topic
from udfs.strategies.registry import strategy


def numbers(name: str, queues: int, members: str) -> list[list[int]]:
    """Return the queue numbers, from 1, that each member gets of one topic."""
    answer = strategy(name, "rocketmq")(group({member: ["t"] for member in members}, {"t": queues}))
    return [[held.queue_id + 1 for held in answer[member]] for member in members]


def test_averagely_deals_eight_queues_to_three_consumers_in_blocks() -> None:
    assert numbers("rocketmq.AVG", 8, "abc") == [[1, 2, 3], [4, 5, 6], [7, 8]]


def test_by_circle_deals_eight_queues_to_three_consumers_in_turn() -> None:
    assert numbers("rocketmq.AVG_BY_CIRCLE", 8, "abc") == [[1, 4, 7], [2, 5, 8], [3, 6]]


def test_five_queues_make_three_and_two_and_seven_make_four_and_three() -> None:
    assert [len(held) for held in numbers("rocketmq.AVG", 5, "ab")] == [3, 2]
    assert [len(held) for held in numbers("rocketmq.AVG", 7, "ab")] == [4, 3]


def test_more_consumers_than_queues_leave_the_last_ones_idle() -> None:
    assert numbers("rocketmq.AVG", 2, "abc") == [[1], [2], []]


def test_a_non_subscribers_slice_belongs_to_nobody_in_rocketmq() -> None:
    answer = strategy("AVG", "rocketmq")(group({"a": ["t"], "b": ["u"], "c": ["t"]}, {"t": 6}))
    assert told(answer) == {"a": "t-0 t-1", "b": "", "c": "t-4 t-5"}


def test_two_connections_of_one_id_take_the_same_slice_and_the_second_has_no_owner() -> None:
    answer = strategy("AVG", "rocketmq")(group({"a": ["t"], "a#2": ["t"], "b": ["t"]}, {"t": 6}))
    assert told(answer) == {"a": "t-0 t-1", "a#2": "t-0 t-1", "b": "t-4 t-5"}


def test_metaq_deals_blocks_of_partitions_sorted_as_strings() -> None:
    answer = strategy("default", "metaq")(group({"g_a": ["t"], "g_b": ["t"]}, {"t": 12}, broker="0"))
    assert told(answer) == {"g_a": "t-0 t-1 t-10 t-11 t-2 t-3", "g_b": "t-4 t-5 t-6 t-7 t-8 t-9"}


def test_metaqs_ring_gives_the_recorded_owners() -> None:
    # Seen on a live ZooKeeper.
    problem = group({"GroupC_idA": ["t"], "GroupC_idB": ["t"]}, {"t": 12}, broker="0")
    held = strategy("consistent-hash", "metaq")(problem)["GroupC_idB"]
    assert sorted(queue.queue_id for queue in held) == [0, 2, 3, 4, 11]


def test_metaq_deals_over_the_subscribers_alone() -> None:
    answer = strategy("default", "metaq")(group({"a": ["t"], "b": ["u"], "c": ["t"]}, {"t": 6}))
    assert told(answer) == {"a": "t-0 t-1 t-2", "b": "", "c": "t-3 t-4 t-5"}


def test_ranges_imbalance_grows_with_the_number_of_topics() -> None:
    for topics in (1, 2, 10):
        names = [f"t{number}" for number in range(topics)]
        answer = strategy("range", "kafka")(group({"a": names, "b": names}, dict.fromkeys(names, 3)))
        assert len(answer["a"]) - len(answer["b"]) == topics


@pytest.mark.parametrize("name", ["range", "server.range"])
def test_range_deals_five_and_three_partitions_to_two_members_as_a_live_group_did(name: str) -> None:
    answer = strategy(name, "kafka")(group({"a": ["t1", "t2"], "b": ["t1", "t2"]}, {"t1": 5, "t2": 3}))
    assert told(answer) == {"a": "t1-0 t1-1 t1-2 t2-0 t2-1", "b": "t1-3 t1-4 t2-2"}


def test_round_robin_of_unequal_subscriptions_is_that_of_kafkas_documentation() -> None:
    answer = strategy("roundrobin", "kafka")(
        group({"C0": ["t0"], "C1": ["t0", "t1"], "C2": ["t0", "t1", "t2"]}, {"t0": 1, "t1": 2, "t2": 3})
    )
    assert told(answer) == {"C0": "t0-0", "C1": "t1-0", "C2": "t1-1 t2-0 t2-1 t2-2"}


def test_sticky_example_one_of_kip_54_moves_only_the_partitions_of_the_member_that_left() -> None:
    topics = ["t0", "t1", "t2", "t3"]
    counts = dict.fromkeys(topics, 2)
    first = told(strategy("sticky", "kafka")(group(dict.fromkeys(("C0", "C1", "C2"), topics), counts)))
    assert first == {"C0": "t0-0 t1-1 t3-0", "C1": "t0-1 t2-0 t3-1", "C2": "t1-0 t2-1"}
    owned = {member: first[member].split() for member in ("C0", "C2")}
    second = told(strategy("sticky", "kafka")(group({"C0": topics, "C2": topics}, counts, owned=owned)))
    for member in owned:
        assert set(owned[member]) <= set(second[member].split())
    assert [len(held.split()) for held in second.values()] == [4, 4]


def test_sticky_example_two_of_kip_54_keeps_five_of_six_partitions_where_round_robin_keeps_three() -> None:
    counts = {"t0": 1, "t1": 2, "t2": 3}
    owned = {"C1": ["t1-0", "t1-1"], "C2": ["t2-0", "t2-1", "t2-2"]}
    after = told(
        strategy("sticky", "kafka")(group({"C1": ["t0", "t1"], "C2": ["t0", "t1", "t2"]}, counts, owned=owned))
    )
    assert after == {"C1": "t0-0 t1-0 t1-1", "C2": "t2-0 t2-1 t2-2"}


def test_a_cooperative_move_takes_two_steps() -> None:
    topics = {"t": 4}
    first = strategy("cooperative-sticky", "kafka")(
        group({"a": ["t"], "b": ["t"]}, topics, owned={"a": ["t-0", "t-1", "t-2", "t-3"]})
    )
    assert told(first) == {"a": "t-0 t-1", "b": ""}
    owned = {"a": ["t-0", "t-1"], "b": []}
    second = strategy("cooperative-sticky", "kafka")(group({"a": ["t"], "b": ["t"]}, topics, owned=owned))
    assert told(second) == {"a": "t-0 t-1", "b": "t-2 t-3"}


def test_a_partition_claimed_twice_in_one_generation_is_taken_from_both() -> None:
    owned = {"a": ["t-0", "t-1"], "b": ["t-1", "t-2"]}
    first = strategy("cooperative-sticky", "kafka")(group({"a": ["t"], "b": ["t"]}, {"t": 4}, owned=owned))
    assert "t-1" not in " ".join(told(first).values())


def test_the_servers_uniform_fills_new_members_one_after_another() -> None:
    # Seen on a live coordinator: 5 and 3 partitions, three new members.
    topics = {"t1": 5, "t2": 3}
    answer = strategy("server.uniform", "kafka")(group({member: list(topics) for member in "abc"}, topics))
    assert sorted(told(answer).values()) == sorted(["t1-0 t1-1", "t1-2 t1-3 t1-4", "t2-0 t2-1 t2-2"])


_ROOM_IDS = ["10.0.0.10@3", "10.0.0.1@1", "10.0.0.1@12", "10.0.0.2@2"]


@pytest.mark.parametrize(
    ("name", "settings", "shares"),
    [
        ("CONSISTENT_HASH", {}, ["a2 b1", "b0", "a4 b2 b3 b4 b5", "a0 a1 a3 a5"]),
        ("MACHINE_ROOM", {"rooms": ["room1"]}, ["a0 a4", "a1 a5", "a2", "a3"]),
        (
            "MACHINE_ROOM_NEARBY",
            {"member_rooms": dict(zip(_ROOM_IDS, ["room1", "room1", "room1", "room3"], strict=True))},
            ["a0 a1 b0 b1", "a2 a3 b2 b3", "a4 a5 b4", "b5"],
        ),
    ],
)
def test_queues_of_two_rooms_are_dealt_as_the_real_classes_dealt_them(
    name: str, settings: dict, shares: list[str]
) -> None:
    brokers = {"a": "room1@broker-a", "b": "room2@broker-b"}
    queues = tuple(QueueInfo(queue_id=number, broker=broker) for broker in brokers.values() for number in range(6))
    problem = Problem(
        group="g",
        members=tuple(Participant(member_id=one, name=one, subscriptions=("TopicA",)) for one in _ROOM_IDS),
        topics={"TopicA": Topic(name="TopicA", queues=queues)},
        settings=settings,
    )
    letters = {broker: letter for letter, broker in brokers.items()}
    answer = strategy(name, "rocketmq")(problem)
    shown = [sorted(f"{letters[held.broker or '']}{held.queue_id}" for held in answer[one]) for one in _ROOM_IDS]
    assert [" ".join(share) for share in shown] == shares


def test_configured_queues_may_be_two_members_or_nobodys() -> None:
    queues = {"a": [{"topic": "t", "queue_id": 0}, {"topic": "t", "queue_id": 1}], "b": [{"topic": "t", "queue_id": 1}]}
    problem = group({"a": ["t"], "b": ["t"]}, {"t": 4}, settings={"queues": queues})
    assert told(strategy("CONFIG", "rocketmq")(problem)) == {"a": "t-0 t-1", "b": "t-1"}


def test_pinned_queues_wait_when_no_named_machine_is_there() -> None:
    settings = {"machines": ["10.0.0.1"]}
    there = {"10.0.0.1@1": ["t"], "10.0.0.1@2": ["t"], "10.0.0.9@1": ["t"]}
    pinned = strategy("PINNED", "rocketmq")
    assert told(pinned(group(there, {"t": 4}, settings=settings))) == {
        "10.0.0.1@1": "t-0 t-1",
        "10.0.0.1@2": "t-2 t-3",
        "10.0.0.9@1": "",
    }
    assert told(pinned(group({"10.0.0.9@1": ["t"]}, {"t": 4}, settings=settings))) == {"10.0.0.9@1": ""}


def test_a_machine_whose_address_begins_like_a_named_one_is_not_named() -> None:
    problem = group({"10.0.0.11@1": ["t"]}, {"t": 1}, settings={"machines": ["10.0.0.1"]})
    assert told(strategy("PINNED", "rocketmq")(problem)) == {"10.0.0.11@1": ""}


def test_nearby_is_known_under_the_name_that_the_real_class_tells() -> None:
    problem = group({"r1@a": ["t"], "r2@b": ["t"]}, {"t": 3}, broker="r1@x")
    assert told(strategy("MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE", "rocketmq")(problem)) == {
        "r1@a": "t-0 t-1 t-2",
        "r2@b": "",
    }


def test_nearby_within_nearby_deals_as_its_own_inner_strategy() -> None:
    problem = group({"r1@a": ["t"], "r1@b": ["t"], "r2@c": ["t"]}, {"t": 5}, broker="r1@x")
    once, twice = (f"MACHINE_ROOM_NEARBY-{inner}AVG_BY_CIRCLE" for inner in ("", "MACHINE_ROOM_NEARBY-" * 2_000))
    assert told(strategy(once, "rocketmq")(problem)) == {"r1@a": "t-0 t-2 t-4", "r1@b": "t-1 t-3", "r2@c": ""}
    assert strategy(twice, "rocketmq")(problem) == strategy(once, "rocketmq")(problem)


def test_nearby_within_itself_has_no_end_and_is_refused() -> None:
    problem = group({"r1@a": ["t"]}, {"t": 1}, broker="r1@x", settings={"inner": "rocketmq.MACHINE_ROOM_NEARBY"})
    with pytest.raises(StrategyError, match="inner must not be"):
        strategy("MACHINE_ROOM_NEARBY", "rocketmq")(problem)


def test_three_members_elect_range_by_two_to_one() -> None:
    c1, c2, c3 = ["range", "roundrobin", "custom"], ["range", "roundrobin", "sticky"], ["roundrobin", "range", "sticky"]
    assert vote([c1, c2, c3]) == "range"
    assert vote([c3, c2, c1], "1.0") == "range"


def test_a_tie_between_range_and_round_robin_goes_to_range_in_both_orders() -> None:
    # Seen live on a broker of 1.0.2.
    assert vote([["range", "roundrobin"], ["roundrobin", "range"]], "1.0") == "range"
    assert vote([["roundrobin", "range"], ["range", "roundrobin"]], "4.x") == "range"


def test_a_tie_between_range_and_sticky_depends_on_the_coordinators_version() -> None:
    lists = [["range", "sticky"], ["sticky", "range"]]
    assert (vote(lists, "1.0"), vote(lists, "4.x")) == ("range", "sticky")


@pytest.mark.parametrize(
    ("lists", "code"),
    [([], "no_members"), ([["range"], ["sticky"]], "no_common_strategy"), ([[]], "no_common_strategy")],
)
def test_a_vote_that_cannot_be_held_says_why(lists: list[list[str]], code: str) -> None:
    with pytest.raises(StrategyError) as failed:
        vote(lists)
    assert failed.value.code == code


def test_an_unknown_strategy_is_an_error_by_name() -> None:
    with pytest.raises(StrategyError) as failed:
        strategy("stream", "kafka")
    assert failed.value.code == "unknown_strategy"
    assert "kafka.stream" in failed.value.message
