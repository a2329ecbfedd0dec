"""How long real clients take, as far as their sources and settings say."""

from __future__ import annotations

import pytest

from udfs.group.assignment.client_timings import learning_ms, queue_wait_ms, settled_after_ms, version_of, whole_wait_ms
from udfs.model.systems import METAQ, ROCKETMQ


@pytest.mark.parametrize(
    ("kinds", "span"),
    [
        ({"member_joined"}, 0),
        ({"member_left"}, 0),
        ({"member_gone"}, 0),
        ({"subscription_changed"}, 0),
        ({"session_expired"}, 20_000),
        ({"session_expired", "member_joined"}, 0),  # one notice wakes everybody
        ({"strategy_changed"}, 20_000),
        ({"queue_count_changed"}, 50_000),
        ({"queue_count_changed", "member_joined"}, 50_000),  # no notice reports queues
    ],
)
def test_rocketmqs_members_learn_by_notice_or_by_their_own_tick(kinds: set[str], span: int) -> None:
    assert learning_ms(ROCKETMQ, kinds) == span
    assert learning_ms(METAQ, kinds) == 0


@pytest.mark.parametrize(
    ("learning", "loss", "version", "ordered", "wait"),
    [
        (0, "alive", "4.9.7", False, 0),
        (0, "alive", "V5_0_0", False, 500),  # the first pull is put off
        (0, "alive", "V5_1_4", False, 500),
        (0, "alive", "V5_2_0", False, 1_000),  # and at most one pass a second
        (0, "alive", None, False, 1_000),
        (20_000, "expired", "4.9.7", False, 10_000),
        (20_000, "expired", "V5_5_0", True, 11_000),  # its locks are long gone
        (50_000, "alive", "4.9.7", False, 8_333),
        (0, "left", "V5_5_0", True, 1_000),  # who leaves unlocks
        (0, "gone", "V5_5_0", True, 1_000 + 500 + 50_000),
        (0, "gone", "4.9.7", True, 10_000 + 50_000),
        (0, "alive", "4.9.7", True, 10_000),  # asks again with the next tick
        (0, "alive", "V5_1_0", True, 500 + 250),
    ],
)
def test_a_queue_waits_for_its_taker_to_learn_and_for_the_lock(
    learning: int, loss: str, version: str | None, ordered: bool, wait: int
) -> None:
    assert queue_wait_ms(ROCKETMQ, learning, loss, version, ordered) == wait  # type: ignore[arg-type]


def test_metaqs_members_own_anew_within_a_second() -> None:
    assert queue_wait_ms(METAQ, 0, "expired", None, False) == 1_000


def test_the_last_of_many_learns_late() -> None:
    assert [whole_wait_ms(20_000, takers) for takers in (0, 1, 3, 19)] == [0, 10_000, 15_000, 19_000]


def test_members_of_ordered_groups_may_wait_for_locks() -> None:
    assert settled_after_ms(ROCKETMQ, {"member_joined"}, False, 120_000) == 30_000
    assert settled_after_ms(ROCKETMQ, {"queue_count_changed"}, False, 120_000) == 60_000
    assert settled_after_ms(ROCKETMQ, {"member_joined"}, True, 120_000) == 90_000
    assert settled_after_ms(METAQ, {"member_joined"}, False, 30_000) == 32_000


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("V5_5_0", (5, 5, 0)),
        ("4.9.7", (4, 9, 7)),
        ("V4_9_4_SNAPSHOT", (4, 9, 4)),
        ("5", (5,)),
        ("", None),
        (None, None),
    ],
)
def test_versions_are_read_as_sources_name_them(text: str | None, version: tuple[int, ...] | None) -> None:
    assert version_of(text) == version
