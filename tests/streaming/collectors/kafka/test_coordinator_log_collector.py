"""Lines of brokers' logs, appended to a log of events."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest

from streaming.collectors.collector import source_status_of
from streaming.collectors.event_log import LogFull
from streaming.collectors.kafka.coordinator_log import CoordinatorLog
from streaming.collectors.kafka.coordinator_log_collector import CoordinatorLogCollector, LogBehindLines
from streaming.collectors.kafka.log_files import LineSource, LogFiles, StandardInput
from streaming.machine.stop_request import StopRequest
from streaming.tables.liveness import SourceStatus
from udfs.model.events import AnyEvent, Clock, MemberLeft

FAILED = (
    "[2026-11-22 19:28:34,885] INFO [GroupCoordinator 0]: Member {} in group g has failed, removing it from the group\n"
)


class Log:
    """A log of events in memory, which can be full."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        self.memory: bytes | None = None
        self.is_full = False

    def append(self, events: Sequence[AnyEvent]) -> None:
        if self.is_full:
            raise LogFull("full")
        self.events += events

    def read_memory(self) -> bytes | None:
        return self.memory

    def keep_memory(self, content: bytes) -> None:
        self.memory = content

    def trouble(self) -> str | None:
        return None

    def flush(self) -> bool:
        return True

    def names(self) -> list[str]:
        return [event.member_id if isinstance(event, MemberLeft) else "clock" for event in self.events]


def collector(lines: LineSource, log: Log) -> CoordinatorLogCollector:
    return CoordinatorLogCollector("c", CoordinatorLog("c"), lines, log)


def clock() -> Clock:
    return Clock(schema_version=1, event_time=1, system="kafka", cluster="c")


def test_a_clock_comes_after_what_was_logged_before_it(tmp_path: Path) -> None:
    path, log = tmp_path / "server.log", Log()
    path.write_text(FAILED.format("a"))
    behind = LogBehindLines(log, collector(LogFiles([str(path)]), log))
    behind.append([clock()])
    with path.open("a") as file:
        file.write(FAILED.format("b"))
    behind.append([clock()])
    assert log.names() == ["a", "clock", "b", "clock"]


def test_while_the_log_is_full_nothing_is_lost_and_no_clock_is_written(tmp_path: Path) -> None:
    path, log = tmp_path / "server.log", Log()
    path.write_text(FAILED.format("a"))
    lines = collector(LogFiles([str(path)]), log)
    behind = LogBehindLines(log, lines)
    log.is_full = True
    assert not lines.observe_once()
    assert lines.status().state == "unwritable"
    with pytest.raises(LogFull):
        behind.append([clock()])
    assert log.memory is None
    log.is_full = False
    behind.append([clock()])
    assert log.names() == ["a", "clock"]
    assert lines.status().state == "connected"


def test_a_restarted_collector_continues_where_it_was(tmp_path: Path) -> None:
    path, log = tmp_path / "server.log", Log()
    path.write_text(FAILED.format("a"))
    assert collector(LogFiles([str(path)]), log).observe_once()
    with path.open("a") as file:
        file.write(FAILED.format("b"))
    assert collector(LogFiles([str(path)], log.read_memory()), log).observe_once()
    assert log.names() == ["a", "b"]


def test_a_log_that_was_empty_at_the_first_start_is_followed_from_then_on(tmp_path: Path) -> None:
    path, log = tmp_path / "server.log", Log()
    path.touch()
    assert collector(LogFiles([str(path)]), log).observe_once()
    for member in "abc":
        path.write_text(FAILED.format(member))
        path.rename(tmp_path / f"server.log.2026-11-22-1{'abc'.index(member)}")
    path.touch()
    assert collector(LogFiles([str(path)], log.read_memory()), log).observe_once()
    assert log.names() == ["a", "b", "c"]


def test_a_pipe_is_read_to_its_end() -> None:
    log = Log()
    lines = collector(StandardInput(io.BytesIO((FAILED.format("a") + FAILED.format("b")).encode())), log)
    lines.read_to_end(StopRequest())
    assert lines.is_over
    assert log.names() == ["a", "b"]


def test_while_logs_are_missing_the_cluster_is_partly_known(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    lines = collector(LogFiles([f"{path}*"]), Log())
    reason = f"no file matches {path}*: causes of departures are inferred"
    assert lines.observe_once()
    assert source_status_of(lines.status(), 0) == SourceStatus("c", partial=reason)
    path.write_text(FAILED.format("a"))
    assert lines.observe_once()
    assert source_status_of(lines.status(), 0) == SourceStatus("c")


def test_the_thread_reads_until_it_is_stopped(tmp_path: Path) -> None:
    path, log = tmp_path / "server.log", Log()
    path.write_text(FAILED.format("a"))
    with collector(LogFiles([str(path)]), log):
        pass
    assert log.names() == ["a"]
