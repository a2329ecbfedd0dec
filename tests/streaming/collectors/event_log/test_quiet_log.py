"""Clocks of a quiet cluster are left out, but never one that decides something, nor so many that it seems silent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.collectors.event_log.quiet_log import QuietLog
from udfs.model.events import AnyEvent, Clock, TopicQueues, event_fields
from udfs.model.losses import Loss

_LATENESS_MS, _SILENT_MS = 2_000, 30_000


class _Kept:
    """A log in memory."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []

    def append(self, events: Sequence[AnyEvent]) -> None:
        self.events += events

    def read_memory(self) -> bytes | None:
        return b"memory"

    def keep_memory(self, content: bytes) -> None: ...

    def trouble(self) -> str | None:
        return "full"

    def flush(self) -> bool:
        return False

    @property
    def clocks(self) -> list[int]:
        return [event.event_time for event in self.events if isinstance(event, Clock)]


def _clock(at_ms: int, lost: tuple[Loss, ...] | None = None) -> Clock:
    return Clock(**event_fields("kafka", "c", at_ms), lost=lost)


def _topic(at_ms: int) -> TopicQueues:
    return TopicQueues(**event_fields("kafka", "c", at_ms), topic="t", queue_count=2)


def _quiet(kept: _Kept, read: dict[int, int] | None = None) -> QuietLog:
    position = (lambda: dict(read)) if read is not None else (lambda: None)
    return QuietLog(kept, lateness_ms=_LATENESS_MS, silent_after_ms=_SILENT_MS, position=position)


def test_of_a_quiet_cluster_every_third_clock_is_written() -> None:
    kept = _Kept()
    log = _quiet(kept)
    for number in range(12):
        log.append([_clock(5_000 * number + 3 * number)])  # polls begin a little late
    assert [at // 5_000 for at in kept.clocks] == [0, 1, 2, 5, 8, 11]


def test_an_event_is_decided_as_early_as_if_all_clocks_were_written() -> None:
    kept = _Kept()
    log = _quiet(kept)
    for at_ms in range(0, 45_000, 5_000):
        log.append([_clock(at_ms)])
    kept.events.clear()
    log.append([_topic(47_000)])
    for at_ms in range(50_000, 80_000, 5_000):
        log.append([_clock(at_ms)])
    assert kept.clocks == [50_000, 55_000, 60_000, 75_000]


def test_what_the_query_reads_of_the_cluster_itself_is_activity() -> None:
    kept, read = _Kept(), {0: 1}
    log = _quiet(kept, read)
    for at_ms in range(0, 45_000, 5_000):
        log.append([_clock(at_ms)])
    kept.events.clear()
    read[0] = 2
    for at_ms in (45_000, 47_100, 50_000, 55_000, 60_000, 65_000, 70_000):
        log.append([_clock(at_ms)])
    assert kept.clocks == [45_000, 47_100, 50_000, 55_000, 70_000]


def test_a_clock_from_before_the_record_that_it_waited_for_settles_nothing() -> None:
    """The query reads a record of 53 s with one of 49 s, for which the clock of 50 s waited."""
    kept, read = _Kept(), {0: 1}
    log = _quiet(kept, read)
    for at_ms in range(0, 50_000, 5_000):
        log.append([_clock(at_ms)])
    kept.events.clear()
    read[0] = 3
    for at_ms in (50_000, 54_500, 55_100):
        log.append([_clock(at_ms)])
    assert kept.clocks == [50_000, 54_500, 55_100]


def test_a_clock_that_reports_a_loss_is_written() -> None:
    kept = _Kept()
    log = _quiet(kept)
    for at_ms in range(0, 45_000, 5_000):
        log.append([_clock(at_ms)])
    kept.events.clear()
    log.append([_clock(45_000, (Loss(what="a file was deleted", noticed_ms=1),))])
    assert kept.clocks == [45_000]


def test_while_batches_take_long_all_clocks_are_written() -> None:
    kept = _Kept()
    batches = iter([True] * 2 + [False] * 3 + [True] * 5)
    log = QuietLog(kept, lateness_ms=_LATENESS_MS, silent_after_ms=_SILENT_MS, is_prompt=lambda: next(batches))
    for at_ms in range(0, 60_000, 5_000):
        log.append([_clock(at_ms)])
    assert [at_ms // 5_000 for at_ms in kept.clocks] == [0, 1, 2, 5, 6, 7, 10]


@pytest.mark.parametrize(("poll_ms", "widest_ms"), [(1_000, 3_000), (5_000, 15_000), (7_000, 14_000), (10_000, 10_000)])
def test_a_quiet_cluster_never_seems_silent(poll_ms: int, widest_ms: int) -> None:
    kept = _Kept()
    log = _quiet(kept)
    for number in range(40):
        log.append([_clock(poll_ms * number)])
    assert max(after - before for before, after in pairwise(kept.clocks)) == widest_ms


@given(st.lists(st.tuples(st.integers(0, 8_000), st.booleans()), max_size=40))
def test_what_is_left_out_decides_nothing(steps: list[tuple[int, bool]]) -> None:
    """Each event is decided by a written clock no later than by the first of all clocks that decides it."""
    kept = _Kept()
    log = _quiet(kept)
    now_ms, clocks, events = 0, [], []
    for pause_ms, is_event in steps:
        now_ms += pause_ms
        if is_event:
            events.append(now_ms)
            log.append([_topic(now_ms)])
        else:
            clocks.append(now_ms)
            log.append([_clock(now_ms)])
    for at_ms in events:
        deciding = [clock for clock in clocks if clock > at_ms + _LATENESS_MS]
        assert not deciding or deciding[0] in kept.clocks


def test_all_else_is_that_of_the_log_behind_it() -> None:
    log = _quiet(_Kept())
    assert (log.read_memory(), log.trouble(), log.flush()) == (b"memory", "full", False)
