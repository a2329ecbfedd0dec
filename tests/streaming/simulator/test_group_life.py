"""Common to all simulated groups: one action follows another, and none comes while the source is silent."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from streaming.simulator.cluster import TOPIC_CHANGE_MS
from streaming.simulator.group_life import GroupLife
from tests.streaming.simulator.lives import START_MS, OneCluster


class Counting(GroupLife):
    """Notes when it acts."""

    def __init__(self, place: OneCluster, weights: tuple[int, ...] = (1,)) -> None:
        super().__init__(place.cluster, "g", ["c", "a", "b"], random.Random(5))
        self.acted: list[tuple[int, int]] = []
        self.weights = weights

    def actions(self) -> list[tuple[int, Callable[[], None]]]:
        return [(weight, lambda number=number: self._note(number)) for number, weight in enumerate(self.weights)]

    def _note(self, number: int) -> None:
        self.acted.append((number, self.now - START_MS))


def test_it_acts_again_and_again_with_rests_between(alone: OneCluster) -> None:
    group = Counting(alone)
    group.rest()
    alone.live(3_600_000)
    times = [at for _, at in group.acted]
    assert 40 < len(times) < 160  # about once in 45 s
    assert all(after - before >= 500 for before, after in pairwise(times))
    # Topics change half past a second: never at the same time.
    assert all(at % 1_000 != TOPIC_CHANGE_MS for at in times)


def test_actions_at_the_time_of_topic_changes_are_delayed_by_a_millisecond(alone: OneCluster) -> None:
    group, ran = Counting(alone), []
    for wait_ms in (499, TOPIC_CHANGE_MS, 1_000 + TOPIC_CHANGE_MS):
        group.later(wait_ms, lambda: ran.append(group.now - START_MS))
    alone.live(5_000)
    assert ran == [499, TOPIC_CHANGE_MS + 1, 1_000 + TOPIC_CHANGE_MS + 1]


def test_actions_are_chosen_by_their_weights(alone: OneCluster) -> None:
    group = Counting(alone, weights=(0, 9, 1))
    group.rest()
    alone.live(36_000_000)
    counts = [sum(number == action for action, _ in group.acted) for number in range(3)]
    assert counts[0] == 0
    assert counts[1] > 4 * counts[2] > 0


def test_while_it_is_busy_nothing_else_begins(alone: OneCluster) -> None:
    group = Counting(alone)
    group.busy_for(600_000)
    group.busy_for(1_000)
    group.rest()
    alone.live(3_600_000)
    assert group.acted[0][1] >= 600_000


def test_actions_planned_for_a_silence_happen_in_order_afterwards(alone: OneCluster) -> None:
    group, ran = Counting(alone), []
    alone.silence(20_000)
    group.later(5_000, lambda: ran.append(("first", group.now - START_MS)))
    group.later(6_000, lambda: ran.append(("second", group.now - START_MS)))
    alone.live(60_000)
    assert ran == [("first", 26_000), ("second", 27_000)]
    assert group.busy_until >= START_MS + 50_000


@pytest.mark.parametrize("digits", [1, 8])
def test_ids_have_all_their_digits_and_topics_are_sorted(digits: int, alone: OneCluster) -> None:
    group = Counting(alone)
    made = [group.hexadecimal(digits) for _ in range(50)]
    assert {len(text) for text in made} == {digits}
    assert len(set(made)) > 8
    chosen = [group.some_topics() for _ in range(50)]
    assert all(topics and list(topics) == sorted(set(topics)) for topics in chosen)
    assert {len(topics) for topics in chosen} == {1, 2, 3}
