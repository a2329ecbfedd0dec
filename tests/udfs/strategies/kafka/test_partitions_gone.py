"""Claims of partitions that are no more, for their topic was made anew with fewer: as kafka-clients 4.1.1 answered."""

from collections.abc import Mapping

import pytest

from tests.udfs.strategies.groups import queue, told
from udfs.model.errors import StrategyError
from udfs.model.events import QueueInfo
from udfs.strategies.problem import Participant, Problem, Topic
from udfs.strategies.registry import strategy


def claiming(members: Mapping[str, tuple[str, int | None, str]], topics: Mapping[str, int]) -> Problem:
    """Make a group: member -> its topics, its generation, what it claims; topic -> partitions."""
    return Problem(
        group="g",
        members=tuple(
            Participant(
                member_id=member,
                name=member,
                subscriptions=tuple(names.split()),
                generation=generation,
                owned=None if generation is None else tuple(map(queue, claims.split())),
            )
            for member, (names, generation, claims) in members.items()
        ),
        topics={
            name: Topic(name=name, queues=tuple(QueueInfo(queue_id=number) for number in range(count)))
            for name, count in topics.items()
        },
    )


def test_what_lies_behind_one_is_given_out_twice_and_who_holds_all_of_its_topics_wants_no_more() -> None:
    problem = claiming(
        {"a": ("t", 2, "t-2"), "b": ("", 1, "t-1"), "c": ("v t", 1, "t-0 v-4 u-4")}, {"t": 2, "u": 1, "v": 3}
    )
    assert told(strategy("sticky", "kafka")(problem)) == {
        "a": "t-0 t-1 t-2",
        "b": "",
        "c": "t-0 v-0 v-1 v-2 v-4",
    }


@pytest.mark.parametrize(
    ("members", "topics", "reason"),
    [
        (
            {"a": ("v", 1, "t-3 v-0 t-1"), "b": ("t", None, ""), "c": ("u t", 2, "t-1 u-0")},
            {"t": 2, "u": 2, "v": 2},
            "a previous owner",
        ),
        (
            {
                "a": ("u", 2, "t-5"),
                "b": ("u t", None, ""),
                "c": ("t v", 2, "v-5"),
                "d": ("u t", 1, "u-3 v-5 u-0 u-1"),
            },
            {"t": 1, "u": 1, "v": 1},
            "a candidate",
        ),
    ],
)
def test_who_takes_no_part_in_the_moves_is_a_null_pointer_where_it_is_asked_for(
    members: Mapping[str, tuple[str, int | None, str]], topics: Mapping[str, int], reason: str
) -> None:
    with pytest.raises(StrategyError, match=reason) as failed:
        strategy("sticky", "kafka")(claiming(members, topics))
    assert failed.value.code == "null_pointer"
