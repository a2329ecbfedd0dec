"""The reader of group records beside a real broker, and a log that cannot always be written."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from streaming.event_log import EventFiles, LogFull
from streaming.kafka.record_reader import RecordReader
from streaming.kafka.rights import offsets_partitions
from tests.kit.brokers import Broker
from tests.kit.members import Member
from tests.kit.topics import create_topic
from tests.streaming.kafka.test_collector import events_in, options_of
from udfs.events import AnyEvent, GroupSnapshot

_TIMEOUT_S = 120


class Disk(EventFiles):
    """``waits``: takes events, and has not written them; ``full``: takes no more."""

    state = "free"
    refused = 0

    def append(self, events: Sequence[AnyEvent]) -> None:
        if self.state == "full" and events:
            self.refused += 1
            raise LogFull("No space left on device")
        super().append(events)

    def flush(self) -> bool:
        return self.state == "free" and super().flush()


def step_until(reader: RecordReader, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline
        reader.step()


@pytest.mark.broker
def test_nothing_counts_as_read_that_is_not_in_the_log_and_later_all_is_told_once(
    kafka41: Broker, new_member: Callable[..., Member], tmp_path: Path
) -> None:
    def generations() -> list[int | None]:
        snapshots = (event for event in events_in(tmp_path) if isinstance(event, GroupSnapshot))
        return [event.generation for event in snapshots if event.group == "held" and event.members]

    create_topic(kafka41, "held", 2)
    first = new_member(kafka41, "held", ["held"], client_id="a")
    first.wait_until(lambda: len(first.owned) == 2)
    options = options_of(kafka41)
    log = Disk(tmp_path, "groups")
    reader = RecordReader(options, log, partitions=offsets_partitions(options))
    log.state = "waits"
    step_until(reader, lambda: log.read_memory() is not None)
    assert reader.offsets_read() == {}
    log.state = "free"
    step_until(reader, lambda: generations() == [1])
    read = dict(reader.offsets_read())
    log.state = "full"
    second = new_member(kafka41, "held", ["held"], client_id="b")
    second.wait_until(lambda: len(second.owned) == 1)
    step_until(reader, lambda: log.refused > 1)
    assert reader.offsets_read() == read
    assert generations() == [1]
    log.state = "free"
    step_until(reader, lambda: second.generation in generations())
    reader.close()
    assert len(set(generations())) == len(generations())
    assert sum(reader.offsets_read().values()) > sum(read.values())
