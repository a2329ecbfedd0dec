"""A folder that a collector cleans while the job is down: nothing unread is lost, or a finding names what was."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streaming.collectors.event_log import EventFiles, LogLimits
from streaming.collectors.event_log.readers import number_and_writer, read_deleted, read_readers
from tests.job.commands import Ended
from tests.job.table_bags import rows_of
from udfs.model.events import AnyEvent, Clock, Heartbeat, TopicQueues

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

WRITER = "kafka-c1"
T0 = 1_790_000_000_000
# Files look a second old at once, however fast the disk is.
READ_ONLY = LogLimits(retention_ms=-1_000)
# Read or not.
ALL = LogLimits(retention_ms=-1_000, unread_retention_ms=-1_000)


def append(folder: Path, limits: LogLimits, *events: AnyEvent) -> int:
    """Let a collector that has just started clean its log and append; return the number of its newest file."""
    EventFiles(folder, WRITER, limits).append(events)
    return files(folder)[-1]


def files(folder: Path) -> list[int]:
    found = (number_and_writer(file.name) for file in folder.glob("[!.]*"))
    return sorted(match[0] for match in found if match is not None)


def count(queues: int, at: int) -> TopicQueues:
    return TopicQueues(
        schema_version=1, event_time=T0 + at, system="kafka", cluster="c1", topic="t", queue_count=queues
    )


def beat(member_id: str, at: int) -> Heartbeat:
    return Heartbeat(
        schema_version=1,
        event_time=T0 + at,
        system="kafka",
        cluster="c1",
        group="g",
        member_id=member_id,
        subscriptions=("t",),
    )


def clock(at: int) -> Clock:
    return Clock(schema_version=1, event_time=T0 + at, system="kafka", cluster="c1")


def losses(place: Path) -> list[dict[str, Any]]:
    return [row for row in rows_of(place / "tables", "findings").to_pylist() if row["kind"] == "events_lost"]


def rfc_3339(number: int) -> str:
    written = datetime.fromtimestamp(number // 1_000_000 / 1000, UTC)
    return written.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def run(run_once: Callable[..., Ended], folder: Path, place: Path, *more: str) -> None:
    ended = run_once(folder, place, *more)
    assert ended.exit_code == 0, ended.stderr[-3000:]


def test_files_that_a_job_has_not_read_outlive_their_retention_until_it_has(
    run_once: Callable[..., Ended], tmp_path: Path
) -> None:
    folder = tmp_path / "events"
    first = append(folder, READ_ONLY, count(4, 0), beat("m1", 10))
    run(run_once, folder, tmp_path)
    [reader] = read_readers(folder)
    assert (reader.checkpoint, reader.read) == (str(tmp_path / "checkpoint"), {WRITER: first})
    # The job is down.
    second = append(folder, READ_ONLY, beat("m2", 5_000))
    third = append(folder, READ_ONLY, beat("m3", 9_000))
    fourth = append(folder, READ_ONLY, clock(20_000))
    assert files(folder) == [second, third, fourth]
    run(run_once, folder, tmp_path, "--flush")
    assert losses(tmp_path) == []
    assert rows_of(tmp_path / "tables", "rebalances").num_rows == 3
    last = append(folder, READ_ONLY, clock(21_000))
    assert files(folder) == [last]


def test_events_deleted_unread_are_one_finding_with_its_span_and_the_rest_is_right(
    run_once: Callable[..., Ended], tmp_path: Path
) -> None:
    folder, rest = tmp_path / "events", tmp_path / "rest"
    first = append(folder, READ_ONLY, count(4, 0), beat("m1", 10))
    run(run_once, folder, tmp_path)
    second = append(folder, READ_ONLY, beat("m2", 5_000))
    third = append(folder, READ_ONLY, beat("m3", 9_000))
    fourth = append(folder, ALL, beat("m4", 12_000), clock(20_000))
    assert files(folder) == [fourth]
    assert read_deleted(folder, WRITER).ranges == [(first, first), (second, third)]
    run(run_once, folder, tmp_path, "--flush")
    [lost] = losses(tmp_path)
    assert (lost["cluster"], lost["group_id"], lost["severity"]) == ("c1", None, "critical")
    assert lost["message"].endswith(f"are missing from {rfc_3339(first)} to {rfc_3339(third)}.")
    assert WRITER in lost["message"]
    assert lost["advice"]
    # The expected tables come from a folder that never held the events that are gone.
    append(rest / "events", LogLimits(), count(4, 0), beat("m1", 10))
    append(rest / "events", LogLimits(), beat("m4", 12_000), clock(20_000))
    run(run_once, rest / "events", rest, "--flush")
    for name in ("rebalances", "assignments", "members", "groups", "topics"):
        assert reported_by(tmp_path, name) == reported_by(rest, name)
    # The next loss is another finding, and the first is not written again.
    fifth = append(folder, READ_ONLY, clock(40_000))
    append(folder, ALL, clock(50_000))
    run(run_once, folder, tmp_path)
    assert [row["message"].rpartition(" missing ")[2] for row in losses(tmp_path) if row != lost] == [
        f"from {rfc_3339(fourth)} to {rfc_3339(fifth)}."
    ]


def reported_by(place: Path, name: str) -> list[str]:
    return sorted(str({**row, "detected_at": None}) for row in rows_of(place / "tables", name).to_pylist())


def test_a_job_that_begins_anew_has_missed_nothing_of_what_was_deleted_before(
    run_once: Callable[..., Ended], tmp_path: Path
) -> None:
    folder = tmp_path / "events"
    append(folder, ALL, count(4, 0), beat("m1", 10))
    left = append(folder, ALL, count(4, 20), clock(10_000))
    assert files(folder) == [left]
    run(run_once, folder, tmp_path, "--flush")
    assert losses(tmp_path) == []
