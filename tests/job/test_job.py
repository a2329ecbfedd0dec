"""The whole job on real Spark gives the same tables, however its input is cut."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from streaming.spark.checkpoint import Checkpoint
from streaming.tables.schema import REBALANCES, REJECTED_EVENTS, TABLES
from tests.job.commands import Ended, ManyRuns, once
from tests.job.recordings import ALLOWED_LATENESS_MS, Line, cut, disordered, write_files
from tests.job.table_bags import bags_of, differences, repeated_keys, rows_of
from tests.kit.brokers import Broker
from tests.kit.topics import create_topic, send

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def test_a_recording_fills_every_table(whole: Path) -> None:
    # Nothing was wrong with its lines, so nothing was rejected.
    assert [name for name in TABLES if not rows_of(whole, name).num_rows] == [REJECTED_EVENTS.name]
    assert repeated_keys(whole) == []
    annotations = {row["kind"]: row for row in rows_of(whole, "annotations").to_pylist()}
    assert (annotations["deploy"]["annotation_id"], annotations["deploy"]["url"]) == ("r42", "https://ci.example/42")
    assert annotations["deploy"]["began_at"] < annotations["deploy"]["ended_at"] == annotations["deploy"]["written_at"]
    # What is annotated of a cluster, however far ahead, makes it no cluster that the tables know.
    assert annotations["drain"]["cluster"] == "unheard of"
    assert "unheard of" not in rows_of(whole, "groups")["cluster"].to_pylist()


def test_the_same_events_in_other_files_batches_shards_and_order_give_the_same_tables(
    whole: Path, lines: list[Line], run_once: Callable[..., Ended], runs: ManyRuns, tmp_path: Path
) -> None:
    write_files(tmp_path / "events", cut(disordered(lines, seed=1), 7))
    ended = run_once(tmp_path / "events", tmp_path, "--flush", "--shards", "3", "--max-files-per-batch", "2")
    assert ended.exit_code == 0, ended.stderr[-3000:]
    assert len(list((tmp_path / "checkpoint/query/commits").glob("[0-9]*"))) == 5  # 7 files, and the flush
    assert differences(bags_of(whole), bags_of(tmp_path / "tables")) == []
    for name in TABLES:
        assert rows_of(tmp_path / "tables", name).schema == rows_of(whole, name).schema
    # The one with nested columns, as Spark reads it too.
    read = runs.call("tests.job.spark_reads:assert_same_rows", tmp_path / "tables", whole, REBALANCES.name)
    assert read.exit_code == 0, read.stderr[-3000:]


def test_a_folder_without_events_is_read_to_its_end(run_once: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    ended = run_once(tmp_path / "events", tmp_path, "--flush")
    assert ended.exit_code == 0, ended.stderr
    assert "nothing was read, now or before" in ended.stderr
    assert str(tmp_path / "events") in ended.stderr


def test_a_run_without_flush_leaves_newer_events_waiting_and_the_next_run_decides_them(
    whole: Path, lines: list[Line], run_once: Callable[..., Ended], tmp_path: Path
) -> None:
    delivered = disordered(lines, seed=2)
    texts = cut(delivered, 4)
    newest = max(delivery.event_time for delivery in delivered[: sum(text.count(b"\n") for text in texts[:2])])
    write_files(tmp_path / "events", texts[:2])
    assert run_once(tmp_path / "events", tmp_path).exit_code == 0
    decided = bags_of(tmp_path / "tables")["rebalances"]
    at_first = _event_times(tmp_path / "tables")
    assert max(at_first) < newest - ALLOWED_LATENESS_MS
    later = [time for time in _event_times(whole) if time <= newest]
    assert len(later) > len(at_first), "nothing was waiting: the test shows nothing"
    write_files(tmp_path / "events", texts[2:], first=2)
    assert run_once(tmp_path / "events", tmp_path, "--flush").exit_code == 0
    assert differences(bags_of(whole), bags_of(tmp_path / "tables")) == []
    assert decided <= bags_of(tmp_path / "tables")["rebalances"]


def _event_times(tables: Path) -> list[int]:
    return [round(row.timestamp() * 1000) for row in rows_of(tables, "rebalances")["event_time"].to_pylist()]


def test_garbage_of_every_kind_is_kept_and_stops_nothing(
    whole: Path, lines: list[Line], runs: ManyRuns, config: Path, tmp_path: Path
) -> None:
    texts = cut(disordered(lines, seed=3), 3)
    chance = random.Random(3)
    garbage = [
        b"no JSON at all",
        b'{"type": "heartbeat"}',
        b'{"schema_version": 1, "type": "clock"',
        b"[" * 50_000,
        b"x" * 17_000_000,  # longer than an event may be
        b"\xff\xfe\x00\x01",
        *(bytes(byte for byte in chance.randbytes(200) if byte not in b"\n") for _ in range(50)),
    ]
    write_files(tmp_path / "events", [garbage[0] + b"\n" + texts[0], b"\n".join(garbage[1:]), *texts[1:], b"", b"gone"])
    (tmp_path / "events" / "a folder.jsonl").mkdir()
    (tmp_path / "events" / "half.jsonl.tmp").write_bytes(b"not yet")
    (tmp_path / "events" / "nowhere.jsonl").symlink_to(tmp_path / "nowhere")
    runs.start(once(tmp_path / "events", tmp_path, config, ["--flush", "--max-files-per-batch", "1"]))
    first_batch = tmp_path / "checkpoint/query/commits/0"
    runs.wait_until(first_batch.exists, "the first batch is done")
    (tmp_path / "events" / "000005.jsonl").unlink()
    ended = runs.wait()
    assert ended.exit_code == 0, ended.stderr[-3000:]
    kept = rows_of(tmp_path / "tables", "rejected_events").to_pylist()
    assert Counter(row["raw_sha256"] for row in kept) == Counter(sha256(raw).hexdigest() for raw in garbage)
    assert all(row["raw_length"] > 65_536 or row["raw_length"] >= len(row["raw"].encode()) // 4 for row in kept)
    expected = bags_of(whole) | {"rejected_events": Counter()}
    assert differences(expected, bags_of(tmp_path / "tables") | {"rejected_events": Counter()}) == []


@pytest.mark.broker
def test_events_from_a_topic_give_the_tables_that_events_from_a_folder_give(
    whole: Path, lines: list[Line], runs: ManyRuns, config: Path, kafka41: Broker, tmp_path: Path
) -> None:
    create_topic(kafka41, "rebalance-events", 3)
    delivered = disordered(lines, seed=4)
    not_text = b"\x00\xff is no event"
    for partition in range(3):
        send(kafka41, "rebalance-events", [delivery.text for delivery in delivered[partition::3]], partition)
    send(kafka41, "rebalance-events", [not_text], 2)
    topic = f"{kafka41.bootstrap}/rebalance-events"
    folders = ["--tables", tmp_path / "tables", "--checkpoint", tmp_path / "checkpoint", "--config", config]
    ended = runs.run(["run", "--kafka-events", topic, *folders, "--once", "--flush"])
    assert ended.exit_code == 0, ended.stderr[-3000:]
    rejected = rows_of(tmp_path / "tables", "rejected_events").to_pylist()
    last = len(delivered[2::3])
    assert [(row["source"], row["position"]) for row in rejected] == [("topic", f"rebalance-events-2:{last}")]
    assert rejected[0]["raw_sha256"] == sha256(not_text).hexdigest()
    expected = bags_of(whole) | {"rejected_events": Counter()}
    assert differences(expected, bags_of(tmp_path / "tables") | {"rejected_events": Counter()}) == []


def test_a_checkpoint_refuses_other_sources_and_another_number_of_shards(
    runs: ManyRuns, config: Path, tmp_path: Path
) -> None:
    identity = Checkpoint(tmp_path / "checkpoint").open(
        shards=4,
        shuffle_partitions=2,
        sources=["control", *(f"{kind}:{tmp_path / 'events'}" for kind in ("events", "files"))],
    )
    (tmp_path / "events").mkdir()
    (tmp_path / "others").mkdir()
    other_sources = runs.run(once(tmp_path / "others", tmp_path, config))
    assert other_sources.exit_code == 2
    assert str(tmp_path / "others") in other_sources.stderr
    assert "--checkpoint" in other_sources.stderr
    other_shards = runs.run(once(tmp_path / "events", tmp_path, config, ["--shards", "5"]))
    assert other_shards.exit_code == 2
    assert "--shards 4" in other_shards.stderr
    assert not (tmp_path / "tables").exists()
    assert Checkpoint(tmp_path / "checkpoint").read() == identity


def test_every_mistake_of_usage_is_named_at_once(runs: ManyRuns, tmp_path: Path) -> None:
    mistaken = tmp_path / "mistaken.toml"
    mistaken.write_text('[time]\nallowed_lateness_ms = -1\nsilence = "perhaps"\n[jop]\ntables = "t"\n')
    nowhere = tmp_path / "nowhere"
    settings = ["time.allowed_lateness_ms", "time.silence", "jop", "state.shards"]
    usage = ["--flush needs --once", f"--events {nowhere}"]
    values = {
        ("--config", mistaken, "--shards", "0", "--flush", "--events", nowhere): [*settings, *usage],
        ("--shards", "0", "--flush"): ["state.shards", "nothing to read", "--flush needs --once"],
        ("--allowed-lateness", "2x", "--kafka-option", "a", "--kafka", "127.0.0.1:1", "--events", nowhere): [
            "--allowed-lateness: '2x'",
            "--kafka-option 'a'",
            "--kafka needs --cluster",
            f"--events {nowhere}",
        ],
    }
    for arguments, mistakes in values.items():
        ended = runs.run(["run", *arguments])
        assert ended.exit_code == 2, arguments
        assert [mistake for mistake in mistakes if mistake not in ended.stderr] == [], ended.stderr
        assert "Traceback" not in ended.stderr
