"""The uniform assignor of Kafka 3.9's coordinator with different subscriptions, at its edges: as 3.9.1 answered."""

from __future__ import annotations

from tests.kit.differential import our_answer


def held(owned: dict[str, list[tuple[str, int]]], topics: dict[str, int], narrow: str) -> dict[str, list[str]]:
    """Return what members hold; ``narrow`` subscribes to t alone, the others to all topics."""
    case = {
        "strategy": "kafka.server.uniform",
        "members": [
            {
                "member_id": member,
                "subscriptions": ["t"] if member == narrow else sorted(topics),
                "owned": [{"topic": topic, "queue_id": number} for topic, number in queues],
            }
            for member, queues in owned.items()
        ],
        "topics": {name: {"queue_count": count} for name, count in topics.items()},
        "settings": {"coordinator": "3.9.1"},
    }
    answer = our_answer(case)
    assert answer.held is not None
    return {member: [f"{topic}{number}" for topic, _, number in queues] for member, queues in answer.held.items()}


def of(topic: str, first: int, end: int) -> list[tuple[str, int]]:
    return [(topic, number) for number in range(first, end)]


def test_a_member_with_all_that_it_subscribes_to_is_not_compared_once_the_others_are_even() -> None:
    found = held({"a": of("z", 0, 6), "b": of("t", 0, 7), "n": []}, {"z": 6, "t": 7}, narrow="b")
    assert found == {
        "a": ["z3", "z4", "z5"],
        "b": ["t0", "t1", "t2", "t3", "t4", "t5", "t6"],
        "n": ["z0", "z1", "z2"],
    }


def test_it_is_compared_once_it_has_given_something() -> None:
    found = held({"a": of("z", 0, 3), "b": of("t", 0, 7), "n": of("z", 3, 6)}, {"z": 6, "t": 7}, narrow="b")
    assert found == {"a": ["t0", "z0", "z1", "z2"], "b": ["t2", "t3", "t4", "t5", "t6"], "n": ["t1", "z3", "z4", "z5"]}


def test_topics_with_many_partitions_for_each_subscriber_are_evened_out_first() -> None:
    found = held({"a": of("z", 0, 2), "b": of("t", 0, 7), "n": []}, {"z": 2, "t": 7}, narrow="b")
    assert found == {"a": ["t2", "z0", "z1"], "b": ["t4", "t5", "t6"], "n": ["t0", "t1", "t3"]}
