"""`collect` as a process, beside a real broker: its files, its end, and its next start."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from streaming.commands.output_logs import OutputLogs
from streaming.settings.model import load
from streaming.setup.errors import SetupError
from streaming.stores.places import Place, place_of
from tests.crash.small_disk import small_disk
from tests.job.commands import Running
from tests.kit.brokers import Broker
from tests.kit.members import Member
from tests.kit.s3 import S3Server
from tests.kit.topics import create_topic
from udfs.model.events import AnyEvent, Clock, GroupSnapshot, TopicQueues

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]


def events_in(folder: Place) -> list[AnyEvent]:
    return [
        msgspec.json.decode(line, type=AnyEvent)
        for file in sorted(folder.glob("*.jsonl"), key=str)
        for line in file.read_bytes().splitlines()
    ]


def topics_in(folder: Path) -> list[TopicQueues]:
    return [event for event in events_in(folder) if isinstance(event, TopicQueues)]


def clocks_in(folder: Place) -> list[int]:
    return [event.event_time for event in events_in(folder) if isinstance(event, Clock)]


def generations(folder: Path, group: str) -> list[int | None]:
    snapshots = (event for event in events_in(folder) if isinstance(event, GroupSnapshot))
    return [event.generation for event in snapshots if event.group == group and event.members]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_it_with_everything_written_and_the_next_start_continues(
    number: signal.Signals, kafka41: Broker, new_member: Callable[..., Member], tmp_path: Path
) -> None:
    name = f"stopped-{number.name.lower()}"
    create_topic(kafka41, name, 2)
    first = new_member(kafka41, name, [name], client_id="a")
    first.wait_until(lambda: len(first.owned) == 2)
    out = tmp_path / "out"
    arguments = ["collect", "--kafka", kafka41.bootstrap, "--cluster", "shop/1", "--out", out]
    running = Running(arguments, tmp_path / "said.txt")
    try:
        running.wait_until(lambda: bool(clocks_in(out)), "a clock was written")
        assert generations(out, name) == [1]
        running.signal(number)
        ended = running.wait()
    finally:
        running.kill()
    assert ended.exit_code == 0, ended.stderr
    assert '"stopped"' in ended.stderr
    assert not list(out.glob(".*.tmp"))
    second = new_member(kafka41, name, [name], client_id="b")
    second.wait_until(lambda: len(second.owned) == 1)
    again = Running([*arguments, "--once"], tmp_path / "said.txt")
    try:
        assert again.wait().exit_code == 0
    finally:
        again.kill()
    reported = generations(out, name)
    assert reported[0] == 1
    assert sorted(set(filter(None, reported))) == sorted(filter(None, reported))  # nothing twice
    assert second.generation in reported


def test_topics_and_folders_get_the_same_events(
    kafka41: Broker, new_member: Callable[..., Member], tmp_path: Path
) -> None:
    create_topic(kafka41, "collected-events", 1)
    # A broker that never had a group has no topic of group records, so there is no position to remember.
    member = new_member(kafka41, "left-out", ["collected-events"], client_id="a")
    member.wait_until(lambda: len(member.owned) == 1)
    once = ["--kafka", kafka41.bootstrap, "--cluster", "c", "--once", "--exclude-group", ".*"]
    for more in (["--out", tmp_path / "out"], ["--out", "kafka:collected-events", "--checkpoint", tmp_path / "memory"]):
        running = Running(["collect", *once, *more], tmp_path / "said.txt")
        try:
            ended = running.wait()
        finally:
            running.kill()
        assert ended.exit_code == 0, ended.stderr
    from tests.streaming.collectors.event_log.test_event_topic import times_on

    assert len(times_on(kafka41, "collected-events")) == len(events_in(tmp_path / "out"))
    assert sorted(file.name for file in (tmp_path / "memory").glob("*.json")) == [
        "kafka-c-groups-collected-events.json",
        "kafka-c-topics-collected-events.json",
    ]


def test_a_full_disk_is_logged_and_all_is_written_in_order_when_it_has_room(kafka41: Broker, tmp_path: Path) -> None:
    config, output = tmp_path / "monitor.toml", tmp_path / "said.txt"
    config.write_text("[kafka]\npoll_interval_ms = 500\n")
    with small_disk(tmp_path / "small", output) as disk:
        out = disk.path_outside / "out"

        def queues_written() -> list[int | None]:
            return [event.queue_count for event in topics_in(out) if event.topic == "made-while-full"]

        arguments = ["--kafka", kafka41.bootstrap, "--cluster", "c", "--out", disk.folder / "out", "--config", config]
        disk.runs.start(["collect", *arguments, "--exclude-group", ".*"])
        try:
            disk.runs.wait_until(lambda: bool(clocks_in(out)), "a clock was written")
            disk.fill(leave_bytes=16_384)  # a few clocks more
            disk.runs.wait_until(lambda: "the log of events cannot be written" in output.read_text(), "it says so")
            create_topic(kafka41, "made-while-full", 3)
            disk.runs.wait_until(lambda: "made-while-full" in output.read_text(), "the topic is seen")
            before = clocks_in(out)
            disk.empty()
            disk.runs.wait_until(lambda: bool(queues_written()), "what was observed meanwhile is reported")
            disk.runs.wait_until(lambda: "the log of events is writable again" in output.read_text(), "it says so")
        finally:
            os.kill(disk.runs.pid, signal.SIGTERM)
            ended = disk.runs.wait()
        assert ended.exit_code == 0, ended.stderr
        clocks = clocks_in(out)
        assert clocks == sorted(set(clocks))
        assert clocks[: len(before)] == before
        assert queues_written() == [3]
        assert not list(out.glob(".*.tmp"))
    assert "No space left on device" in ended.stderr


def test_a_folder_that_cannot_be_made_is_an_error(kafka41: Broker, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    arguments = ["collect", "--kafka", kafka41.bootstrap, "--cluster", "c", "--out", tmp_path / "file" / "out"]
    running = Running(arguments, tmp_path / "said.txt")
    try:
        ended = running.wait()
    finally:
        running.kill()
    assert ended.exit_code == 2
    assert "cannot be written: Not a directory" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_second_collector_of_a_cluster_is_kept_off_a_store(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place_of(s3.folder(monkeypatch))
    settings = load(None, {"metaq.zookeeper": "127.0.0.1:1", "metaq.cluster": "shop/1"})
    first, second = (OutputLogs(settings, "metaq", folder, None, tmp_path) for _ in range(2))
    assert not first.remember()
    log = first.log()
    log.append([Clock(schema_version=1, event_time=7, system="metaq", cluster="shop/1")])
    log.keep_memory(b"all")
    with pytest.raises(
        SetupError, match=r"another collector of shop/1 runs with s3://.*: process \d+ on .* renewed it"
    ):
        second.log()
    first.close()
    assert second.remember()
    assert second.log().read_memory() == b"all"
    second.close()
    assert clocks_in(folder) == [7]
