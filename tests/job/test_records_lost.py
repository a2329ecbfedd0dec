"""A topic whose records the broker deletes while the job is down: a finding names offsets and span."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.job.commands import ManyRuns
from tests.job.table_bags import rows_of
from tests.job.test_events_lost import beat, clock, count, losses
from tests.kit.brokers import Broker, kafka_41
from tests.kit.members import Member
from tests.kit.topics import create_topic, delete_records, delete_topic, expire_records, send
from udfs.model.events import AnyEvent

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.timeout(900)]


def produce(broker: Broker, topic: str, *events: AnyEvent) -> None:
    send(broker, topic, [msgspec.json.encode(event) for event in events], 0)


def test_records_of_a_topic_that_were_deleted_unread_are_a_finding_once_and_the_rest_is_read(
    runs: ManyRuns, config: Path, kafka41: Broker, tmp_path: Path
) -> None:
    topic = "events-that-are-lost"
    folders = ["--tables", tmp_path / "tables", "--checkpoint", tmp_path / "checkpoint", "--config", config]

    def run() -> None:
        ended = runs.run(["run", "--kafka-events", f"{kafka41.bootstrap}/{topic}", *folders, "--once"])
        assert ended.exit_code == 0, ended.stderr[-3000:]

    create_topic(kafka41, topic, 1)
    produce(kafka41, topic, count(4, 0), beat("m1", 10), clock(5_000))
    delete_records(kafka41, topic, 1)  # before anything was read: a new job misses nothing
    produce(kafka41, topic, count(4, 0))
    run()
    assert losses(tmp_path) == []
    produce(kafka41, topic, beat("m2", 6_000), beat("m3", 7_000), beat("m4", 8_000), clock(20_000))
    delete_records(kafka41, topic, 6)
    run()
    [lost] = losses(tmp_path)
    assert f"{topic} (partition 0: offsets 4 to 5)" in lost["message"]
    # From the newest event that was read: clock(5_000) of 1_790_000_000_000.
    assert " missing from 2026-09-21T14:13:25.000Z to 2" in lost["message"]
    assert (lost["cluster"], lost["group_id"], lost["severity"]) == ("c1", None, "critical")
    members = {row["member_id"] for row in rows_of(tmp_path / "tables", "members").to_pylist()}
    assert members == {"m1", "m4"}
    # The topic was made again, and is shorter than the part that was read.
    delete_topic(kafka41, topic)
    create_topic(kafka41, topic, 1)
    produce(kafka41, topic, clock(30_000))
    run()
    run()
    [cut] = [row for row in losses(tmp_path) if row != lost]
    assert "partition 0 ends at 1, and 8 was read" in cut["message"]
    produce(kafka41, topic, beat("m5", 31_000), clock(40_000))
    run()
    assert len(losses(tmp_path)) == 2
    members = {row["member_id"] for row in rows_of(tmp_path / "tables", "members").to_pylist()}
    assert members == {"m1", "m4", "m5"}


def test_group_records_that_retention_deleted_unread_are_a_finding_of_their_cluster(
    runs: ManyRuns, config: Path, new_member: Callable[..., Member], tmp_path: Path
) -> None:
    # The test uses a broker of its own, because it deletes records that other tests need.
    often = {"log.retention.check.interval.ms": "100", "log.initial.task.delay.ms": "100"}
    folders = ["--tables", tmp_path / "tables", "--checkpoint", tmp_path / "checkpoint", "--config", config]
    with kafka_41(tmp_path / "broker", often) as broker:

        def run() -> None:
            ended = runs.run(["run", "--kafka", broker.bootstrap, "--cluster", "shop", *folders, "--once"])
            assert ended.exit_code == 0, ended.stderr[-3000:]

        create_topic(broker, "t", 2)
        first = new_member(broker, "g", ["t"], client_id="a")
        first.wait_until(lambda: len(first.owned) == 2)
        run()
        assert losses(tmp_path) == []
        second = new_member(broker, "g", ["t"], client_id="b")
        second.wait_until(lambda: len(second.owned) == 1)
        left = expire_records(broker, "__consumer_offsets")
        third = new_member(broker, "g", ["t"], client_id="c")
        third.wait_until(lambda: third.generation == 3)
        run()
        run()
    [lost] = losses(tmp_path)
    assert (lost["cluster"], lost["group_id"]) == ("shop", None)
    assert f" to {left - 1}) were deleted before they were read" in lost["message"]
    generations = {row["generation"] for row in rows_of(tmp_path / "tables", "rebalances").to_pylist()}
    assert {1, 3} <= generations


def test_a_running_job_passes_over_a_gap_and_then_stops_again_for_the_next(
    runs: ManyRuns, config: Path, kafka41: Broker, tmp_path: Path
) -> None:
    topic = "events-of-a-running-job"
    create_topic(kafka41, topic, 1)
    folders = ["--tables", tmp_path / "tables", "--checkpoint", tmp_path / "checkpoint", "--config", config]
    command = ["run", "--kafka-events", f"{kafka41.bootstrap}/{topic}", *folders]

    def members() -> set[str]:
        if not (tmp_path / "tables/members/_delta_log").exists():
            return set()
        return {row["member_id"] for row in rows_of(tmp_path / "tables", "members").to_pylist()}

    def stop(running: ManyRuns) -> None:
        running.signal(signal.SIGTERM)
        ended = running.wait()
        assert ended.exit_code == 0, ended.stderr[-3000:]

    produce(kafka41, topic, count(4, 0), beat("m1", 10), clock(5_000))
    running = runs.start(command)
    running.wait_until(lambda: "m1" in members(), "the first member")
    stop(running)
    produce(kafka41, topic, beat("m2", 6_000), beat("m3", 7_000), clock(10_000))
    delete_records(kafka41, topic, 4)
    running = runs.start(command)
    running.wait_until(lambda: "m3" in members(), "a member behind the gap")
    running.wait_until(lambda: "the query restarts after the gap" in running.stderr(), "the strict query")
    produce(kafka41, topic, beat("m4", 11_000), clock(20_000))
    running.wait_until(lambda: "m4" in members(), "a member that the strict query read")
    stop(running)
    [lost] = losses(tmp_path)
    assert "(partition 0: offsets 3 to 3)" in lost["message"]
    assert members() == {"m1", "m3", "m4"}
