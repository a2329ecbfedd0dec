"""The whole job over a `__consumer_offsets` that its broker has compacted: whole generations are no longer there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.collectors.kafka.metadata_client import OFFSETS_TOPIC
from tests.job.commands import ManyRuns
from tests.kit.brokers import kafka_41
from tests.kit.members import Member, wait_until_assigned
from tests.kit.topics import compact, create_topic
from tests.live.job import running_job
from tests.live.story import partitions

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]


def test_generations_that_were_compacted_away_leave_a_gap_and_the_rest_is_read(
    new_member: Callable[..., Member], runs: ManyRuns, tmp_path: Path
) -> None:
    with kafka_41(tmp_path / "broker", {"log.cleaner.backoff.ms": "200"}) as broker:
        create_topic(broker, "orders", 2)
        orders = partitions("orders", 2)
        first = new_member(broker, "billing", ["orders"], client_id="a", commit_interval_ms=100)
        wait_until_assigned([first], orders)
        second = new_member(broker, "billing", ["orders"], client_id="b")
        wait_until_assigned([first, second], orders)
        second.stop()
        wait_until_assigned([first], orders)
        compact(broker, OFFSETS_TOPIC)  # of three generations the last one is left, behind gaps in the offsets
        with running_job(runs, broker, tmp_path / "job") as job:
            job.wait_for_generation("billing", 3)
            third = new_member(broker, "billing", ["orders"], client_id="c")
            generation = wait_until_assigned([first, third], orders)
            assert generation is not None
            job.wait_for_generation("billing", generation)
            assert job.stop() == 0
        rows = job.generations("billing")
        assert min(rows) == 3
        assert [cause["detail"] for cause in rows[3]["triggers"] if cause["kind"] == "group_created"] == ["first seen"]
        assert (rows[3]["generations_missed"], job.agrees(rows[3])) == (None, True)
        assert not [row for row in job.rows("findings") if row["kind"] == "events_lost"]
