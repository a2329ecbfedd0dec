"""Remembered ids: when an event is a repeat, and how they are swept out."""

from __future__ import annotations

import pytest

from udfs.shard.deduplication import DedupStore, topic_dedup_key

SPAN = 600


def test_a_repeat_does_not_renew_what_it_repeats() -> None:
    window = DedupStore(b"", None, SPAN).of(1)
    assert [window.is_repeat("x", at) for at in (0, 600, 601, 1201, 1202)] == [False, True, False, True, False]


def test_an_event_older_than_the_first_of_its_id_is_a_repeat() -> None:
    window = DedupStore(b"", None, SPAN).of(1)
    assert [window.is_repeat("x", at) for at in (1000, 5)] == [False, True]


def test_each_group_remembers_for_itself() -> None:
    repeats = DedupStore(b"", None, SPAN)
    assert [repeats.of(group).is_repeat("x", 0) for group in (1, 2, 1)] == [False, False, True]


def test_a_query_remembers_nothing() -> None:
    window = DedupStore(b"", None, SPAN).of(1)
    assert not window.was_applied("x", 0)
    assert not window.is_repeat("x", 0)
    assert window.was_applied("x", 600)


@pytest.mark.parametrize(("clock", "is_repeat"), [(1599, True), (1600, True), (1601, False)])
def test_forgetting_depends_on_the_clock_before_the_batch_and_not_on_sweeping(clock: int, is_repeat: bool) -> None:
    repeats = DedupStore(b"", None, SPAN)
    repeats.of(1).is_repeat("x", 1000)
    data, oldest = repeats.encode(None)
    later = DedupStore(data, clock, SPAN)
    assert later.of(1).is_repeat("x", 1001) is is_repeat
    swept, _ = DedupStore(data, clock, SPAN).encode(oldest)
    assert DedupStore(swept, clock, SPAN).of(1).was_applied("x", 1001) is is_repeat


def test_silence_sweeps_the_forgotten_out() -> None:
    repeats = DedupStore(b"", None, SPAN)
    repeats.of(1).is_repeat("x", 1000)
    data, oldest = repeats.encode(None)
    assert oldest == 1000
    assert DedupStore(data, 1660, SPAN).encode(oldest) == (data, 1000)  # not yet worth it
    assert DedupStore(data, 1661, SPAN).encode(oldest) == (b"", None)


def test_late_ids_are_remembered_from_then_on_however_old() -> None:
    window = DedupStore(b"", 50_000, SPAN).of(1)
    assert [window.is_repeat("x", 7), window.is_repeat("x", 7)] == [False, True]
    repeats = DedupStore(b"", 50_000, SPAN)
    repeats.of(1).is_repeat("x", 7)
    data, oldest = repeats.encode(None)
    assert oldest == 50_000
    assert [DedupStore(data, clock, SPAN).of(1).was_applied("x", 7) for clock in (50_600, 50_601)] == [True, False]


def test_each_topic_remembers_for_itself_and_not_for_a_group_of_its_name() -> None:
    keys = [*range(1_000), *(number << 40 for number in range(1, 1_000)), 2**64 - 1]
    topic_keys = {topic_dedup_key(key) for key in keys}
    assert len(topic_keys) == len(keys)
    assert all(topic_dedup_key(key) != key for key in keys)
