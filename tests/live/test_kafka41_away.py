"""The job beside a Kafka 4.1 broker: stopped while that is away, and started again when much has happened."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.job.commands import ManyRuns
from tests.kit.brokers import Broker, kafka_41
from tests.kit.members import Member, wait_until, wait_until_assigned
from tests.kit.other_groups import EVERY_KIND, FEATURES, join_share_group, join_streams_group
from tests.kit.topics import create_topic
from tests.live.job import running_job
from tests.live.story import partitions
from udfs.kafka.consumer_offsets import events_of
from udfs.model.events import GroupSnapshot

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(1200)]
# Old records of groups go as soon as newer ones have been written behind them.
_COMPACTED_AT_ONCE = {
    "log.roll.ms": "1000",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.001",
}
# Spark's reader waits for an unavailable broker, as long as the stop lets it.
_IMPATIENT = "[job]\nstop_timeout_ms = 5000\n"
_COMPACTED_S = 60


def test_a_job_continues_where_it_stopped_reports_what_it_missed_and_lists_groups_of_other_kinds(
    new_member: Callable[..., Member], runs: ManyRuns, tmp_path: Path
) -> None:
    config = tmp_path / "monitor.toml"
    config.write_text(_IMPATIENT)
    more = ("--config", str(config))
    with kafka_41(tmp_path / "broker", _COMPACTED_AT_ONCE | EVERY_KIND, features=FEATURES) as broker:
        create_topic(broker, "orders", 4)
        orders = partitions("orders", 4)
        first = new_member(broker, "billing", ["orders"], client_id="a", session_timeout_ms=60_000)
        wait_until_assigned([first], orders)
        with running_job(runs, broker, tmp_path / "job", more=more) as job:
            job.wait_for_generation("billing", 1)
            broker.stop()
            job.wait_for(lambda: '"cluster away"' in job.stderr(), "the collector's notice")
            assert job.stop() == 0
        broker.start()

        missed = _missed_generations(broker, new_member, first)
        newer = new_member(broker, "newer", ["orders"], client_id="n", settings={"group.protocol": "consumer"})
        wait_until([newer], lambda: len(newer.owned) == 4)
        join_share_group(broker, "sharing", "orders")
        join_streams_group(broker, "streaming", "orders")

        with running_job(runs, broker, tmp_path / "job", more=more) as job:
            job.wait_for_generation("billing", missed + 1)
            others = {"newer", "sharing", "streaming"}
            job.wait_for(lambda: others <= {row["group_id"] for row in job.rows("groups")}, "groups of other kinds")
            job.wait_for_generation("newer", 1)
            assert job.stop() == 0

    generations = job.generations("billing")
    assert sorted(generations) == [1, missed + 1]
    assert generations[missed + 1]["generations_missed"] == missed - 1
    assert job.agrees(generations[missed + 1])
    reported = [row for row in job.rows("findings") if row["kind"] == "generations_missed"]
    assert [row["group_id"] for row in reported] == ["billing"]
    states = {row["group_id"]: row["state"] for row in job.rows("groups")}
    assert states == {"billing": "stable", "newer": "stable", **dict.fromkeys(["sharing", "streaming"], "not_followed")}
    assert {row["group_id"] for row in job.rows("rebalances")} == {"billing", "newer"}
    assert job.agrees(job.generations("newer")[1])
    now = [row for row in job.rows("assignments") if row["valid_to"] is None and row["origin"] == "reported"]
    for group in ("billing", "newer"):
        assert sorted((row["topic"], row["queue_id"]) for row in now if row["group_id"] == group) == orders
    assert job.rows("rejected_events") == []


def _missed_generations(broker: Broker, new_member: Callable[..., Member], first: Member) -> int:
    """Let members come and go until the broker has dropped all generations after the first but the last.

    Returns:
        How many there were after the first: the last one's number less 1.
    """
    orders = partitions("orders", 4)
    for name in ("b", "c"):
        other = new_member(broker, "billing", ["orders"], client_id=name)
        wait_until_assigned([first, other], orders)
        other.stop()
        wait_until_assigned([first], orders)
    last = first.generation
    assert last is not None
    assert last >= 5
    deadline = time.monotonic() + _COMPACTED_S
    # Commits go on meanwhile: they fill the segments behind.
    while (kept := _generations_kept(broker)) - {1} != {last}:
        assert time.monotonic() < deadline, f"the broker still has generations {sorted(kept)}"
    return last - 1


def _generations_kept(broker: Broker) -> set[int]:
    """Read which generations of the group the broker still has."""
    consumer = Consumer(broker.client_settings() | {"group.id": "unused", "enable.auto.commit": False})
    place = TopicPartition("__consumer_offsets", 0, 0)
    try:
        _, end = consumer.get_watermark_offsets(place, timeout=30)
        consumer.assign([place])
        found = set()
        while (record := consumer.poll(10)) is not None and not record.error() and record.offset() < end:
            found |= {
                event.generation
                for event in events_of(record.key(), record.value(), record.timestamp()[1], "live")
                if isinstance(event, GroupSnapshot) and event.group == "billing" and event.generation
            }
            if record.offset() == end - 1:
                break
        return found
    finally:
        consumer.close()
