"""How old unread messages are on real RocketMQ brokers: as old as the clock of their producer says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from streaming.pipeline.decided_rows import progress_rows
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import QUEUE_PROGRESS
from streaming.tables.writer import Mark
from streaming.views.progress import progress
from streaming.views.reader import Reader
from tests.core_config import core_config
from tests.kit import rocketmq_admin as admin
from tests.kit.rocketmq import RocketMq
from tests.kit.rocketmq_members import RocketMqMember, queues_of, wait_until_assigned
from tests.live.rocketmq_story import collecting
from tests.simulation.core_run import run_of

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

GROUP, TOPIC = "behind-in-time", "aged-in"
_EACH_S, _READ_S, _BEHIND_S = 0.1, 4, 15


def test_lag_in_time_is_that_of_the_producers_clock(
    each_rocketmq: RocketMq, new_rocketmq_member: Callable[..., RocketMqMember], tmp_path: Path
) -> None:
    cluster = each_rocketmq
    cluster.create_topic(TOPIC, 1)
    clock: list[float] = []
    is_over = threading.Event()

    def write() -> None:
        while not is_over.wait(_EACH_S):
            clock.append(time.time() * 1_000)
            admin.put_message(cluster.broker.address, TOPIC, 0, b"aged")

    writer = threading.Thread(target=write)
    with collecting(cluster, tmp_path / "events", include_groups=(GROUP,), client_timeout_ms=500) as collected:
        member = new_rocketmq_member(
            cluster, GROUP, [TOPIC], instance="a", settings={"persist_interval_ms": 500}, rebalance_interval_ms=2_000
        )
        wait_until_assigned([member], queues_of(TOPIC, 1))
        writer.start()
        try:
            time.sleep(_READ_S)
            member.freeze()
            frozen = time.monotonic()
            while time.monotonic() < frozen + _BEHIND_S:
                collected.poll()
                time.sleep(0.2)
        finally:
            is_over.set()
            writer.join()
            member.thaw()
        lines = collected.lines()

    run = run_of(lines, core_config(queue_progress_ms=1_000))
    rows = [row for decided in run.progress for row in progress_rows(msgspec.json.encode(decided).decode())]
    DeltaRsTable(tmp_path / "tables", QUEUE_PROGRESS).append(to_arrow(QUEUE_PROGRESS, rows), Mark("progress", 0))
    group = {"cluster": rows[0]["cluster"], "group_id": GROUP, "state": "stable"}
    shown = [row for row in progress(Reader(tmp_path / "tables"), group, []) if row["topic"] == TOPIC]
    assert len(shown) == 1
    committed, known_ms = shown[0]["committed_offset"], shown[0]["end_at"]
    last = next(row for row in reversed(rows) if row["topic"] == TOPIC)
    assert last["written_offset"] == committed - 1
    # The broker stores a message a moment after the producer's clock was read.
    assert last["written_at"] == pytest.approx(clock[committed - 1], abs=500)
    true_ms = known_ms - clock[committed]
    assert true_ms > _BEHIND_S * 1_000 / 2
    assert shown[0]["lag_source"] == "brokers"
    assert shown[0]["lag_ms"] == pytest.approx(true_ms, rel=0.1)
