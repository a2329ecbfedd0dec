"""Bench: from a generation's completion on a real Kafka 4.1 broker to its row in `rebalances`, with the parts.

Groups of librdkafka consumers, in each of which one joins and leaves again and again, beside a job at its default
settings. The completion is the time of the coordinator's own record, the row's time that of its commit. Two phases: on
a quiet cluster, where only the collector's clock moves time on, and on one where other groups commit twice a second.

Parts of the median row: the allowed lateness; the clock, until an event exists that is later than that; the wait for
the batch that reads it; that batch, and in it the commit of the tables.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition
from deltalake import DeltaTable

from bench.latency_bench import commits
from bench.processes import now_ms, seconds_of
from streaming.collectors.kafka.collector import KafkaCollector
from streaming.job import Job
from streaming.machine import logs
from streaming.pipeline.sink import Sink
from streaming.settings.model import load
from tests.kit.brokers import Broker, kafka_41
from tests.kit.topics import create_topic

SECONDS = float(os.environ.get("BENCH_LIVE_SECONDS", "60"))
GROUPS = int(os.environ.get("BENCH_LIVE_GROUPS", "3"))
_GOAL_S = 3.0
_WARM_UP_S = 30.0
_COMMITS_EVERY_S = 0.5
# For how long the guest of a group stays joined, and away: by chance, or the next change would come just when the
# lateness has passed.
_STAYS_S = ((3.0, 5.0), (5.0, 7.0))


def main() -> None:
    """Print the figures."""
    logs.configure("warning", "auto")
    work = Path(tempfile.mkdtemp(prefix="rebalance-bench-"))
    try:
        with kafka_41(work / "broker") as broker:
            create_topic(broker, "orders", 4)
            _measure(broker, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _measure(broker: Broker, work: Path) -> None:
    settings = load(
        overrides={
            "kafka.bootstrap_servers": broker.bootstrap,
            "kafka.cluster": "bench",
            "job.tables": work / "tables",
            "job.checkpoint": work / "checkpoint",
        }
    )
    lateness_ms = settings.time.allowed_lateness_ms
    warm, stop = threading.Event(), threading.Event()
    job = Job(settings)
    job.when_running(warm.set)
    runner = threading.Thread(target=job.run, name="job")
    members = [threading.Thread(target=_play, args=(broker, number, stop)) for number in range(GROUPS)]
    with _clocks() as clocks, seconds_of(Sink, "_write") as writing:
        runner.start()
        try:
            while not warm.wait(1):
                if not runner.is_alive():
                    raise RuntimeError("the job did not start")
            for member in members:
                member.start()
            time.sleep(_WARM_UP_S)
            phases = {"quiet": _phase(lambda: None)}
            committer = Consumer({**broker.client_settings(), "group.id": "commits", "enable.auto.commit": False})
            places = [TopicPartition("orders", number, 0) for number in range(4)]
            phases["with commits"] = _phase(lambda: committer.commit(offsets=places, asynchronous=False))
            committer.close()
            time.sleep(2 * lateness_ms / 1_000 + 5)
        finally:
            stop.set()
            for member in members:
                if member.ident is not None:
                    member.join()
            job.stop.request()
            runner.join()
    for name, (since, until) in phases.items():
        _report(name, _rows(work, since, until), clocks, writing, lateness_ms)
    print(
        "what may be traded for less: time.allowed_lateness_ms (the lateness, itself: brokers' clocks and replication),"
        " job.trigger_interval_ms (the wait for a batch; more computing); by admin calls also kafka.poll_interval_ms"
        " (when a change is noticed; more requests)"
    )


def _phase(action: Callable[[], object]) -> tuple[int, int]:
    """Do something again and again for a while; return from when until when."""
    since = now_ms()
    while now_ms() - since < SECONDS * 1_000:
        action()
        time.sleep(_COMMITS_EVERY_S)
    return since, now_ms()


def _play(broker: Broker, number: int, stop: threading.Event) -> None:
    """Keep one member in a group, and let another one join it and leave it."""
    settings = {
        **broker.client_settings(),
        "group.id": f"group-{number}",
        "enable.auto.commit": False,
        "heartbeat.interval.ms": 500,
        "session.timeout.ms": 10_000,
    }
    host, guest = Consumer(settings), None
    host.subscribe(["orders"])
    joined_s, away_s = _STAYS_S
    chance = random.Random(number)
    changes_at = time.monotonic() + chance.uniform(*away_s)
    while not stop.is_set():
        host.poll(0.05)
        if guest is not None:
            guest.poll(0.05)
        if time.monotonic() < changes_at:
            continue
        if guest is None:
            guest = Consumer(settings)
            guest.subscribe(["orders"])
            changes_at = time.monotonic() + chance.uniform(*joined_s)
        else:
            guest.close()
            guest = None
            changes_at = time.monotonic() + chance.uniform(*away_s)
    for consumer in filter(None, (guest, host)):
        try:
            consumer.close()
        except KafkaException as error:
            print(f"a member could not leave: {error}")


@contextmanager
def _clocks() -> Iterator[list[tuple[int, int]]]:
    """Collect the clocks that the collector writes: event time, and when it was written."""
    written: list[tuple[int, int]] = []
    real = KafkaCollector._write_allowed_clock

    def noted(collector: KafkaCollector) -> bool:
        wrote = real(collector)
        clock_ms = collector.status().clock_ms
        if wrote and clock_ms is not None:
            written.append((clock_ms, now_ms()))
        return wrote

    KafkaCollector._write_allowed_clock = noted  # type: ignore[method-assign,assignment]
    try:
        yield written
    finally:
        KafkaCollector._write_allowed_clock = real  # type: ignore[method-assign]


def _rows(work: Path, since: int, until: int) -> list[tuple[int, int]]:
    """Return of each rebalance in that time: when it was completed, and when its row was committed (epoch ms)."""
    committed = commits(work / "tables" / "rebalances" / "_delta_log")
    changes = DeltaTable(str(work / "tables" / "changes")).to_pyarrow_table(
        columns=["group_id", "kind", "batch", "event_time"]
    )
    found = []
    for row in changes.to_pylist():
        at_ms = int(row["event_time"].timestamp() * 1_000)
        if row["kind"] == "rebalanced" and row["group_id"].startswith("group-") and since <= at_ms < until:
            found.append((at_ms, committed[row["batch"]]))
    return found


def _report(
    phase: str,
    rows: list[tuple[int, int]],
    clocks: list[tuple[int, int]],
    writing: list[tuple[float, float]],
    lateness_ms: int,
) -> None:
    if len(rows) < 2:
        raise RuntimeError(f"{phase}: {len(rows)} rebalances have rows")
    whole = [(row_ms - at_ms) / 1_000 for at_ms, row_ms in rows]
    p99 = statistics.quantiles(whole, n=100)[98]
    print(
        f"{phase}: from completion to its row p50 {statistics.median(whole):.2f} s (goal {_GOAL_S}), p99 {p99:.2f} s,"
        f" of {len(rows)} generations"
    )
    parts: dict[str, list[float]] = {"clock": [], "source and batch": [], "commit": []}
    for at_ms, row_ms in rows:
        due = [written for clock_ms, written in clocks if clock_ms > at_ms + lateness_ms and written <= row_ms]
        # Where a record moved time on, there is no clock before the row: the record came with its own time.
        ready = min(due, default=at_ms + lateness_ms)
        took = [(begun, seconds) for begun, seconds in writing if begun <= row_ms + 50]
        commit_ms = took[-1][1] * 1_000 if took else 0.0
        parts["clock"].append(max(0.0, ready - at_ms - lateness_ms))
        parts["commit"].append(commit_ms)
        parts["source and batch"].append(row_ms - ready - commit_ms)
    figures = [("lateness", float(lateness_ms)), *((name, statistics.median(each)) for name, each in parts.items())]
    print(f"{phase}, median parts: " + ", ".join(f"{name} {value:.0f} ms" for name, value in figures))
