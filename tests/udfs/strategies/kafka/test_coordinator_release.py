"""What the coordinator of each release assigns: as Kafka 4.0.0 and 3.9.1 answered."""

import pytest

from tests.kit.differential import our_answer

_OWNED = [{"topic": "t", "queue_id": 0}]


@pytest.mark.parametrize(
    ("coordinator", "owner"), [(None, "old"), ("4.4.0", "old"), ("4.0.1", "old"), ("4.0.0", "new"), ("3.9.1", "new")]
)
def test_up_to_4_0_0_the_extra_partition_moves_to_the_first_member(coordinator: str | None, owner: str) -> None:
    ids = {"old": "X0yAFF_qm7EtmX5_lo5zlw", "new": "9ijPW6YFdNnlURkCf1THSw"}
    case = {
        "strategy": "kafka.server.uniform",
        "members": [
            {"member_id": ids["old"], "subscriptions": ["t"], "owned": _OWNED},
            {"member_id": ids["new"], "subscriptions": ["t"]},
        ],
        "topics": {"t": {"queue_count": 1}},
        "settings": {} if coordinator is None else {"coordinator": coordinator},
    }
    held = our_answer(case).held
    assert held is not None
    assert [member for member, queues in held.items() if queues] == [ids[owner]]


@pytest.mark.parametrize(("coordinator", "moved"), [("4.0.0", 2), ("3.9.1", 0)])
def test_3_9_leaves_a_member_with_all_of_its_partitions_alone_once_the_others_are_even(
    coordinator: str, moved: int
) -> None:
    owned = {"a": [("z", number) for number in range(6)], "b": [("t", number) for number in range(7)], "n": []}
    case = {
        "strategy": "kafka.server.uniform",
        "members": [
            {
                "member_id": member,
                "subscriptions": ["t"] if member == "b" else ["z", "t"],
                "owned": [{"topic": topic, "queue_id": number} for topic, number in queues],
            }
            for member, queues in owned.items()
        ],
        "topics": {"z": {"queue_count": 6}, "t": {"queue_count": 7}},
        "settings": {"coordinator": coordinator},
    }
    held = our_answer(case).held
    assert held is not None
    assert len(owned["b"]) - len(held["b"]) == moved
