"""The sink under Spark writes every batch once, in order, and nothing for an empty batch."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pandas as pd
import pytest
from chispa import assert_df_equality
from deltalake import DeltaTable

from streaming.pipeline import sink
from streaming.pipeline.sink import Sink
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.engine import DeltaSparkEngine
from streaming.tables.materializer import Materializer
from streaming.tables.schema import TABLES
from tests.streaming.tables.journals import T0, Journal
from tests.streaming.tables.test_materializer import Crash, content, some_changes
from udfs.model import journal
from udfs.model.queue_progress import QueueProgress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.state import GroupState

pytestmark = pytest.mark.spark
DECIDED = "kind string, cluster string, body string"
SINK_TABLES = ("rebalances", "changes", "rejected_events")
# Columns that may differ between two runs over the same input.
NOT_COMPARED = ["batch"]


def a_rebalance(number: int) -> journal.Rebalance:
    return journal.Rebalance(
        rebalance_id=f"r{number}",
        cluster="c1",
        system="kafka",
        group_id="g1",
        generation=number,
        generation_source="counted",
        event_time=T0 + number,
        detected_at=T0 + 5,
        trigger="member_joined",
        triggers=[journal.Trigger(kind="member_joined", member_id="a", detail="ü\u2028x", event_id="e")],
        strategy="kafka.range",
        agrees=None,
        pause_ms=3,
    )


def a_rejected(number: int) -> journal.Rejected:
    return journal.Rejected(
        source="folder",
        position=f"f:{number}",
        raw='{"broken\t',
        reason="not_json",
        detail="d",
        seen_at=T0,
        raw_length=9,
        raw_sha256="00",
    )


def a_progress(number: int) -> QueueProgress:
    queues: list[tuple[int, int | None, int | None, int | None, int | None, int | None]] = [
        (0, 5, T0, 9, T0, 2),
        (1, None, None, 3, T0, None),
    ]
    return QueueProgress(
        cluster="c1", group_id="g1", topic="t", broker=None, span_start=T0 + 60_000 * number, queues=queues
    )


def decided(
    spark: SparkSession,
    *,
    rebalances: Sequence[journal.Rebalance] = (),
    changes: Sequence[journal.Change] = (),
    rejected: Sequence[journal.Rejected] = (),
    progress: Sequence[QueueProgress] = (),
) -> DataFrame:
    of_kind = {"rejected": rejected, "change": changes, "rebalance": rebalances, "progress": progress}
    rows = [(kind, "c1", msgspec.json.encode(value).decode()) for kind, values in of_kind.items() for value in values]
    return spark.createDataFrame(rows, DECIDED).repartition(2)


def table(spark: SparkSession, root: Path, name: str) -> DataFrame:
    return spark.read.format("delta").load(str(root / name)).drop(*NOT_COMPARED)


def everything(spark: SparkSession) -> DataFrame:
    return decided(
        spark,
        rebalances=[a_rebalance(number) for number in range(1, 4)],
        changes=some_changes(),
        rejected=[a_rejected(number) for number in range(3)],
        progress=[a_progress(number) for number in range(2)],
    )


def counts(root: Path) -> dict[str, int]:
    return {name: DeltaTable(str(root / name)).to_pyarrow_table().num_rows for name in TABLES}


def versions(root: Path) -> dict[str, int]:
    return {name: DeltaTable(str(root / name)).version() for name in TABLES}


def test_a_batch_that_comes_again_adds_nothing(spark: SparkSession, tmp_path: Path) -> None:
    sink = Sink(tmp_path, "app", Materializer(tmp_path, 0))
    sink(everything(spark), 0)
    first, first_versions = counts(tmp_path), versions(tmp_path)
    assert first["rebalances"] == 3
    assert first["changes"] == len(some_changes())
    assert first["rejected_events"] == 3
    assert first["queue_progress"] == 4
    assert all(first.values())
    Sink(tmp_path, "app", Materializer(tmp_path, 0))(everything(spark), 0)
    assert (counts(tmp_path), versions(tmp_path)) == (first, first_versions)


def test_a_batch_without_decisions_commits_nothing(spark: SparkSession, tmp_path: Path) -> None:
    sink = Sink(tmp_path, "app", Materializer(tmp_path, 0))
    before = versions(tmp_path)
    sink(decided(spark), 0)
    assert versions(tmp_path) == before == dict.fromkeys(TABLES, 0)


def test_a_table_with_nothing_new_gets_no_commit(spark: SparkSession, tmp_path: Path) -> None:
    Sink(tmp_path, "app", Materializer(tmp_path, 0))(decided(spark, rejected=[a_rejected(0)]), 0)
    assert {name for name, version in versions(tmp_path).items() if version} == {"rejected_events"}


def test_few_rows_and_many_rows_give_equal_tables(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Sink(tmp_path / "few", "app", Materializer(tmp_path / "few", 0))(everything(spark), 0)
    monkeypatch.setattr(sink, "SLICE_BYTES", 1_000)  # several
    Sink(tmp_path / "many", "app", Materializer(tmp_path / "many", 0), large_above=0)(everything(spark), 0)
    Sink(tmp_path / "many", "app", Materializer(tmp_path / "many", 0), large_above=0)(everything(spark), 0)
    monkeypatch.setattr(sink, "DRIVER_REJECTED", 0)
    Sink(tmp_path / "rejected", "app", Materializer(tmp_path / "rejected", 0))(everything(spark), 0)
    for name in TABLES:
        few = content(tmp_path / "few", name)
        assert few
        for other in ("many", "rejected"):
            assert content(tmp_path / other, name) == few, (name, other)


def test_tables_that_executors_write_are_equal_and_have_a_batch_once(spark: SparkSession, tmp_path: Path) -> None:
    Sink(tmp_path / "driver", "app", Materializer(tmp_path / "driver", 0))(everything(spark), 0)
    root, engine = tmp_path / "executors", DeltaSparkEngine(spark)
    for _ in range(2):
        Sink(root, "app", Materializer(root, 0, engine=engine), engine=engine)(everything(spark), 0)
    Sink(root, "app", engine=engine)(decided(spark), 1)
    for name in TABLES:
        assert content(root, name) == content(tmp_path / "driver", name), name


def test_one_journal_cut_into_batches_in_two_ways_gives_equal_tables(spark: SparkSession, tmp_path: Path) -> None:
    changes = some_changes()
    for way, step in (("one", len(changes)), ("many", 11)):
        sink = Sink(tmp_path / way, "app", Materializer(tmp_path / way, 0))
        for batch, begin in enumerate(range(0, len(changes), step)):
            rebalances = [a_rebalance(number) for number in range(begin, min(begin + step, len(changes)))]
            sink(decided(spark, rebalances=rebalances, changes=changes[begin : begin + step]), batch)
    for name in TABLES.keys() - {"changes"}:
        assert content(tmp_path / "one", name) == content(tmp_path / "many", name), name
    for name in ("changes", "rebalances"):
        whole, pieces = (table(spark, tmp_path / way, name) for way in ("one", "many"))
        assert_df_equality(whole, pieces, ignore_row_order=True, ignore_nullable=True)


def test_a_crash_between_two_commits_is_healed_by_the_batch_that_comes_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Sink(tmp_path / "quiet", "app", Materializer(tmp_path / "quiet", 0))(everything(spark), 0)
    quiet = {name: content(tmp_path / "quiet", name) for name in TABLES}
    commit = DeltaRsTable._write
    written: list[list[str]] = []
    # The sink's own tables, the first that follows them, and the last; between the others in test_materializer.py.
    places = (*range(len(SINK_TABLES) + 2), len(TABLES) - 1)
    for survived in places:
        root = tmp_path / f"crash-{survived}"
        order: list[str] = []

        def crashing(files: DeltaRsTable, *args: object, **more: object) -> bool:
            if len(order) == survived:  # noqa: B023 - called within the round
                raise Crash
            order.append(files.table.name)  # noqa: B023
            return commit(files, *args, **more)

        with monkeypatch.context() as patch:
            patch.setattr(DeltaRsTable, "_write", crashing)
            with pytest.raises(Crash):
                Sink(root, "app", Materializer(root, 0))(everything(spark), 0)
        written.append(order)
        following = Materializer(root, 0)
        following.start()
        Sink(root, "app", following)(everything(spark), 0)
        assert {name: content(root, name) for name in TABLES} == quiet
    # Each of these places was visited, and the journal came first.
    assert written[-1][:2] == ["rebalances", "changes"]
    assert [len(order) for order in written] == list(places)


@pytest.mark.parametrize(("large_above", "first"), [(0, 2_000), (1_000, 2_000), (1_000, 2)])
def test_a_batch_is_reported_in_figures_once_it_is_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large_above: int, first: int
) -> None:
    reported: list[sink.Decided] = []
    monkeypatch.setattr(sink, "FIRST_ROWS", first)
    monkeypatch.setattr(sink, "NEWEST_REBALANCES", 2)
    Sink(tmp_path, "app", report=reported.append, large_above=large_above)(everything(spark), 0)
    (batch,) = reported
    assert (batch.rebalances, batch.rejected) == (3, 3)
    assert [row["rebalance_id"] for row in batch.newest] == ["r3", "r2"]
    assert [row["triggers"][0]["detail"] for row in batch.newest] == ["ü\u2028x"] * 2
    assert batch.changed_ms == {"c1": max(change.event_time for change in some_changes())}


def test_a_streaming_batch_is_computed_once_however_many_tables_it_fills(spark: SparkSession, tmp_path: Path) -> None:
    events, called = tmp_path / "events", tmp_path / "called"
    events.mkdir()
    called.mkdir()
    (events / "one.json").write_text('{"kind": "rebalance"}\n{"kind": "change"}\n{"kind": "rejected"}\n')
    bodies = {
        "rebalance": msgspec.json.encode(a_rebalance(1)).decode(),
        "change": msgspec.json.encode(some_changes()[0]).decode(),
        "rejected": msgspec.json.encode(a_rejected(1)).decode(),
    }

    def decide(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        for frame in frames:
            (called / uuid.uuid4().hex).touch()
            state.update((b"x",))
            yield pd.DataFrame(
                {"kind": frame["kind"], "cluster": "c1", "body": [bodies[kind] for kind in frame["kind"]]}
            )

    source = spark.readStream.schema("kind string").json(str(events))
    decided = source.groupBy("kind").applyInPandasWithState(decide, DECIDED, "seen binary", "append", "NoTimeout")
    writer = decided.writeStream.outputMode("append").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.foreachBatch(Sink(tmp_path / "tables", "app")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert len(list(called.iterdir())) == 3
    written = {name: DeltaTable(str(tmp_path / "tables" / name)).version() for name in TABLES if name in SINK_TABLES}
    assert written == dict.fromkeys(SINK_TABLES, 1)


def test_the_change_feed_is_what_spark_sees(spark: SparkSession, tmp_path: Path) -> None:
    history = Journal()
    sink = Sink(tmp_path, "app", Materializer(tmp_path, 0))
    for batch in range(3):
        body = journal.GroupChanged(system="kafka", state="stable", members=batch)
        sink(decided(spark, changes=[history.change(batch, body)]), batch)
    detail = spark.sql(f"describe detail delta.`{tmp_path / 'groups'}`").collect()[0]
    assert detail["clusteringColumns"] == []
    assert detail["minReaderVersion"] == 1
    assert detail["properties"]["delta.enableChangeDataFeed"] == "true"
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    kinds = feed.load(str(tmp_path / "groups")).groupBy("_change_type").count().collect()
    assert {row["_change_type"]: row["count"] for row in kinds} == {
        "insert": 1,
        "update_preimage": 2,
        "update_postimage": 2,
    }


@pytest.mark.parametrize("large_above", [20_000, 0])
def test_a_batch_that_left_something_undone_requests_another_and_commits_nothing_for_it(
    spark: SparkSession, tmp_path: Path, large_above: int
) -> None:
    requests: list[list[str]] = []
    sink = Sink(tmp_path, "app", large_above=large_above, resume=lambda clusters: requests.append(list(clusters)))
    left = [journal.Unfinished(cluster=cluster, groups=1) for cluster in ("c2", "c1", "c2")]
    rows = [("unfinished", control.cluster, msgspec.json.encode(control).decode()) for control in left]
    frame = spark.createDataFrame(rows, DECIDED).repartition(2)
    before = {name: DeltaTable(str(tmp_path / name)).version() for name in SINK_TABLES}
    sink(frame, 0)
    sink(everything(spark), 1)
    sink(decided(spark), 2)
    assert requests == [["c1", "c2"]]
    assert {name: DeltaTable(str(tmp_path / name)).version() - before[name] for name in SINK_TABLES} == dict.fromkeys(
        SINK_TABLES, 1
    )


@pytest.mark.parametrize("large_above", [20_000, 0])
def test_clusters_that_began_are_named_once_and_nothing_is_committed_for_them(
    spark: SparkSession, tmp_path: Path, large_above: int
) -> None:
    begun: list[list[str]] = []
    sink = Sink(tmp_path, "app", large_above=large_above, begun=lambda clusters: begun.append(list(clusters)))
    bodies = [msgspec.json.encode(journal.ClusterBegun(cluster=cluster)).decode() for cluster in ("c2", "c1", "c2")]
    before = {name: DeltaTable(str(tmp_path / name)).version() for name in SINK_TABLES}
    sink(spark.createDataFrame([("begun", "c", body) for body in bodies], DECIDED).repartition(2), 0)
    assert len(begun) == 1
    assert {name: DeltaTable(str(tmp_path / name)).version() for name in SINK_TABLES} == before
