"""Real consumers that hang while alive, on a Kafka 4.1 broker: the finding names them, and says how it ended.

What they leave unread is as old as the clock of its producer says.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from streaming.pipeline.decided_rows import progress_rows
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import QUEUE_PROGRESS
from streaming.tables.writer import Mark
from streaming.views.progress import progress
from streaming.views.reader import Reader
from tests.core_config import core_config
from tests.kit.brokers import Broker
from tests.kit.light_members import start_light_member
from tests.kit.topics import create_topic
from tests.live.collecting import CLUSTER, collecting, run_of_folder
from tests.live.story import partitions, wait_for_commits
from tests.simulation.core_run import rows_of, run_of

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

GROUP, TOPIC = "standing", "stood-in"
_POLL_INTERVAL_S = 45
_FLOOR_S = 8
# A hang shows within the floor, an evaluation, two reads of ends, a commit; and a busy machine.
_HANG_S = 22
CONFIG = core_config(stalled_after_ms=_FLOOR_S * 1_000, stalled_first_ms=_FLOOR_S * 1_000, queue_progress_ms=1_000)


@contextmanager
def _written(broker: Broker) -> Iterator[None]:
    """Append messages to each partition all the time, each with the time by this clock."""
    is_over = threading.Event()

    def write() -> None:
        producer = Producer(broker.client_settings())
        while not is_over.wait(0.1):
            for number in range(4):
                producer.produce(TOPIC, str(time.time() * 1_000).encode(), partition=number)
            producer.poll(0)
        producer.flush(30)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        is_over.set()
        writer.join()


def test_consumers_that_hang_are_named_and_how_it_ended(kafka41: Broker, tmp_path: Path) -> None:
    create_topic(kafka41, TOPIC, 4)
    settings = {"session.timeout.ms": "30000", "max.poll.interval.ms": str(_POLL_INTERVAL_S * 1_000)}
    hangs: list[tuple[str, float, float]] = []
    unread: list[tuple[float, dict[int, float]]] = []
    with ExitStack() as stack:
        stack.enter_context(_written(kafka41))
        stack.enter_context(collecting(kafka41, tmp_path / "events", ends_interval_ms=500))
        a, b = (
            stack.enter_context(start_light_member(kafka41, GROUP, [TOPIC], settings | {"client.id": name}))
            for name in "ab"
        )
        for member in (a, b):
            member.wait_until(lambda member=member: len(member.owned) == 2)
        held = {"a": {number for _, number in a.owned}, "b": {number for _, number in b.owned}}
        wait_for_commits(kafka41, GROUP, partitions(TOPIC, 4))
        time.sleep(3)  # an age is exact where the history has an end that was read before the commit

        # It polls no more, and its heartbeats go on.
        began = time.time()
        a.stop_polling()
        time.sleep(_HANG_S)
        unread.append((time.time() * 1_000, _written_at(kafka41, held["a"])))
        hangs.append(("a", began, time.time()))
        a.poll_again()
        wait_for_commits(kafka41, GROUP, partitions(TOPIC, 4))

        # The whole process is frozen, for less than its session.
        began = time.time()
        b.freeze()
        time.sleep(_HANG_S)
        unread.append((time.time() * 1_000, _written_at(kafka41, held["b"])))
        hangs.append(("b", began, time.time()))
        b.thaw()
        wait_for_commits(kafka41, GROUP, partitions(TOPIC, 4))

        # It polls no more, until it leaves because of that.
        began = time.time()
        a.stop_polling()
        b.wait_until(lambda: len(b.owned) == 4, timeout_s=2 * _POLL_INTERVAL_S)
        hangs.append(("a", began, time.time()))
        time.sleep(2)

    found = [row for row in rows_of(run_of_folder(tmp_path / "events", CONFIG).changes)["findings"] if _is_ours(row)]
    found.sort(key=lambda row: row["opened_at"])
    assert [row["kind"] for row in found] == ["member_stalled"] * 3, [row["message"] for row in found]
    for row, (name, began, ended) in zip(found, hangs, strict=True):
        assert [member["client"].split("@")[0] for member in row["members"]] == [name]
        assert {queue["queue_id"] for queue in row["queues"]} == held[name]
        assert began + _FLOOR_S <= row["opened_at"] / 1_000 <= began + _HANG_S
        assert row["closed_at"] is not None
        assert row["closed_at"] / 1_000 <= ended + _HANG_S
    assert "they move again" in found[0]["message"]
    assert "left by poll timeout" in found[2]["message"]
    for number, (at_ms, written) in enumerate(unread):
        _check_ages(tmp_path / "events", tmp_path / f"tables-{number}", at_ms, written)


def _is_ours(row: dict[str, Any]) -> bool:
    return row["group_id"] == GROUP and row["kind"] in ("queue_stalled", "member_stalled", "group_stalled")


def _written_at(broker: Broker, numbers: Collection[int]) -> dict[int, float]:
    """Return for each of these partitions when its next unread message was written, by its producer's clock."""
    reader = Consumer({**broker.client_settings(), "group.id": GROUP, "enable.auto.commit": False})
    written: dict[int, float] = {}
    try:
        reader.assign(reader.committed([TopicPartition(TOPIC, number) for number in numbers], 60))
        while len(written) < len(numbers):
            message = reader.poll(60)
            assert message is not None
            written.setdefault(message.partition(), float(message.value()))
    finally:
        reader.close()
    return written


def _check_ages(events: Path, tables: Path, at_ms: float, written: Mapping[int, float]) -> None:
    """Compare the ages that ``show group`` gave at that time with the true ones."""
    lines = [line for file in sorted(events.glob("*.jsonl")) for line in file.read_bytes().splitlines()]
    by_time = sorted((json.loads(line)["event_time"], line) for line in lines)
    run = run_of((line for time_ms, line in by_time if time_ms <= at_ms), CONFIG)
    decided = [msgspec.json.encode(row).decode() for row in run.progress]
    DeltaRsTable(tables, QUEUE_PROGRESS).append(
        to_arrow(QUEUE_PROGRESS, [row for body in decided for row in progress_rows(body)]), Mark("progress", 0)
    )
    shown = progress(Reader(tables), {"cluster": CLUSTER, "group_id": GROUP, "state": "stable"}, [])
    # Ages are as of the newest row.
    known_ms = max(row["end_at"] for row in shown)
    ages = {row["queue_id"]: row for row in shown if row["queue_id"] in written}
    for number, clock_ms in written.items():
        age, true_ms = ages[number], known_ms - clock_ms
        assert true_ms > _FLOOR_S * 1_000
        assert age["lag_ms"] == pytest.approx(true_ms, rel=0.1)
        # The producer's clock is read a moment before the broker has the message.
        assert age["lag_min_ms"] <= true_ms <= age["lag_max_ms"] + 1_000
