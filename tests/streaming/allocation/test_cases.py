"""One case of `allocate`: read from a line, computed, written as a line."""

import json

import pytest

from streaming.allocation.cases import answer_line

_CASE = {
    "id": "one",
    "strategy": "rocketmq.AVG",
    "members": [{"member_id": "x", "subscriptions": ["t"]}, {"member_id": "y"}],
    "topics": {"t": {"queue_count": 5}},
}


def answers_to(*lines: object) -> tuple[list[dict], int]:
    """Return the results of cases, given as objects or as text, and 1 if one of them could not be read, else 0."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    results = [answer_line(text.encode(), number) for number, text in enumerate(texts, 1)]
    return [json.loads(answer) for answer, _ in results], 0 if all(is_read for _, is_read in results) else 1


def test_a_vote_answers_with_the_qualified_winner_and_its_assignments() -> None:
    members = [{"member_id": name, "strategies": ["roundrobin", "range"], "subscriptions": ["t"]} for name in "ab"]
    (answer,), code = answers_to({"strategy": "kafka.vote", "members": members, "topics": {"t": {"queue_count": 3}}})
    assert answer["strategy"] == "kafka.roundrobin"
    assert [queue["queue_id"] for queue in answer["assignments"]["a"]] == [0, 2]
    assert code == 0


def test_a_vote_without_members_is_an_answer() -> None:
    (answer,), code = answers_to({"strategy": "kafka.vote"})
    assert (answer["error"]["code"], code) == ("no_members", 0)


def test_the_order_of_members_before_static_membership_is_a_setting() -> None:
    members = [
        {"member_id": "b", "instance_id": "i", "subscriptions": ["t"]},
        {"member_id": "a", "subscriptions": ["t"]},
    ]
    case = {"strategy": "kafka.range", "members": members, "topics": {"t": {"queue_count": 1}}}
    answers, _ = answers_to(
        case, {**case, "settings": {"library": "java-2.2"}}, {**case, "settings": {"library": "librdkafka"}}
    )
    assert [next(name for name, held in answer["assignments"].items() if held) for answer in answers] == ["b", "a", "a"]


@pytest.mark.parametrize(
    ("library", "first"),
    [("java-2", "a"), ("java-2.3.1", "a"), ("java-2.4", "b"), ("java-4", "b"), ("java-" + "9" * 5_000, "b"), (3, "b")],
)
def test_a_library_is_read_as_far_as_its_version_is_one(library: object, first: str) -> None:
    members = [
        {"member_id": "b", "instance_id": "i", "subscriptions": ["t"]},
        {"member_id": "a", "subscriptions": ["t"]},
    ]
    case = {"strategy": "kafka.range", "members": members, "topics": {"t": {"queue_count": 1}}}
    (answer,), _ = answers_to({**case, "settings": {"library": library}})
    assert [name for name, held in answer["assignments"].items() if held] == [first]


def test_the_leaders_library_counts_where_no_setting_names_one() -> None:
    members = [
        {"member_id": "b", "client_library": "java-2.2", "instance_id": "i", "subscriptions": ["t"]},
        {"member_id": "a", "client_library": "java-4.1", "subscriptions": ["t"]},
    ]
    (answer,), _ = answers_to({"strategy": "kafka.range", "members": members, "topics": {"t": {"queue_count": 1}}})
    assert answer["assignments"]["b"] == []


def test_two_members_of_one_id_are_two_connections_that_take_one_slice() -> None:
    members = [{"member_id": name, "subscriptions": ["t"]} for name in ("a", "a", "b")]
    (answer,), _ = answers_to({"strategy": "rocketmq.AVG", "members": members, "topics": {"t": {"queue_count": 3}}})
    held = {name: [queue["queue_id"] for queue in queues] for name, queues in answer["assignments"].items()}
    assert (held, [queue["queue_id"] for queue in answer["unassigned"]]) == ({"a": [0], "b": [2]}, [1])


def test_message_mode_leaves_no_queue_unassigned() -> None:
    (answer,), _ = answers_to({**_CASE, "settings": {"share_number": -1}})
    assert [queue["queue_id"] for queue in answer["assignments"]["x"]] == [-1]
    assert answer["unassigned"] == []


def test_a_setting_that_is_null_is_as_good_as_absent() -> None:
    members = [{"member_id": name, "strategies": ["range", "sticky"], "subscriptions": ["t"]} for name in "ab"]
    cases = [
        {**_CASE, "settings": {"share_number": None}},
        {"strategy": "kafka.vote", "members": members, "settings": {"tie_order": None}},
        {**_CASE, "strategy": "rocketmq.CONSISTENT_HASH", "settings": {"virtual_nodes": None}},
    ]
    bare = [{name: value for name, value in case.items() if name != "settings"} for case in cases]
    answers, code = answers_to(*cases, *bare)
    assert code == 0
    assert [{**answer, "id": 0} for answer in answers[:3]] == [{**answer, "id": 0} for answer in answers[3:]]


def test_generation_minus_1_means_none_and_lower_ones_are_refused() -> None:
    members = [{"member_id": "a", "generation": number} for number in (-1, -2)]
    answers, code = answers_to(*({"strategy": "kafka.sticky", "members": [member]} for member in members))
    assert [answer["error"] and answer["error"]["code"] for answer in answers] == [None, "cannot_be_read"]
    assert code == 1


def test_a_byte_order_mark_in_front_of_the_first_line_is_not_part_of_it() -> None:
    answers, code = answers_to("\ufeff" + json.dumps(_CASE), "\ufeff" + json.dumps(_CASE))
    assert [answer["error"] and answer["error"]["code"] for answer in answers] == [None, "cannot_be_read"]
    assert code == 1


def test_more_queues_than_fit_into_memory_are_refused_before_they_are_made() -> None:
    topics = {f"t{number}": {"queue_count": 100_000} for number in range(11)}
    (answer,), code = answers_to({**_CASE, "topics": topics})
    assert (answer["id"], answer["error"]["code"], code) == ("one", "cannot_be_read", 1)
    assert "1100000" in answer["error"]["message"]


def test_more_points_on_a_ring_than_fit_into_memory_are_refused_before_they_are_made() -> None:
    case = {**_CASE, "strategy": "rocketmq.CONSISTENT_HASH", "settings": {"virtual_nodes": 500_001}}
    (answer,), code = answers_to(case)
    assert (answer["error"]["code"], code) == ("illegal_setting", 0)


def test_a_wrong_setting_is_shown_in_short() -> None:
    (answer,), _ = answers_to({**_CASE, "strategy": "rocketmq.MACHINE_ROOM", "settings": {"rooms": "x" * 1_000_000}})
    assert len(answer["error"]["message"]) < 200


def test_a_queue_that_is_named_twice_is_one_queue() -> None:
    queues = [{"broker": "b", "queue_id": number} for number in (1, 0, 1, 0)]
    (answer,), _ = answers_to({**_CASE, "topics": {"t": {"queues": queues}}})
    held = {name: [queue["queue_id"] for queue in queues] for name, queues in answer["assignments"].items()}
    assert (held, [queue["queue_id"] for queue in answer["unassigned"]]) == ({"x": [0], "y": []}, [1])


def test_a_partition_of_kafka_under_two_brokers_is_one_partition() -> None:
    topics = {"t": {"queues": [{"broker": broker, "queue_id": number} for broker in "ab" for number in (0, 1)]}}
    members = [{"member_id": name, "subscriptions": ["t"]} for name in "xy"]
    (answer,), _ = answers_to({"strategy": "kafka.range", "members": members, "topics": topics})
    held = {name: [queue["queue_id"] for queue in queues] for name, queues in answer["assignments"].items()}
    assert (held, answer["unassigned"]) == ({"x": [0], "y": [1]}, [])


def test_a_configured_queue_without_a_broker_is_the_topics_own() -> None:
    queues = [{"topic": "t", "broker": "", "queue_id": 1}]
    (answer,), _ = answers_to({**_CASE, "strategy": "rocketmq.CONFIG", "settings": {"queues": queues}})
    assert answer["assignments"]["x"] == queues
    assert [queue["queue_id"] for queue in answer["unassigned"]] == [0, 2, 3, 4]


def test_partitions_that_do_not_count_from_zero_go_to_one_member_each() -> None:
    members = [
        {
            "member_id": "a",
            "subscriptions": ["t"],
            "owned": [{"topic": "t", "queue_id": 7}, {"topic": "t", "queue_id": 5}],
        },
        {"member_id": "b", "subscriptions": ["t"]},
    ]
    topics = {"t": {"queues": [{"queue_id": 5}, {"queue_id": 7}]}}
    (answer,), _ = answers_to({"strategy": "kafka.sticky", "members": members, "topics": topics})
    held = {name: [queue["queue_id"] for queue in queues] for name, queues in answer["assignments"].items()}
    assert held == {"a": [5], "b": [7]}


def test_a_partition_that_the_real_assignor_gives_a_member_twice_is_there_twice() -> None:
    # kafka-clients 4.1.1 does the same: after a claimed partition that is gone, it treats claimed ones as unassigned.
    owned = [{"topic": "u", "queue_id": 1}, {"topic": "t", "queue_id": 5}]
    members = [
        {"member_id": "a", "subscriptions": ["t", "u"], "owned": owned, "generation": 1},
        {"member_id": "b", "subscriptions": ["t", "u"]},
    ]
    topics = {"t": {"queue_count": 3}, "u": {"queue_count": 3}}
    (answer,), _ = answers_to({"strategy": "kafka.sticky", "members": members, "topics": topics})
    held = {name: [(q["topic"], q["queue_id"]) for q in queues] for name, queues in answer["assignments"].items()}
    assert held == {"a": [("t", 0), ("t", 5), ("u", 1), ("u", 1)], "b": [("t", 1), ("t", 2), ("u", 0), ("u", 2)]}
