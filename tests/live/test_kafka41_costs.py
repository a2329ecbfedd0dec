"""The cost of a rebalance in rows equals what real consumers of a Kafka 4.1 broker count themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient, OffsetSpec

from dashboard.reading.group_detail import group_detail
from dashboard.reading.questions import Reading
from streaming.tables.shared_columns import COST_NAMES
from tests.job.commands import ManyRuns
from tests.kit.brokers import Broker
from tests.kit.members import Member, wait_until_assigned
from tests.kit.topics import create_topic, send
from tests.live.job import RunningJob, running_job
from tests.live.story import partitions
from tests.live.tables import Row

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]

GROUP, TOPIC = "counting", "counted"
# So that the tables show the story while it goes on.
SETTINGS = {
    "REBALANCE_MONITOR_TIME__QUEUE_PROGRESS_MS": "1000",
    "REBALANCE_MONITOR_KAFKA__ENDS_INTERVAL_MS": "500",
    "REBALANCE_MONITOR_KAFKA__POLL_INTERVAL_MS": "500",
    "REBALANCE_MONITOR_JOB__MATERIALIZE_INTERVAL_MS": "1000",
}


def test_messages_that_are_read_twice_and_that_wait_are_those_that_consumers_count(
    kafka41: Broker, new_member: Callable[..., Member], runs: ManyRuns, tmp_path: Path
) -> None:
    create_topic(kafka41, TOPIC, 1)
    with running_job(runs, kafka41, tmp_path, settings=SETTINGS) as job:
        first = new_member(
            kafka41, GROUP, [TOPIC], client_id="a", session_timeout_ms=15_000, settings={"enable.auto.commit": "false"}
        )
        wait_until_assigned([first], partitions(TOPIC, 1))
        job.wait_for_generation(GROUP, 1)
        for total in (100, 200):
            _read(kafka41, first, 100, total)
            first.commit()
            job.wait_for(lambda total=total: _newest(job).get("committed_offset") == total, f"the commit of {total}")
        _read(kafka41, first, 60, 260)  # and no commit
        job.wait_for(lambda: _newest(job).get("end_offset") == 260, "the end of the partition")
        first.kill()
        send(kafka41, TOPIC, [b"new"] * 25, 0)
        second = new_member(kafka41, GROUP, [TOPIC], client_id="b", session_timeout_ms=30_000)
        second.wait_until(lambda: second.records_read == 85)
        generation = second.generation
        assert generation is not None
        job.wait_for_generation(GROUP, generation)

        # It leaves in order, having committed all that it read.
        job.wait_for(lambda: _newest(job).get("committed_offset") == 285, "the commit of 285")
        second.stop()
        third = new_member(kafka41, GROUP, [TOPIC], client_id="c")
        wait_until_assigned([third], partitions(TOPIC, 1))
        last = third.generation
        assert last is not None
        job.wait_for_generation(GROUP, last)
        send(kafka41, TOPIC, [b"new"] * 5, 0)
        third.wait_until(lambda: third.records_read == 5)
        job.wait_for(lambda: _newest(job).get("committed_offset") == 290, "the commit of 290")
        # Ends are read at intervals: a commit may show before the end that it has reached.
        job.wait_for(lambda: _newest(job).get("end_offset") == 290, "the end of the partition")
        shown, described = _shown(job), _described(kafka41)
        assert job.stop() == 0

    row = job.generations(GROUP)[generation]
    twice = second.records_read - 25
    assert twice == 60
    # The former owner had read 100 messages between its commits, and the partition had no more than it read and 25.
    assert row["repeated_messages"] is None
    assert twice <= row["repeated_estimated_messages"] <= 85
    # The end was observed before: as many more are expected as were read in that time before.
    assert row["waiting_messages"] is None
    assert row["waiting_estimated_messages"] >= twice
    spans = [span for span in job.rows("assignments") if span["rebalance_id"] == row["rebalance_id"]]
    [span] = [span for span in spans if span["origin"] == "reported"]
    for name in COST_NAMES:
        assert span[name] == row[name]
    after = job.generations(GROUP)[last]
    assert after["repeated_estimated_messages"] in (None, 0)
    assert shown == described == (290, 290, 0)
    moved = [
        (progress["event_time"], progress["queue_id"])
        for progress in job.rows("queue_progress")
        if progress["group_id"] == GROUP
    ]
    assert len(moved) == len(set(moved))


def _read(broker: Broker, member: Member, count: int, total: int) -> None:
    """Send messages, and wait until a member has read all."""
    send(broker, TOPIC, [b"message"] * count, 0)
    member.wait_until(lambda: member.records_read == total)


def _newest(job: RunningJob) -> Row:
    rows = [row for row in job.rows("queue_progress") if row["group_id"] == GROUP]
    return max(rows, key=lambda row: row["event_time"], default={})


def _shown(job: RunningJob) -> tuple[int | None, int | None, int | None]:
    """Return current offset, log end offset and lag as the monitor shows them."""
    [row] = group_detail(Reading.once(job.tables), GROUP, last=1, most=1).progress
    return row["committed_offset"], row["end_offset"], row["lag"]


def _described(broker: Broker) -> tuple[int, int, int]:
    """Return the same as the broker has them."""
    admin = AdminClient(broker.client_settings())
    [future] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)]).values()
    [place] = future.result().topic_partitions
    [end] = admin.list_offsets({place: OffsetSpec.latest()}).values()
    offset = end.result().offset
    return place.offset, offset, offset - place.offset
