"""The sink under Spark: every batch once, in order, and nothing for nothing."""

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

from streaming import sink as sinks
from streaming.delta_files import DeltaFiles
from streaming.materialise import Materialiser
from streaming.sink import Sink
from streaming.tables import TABLES, Row
from tests.streaming.journals import T0, Journal
from tests.streaming.test_materialise import Crash, content, some_changes
from udfs import journal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.state import GroupState

pytestmark = pytest.mark.spark
DECIDED = "kind string, cluster string, body string"
SINK_TABLES = ("rebalances", "changes", "rejected_events")
# What may differ between two runs over the same input.
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


def decided(
    spark: SparkSession,
    *,
    rebalances: Sequence[journal.Rebalance] = (),
    changes: Sequence[journal.Change] = (),
    rejected: Sequence[journal.Rejected] = (),
) -> DataFrame:
    rows = [
        (kind, "c1", msgspec.json.encode(value).decode())
        for kind, values in (("rejected", rejected), ("change", changes), ("rebalance", rebalances))
        for value in values
    ]
    return spark.createDataFrame(rows, DECIDED).repartition(2)


def table(spark: SparkSession, root: Path, name: str) -> DataFrame:
    return spark.read.format("delta").load(str(root / name)).drop(*NOT_COMPARED)


def everything(spark: SparkSession) -> DataFrame:
    return decided(
        spark,
        rebalances=[a_rebalance(number) for number in range(1, 4)],
        changes=some_changes(),
        rejected=[a_rejected(number) for number in range(3)],
    )


def counts(root: Path) -> dict[str, int]:
    return {name: DeltaTable(str(root / name)).to_pyarrow_table().num_rows for name in TABLES}


def versions(root: Path) -> dict[str, int]:
    return {name: DeltaTable(str(root / name)).version() for name in TABLES}


def test_a_batch_that_comes_again_adds_nothing(spark: SparkSession, tmp_path: Path) -> None:
    sink = Sink(tmp_path, "app", Materialiser(tmp_path, 0))
    sink(everything(spark), 0)
    first, first_versions = counts(tmp_path), versions(tmp_path)
    assert first["rebalances"] == 3
    assert first["changes"] == len(some_changes())
    assert first["rejected_events"] == 3
    assert all(first.values())
    Sink(tmp_path, "app", Materialiser(tmp_path, 0))(everything(spark), 0)
    assert (counts(tmp_path), versions(tmp_path)) == (first, first_versions)


def test_a_batch_without_decisions_commits_nothing(spark: SparkSession, tmp_path: Path) -> None:
    sink = Sink(tmp_path, "app", Materialiser(tmp_path, 0))
    before = versions(tmp_path)
    sink(decided(spark), 0)
    assert versions(tmp_path) == before == dict.fromkeys(TABLES, 0)


def test_a_table_with_nothing_new_gets_no_commit(spark: SparkSession, tmp_path: Path) -> None:
    Sink(tmp_path, "app", Materialiser(tmp_path, 0))(decided(spark, rejected=[a_rejected(0)]), 0)
    assert {name for name, version in versions(tmp_path).items() if version} == {"rejected_events"}


def test_few_rows_and_many_rows_give_equal_tables(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Sink(tmp_path / "few", "app", Materialiser(tmp_path / "few", 0))(everything(spark), 0)
    Sink(tmp_path / "many", "app", Materialiser(tmp_path / "many", 0), large_above=0)(everything(spark), 0)
    Sink(tmp_path / "many", "app", Materialiser(tmp_path / "many", 0), large_above=0)(everything(spark), 0)
    monkeypatch.setattr(sinks, "DRIVER_REJECTED", 0)
    Sink(tmp_path / "rejected", "app", Materialiser(tmp_path / "rejected", 0))(everything(spark), 0)
    for name in TABLES:
        few = content(tmp_path / "few", name)
        assert few
        for other in ("many", "rejected"):
            assert content(tmp_path / other, name) == few, (name, other)


def test_one_journal_cut_into_batches_in_two_ways_gives_equal_tables(spark: SparkSession, tmp_path: Path) -> None:
    changes = some_changes()
    for way, step in (("one", len(changes)), ("many", 11)):
        sink = Sink(tmp_path / way, "app", Materialiser(tmp_path / way, 0))
        for batch, begin in enumerate(range(0, len(changes), step)):
            rebalances = [a_rebalance(number) for number in range(begin, min(begin + step, len(changes)))]
            sink(decided(spark, rebalances=rebalances, changes=changes[begin : begin + step]), batch)
    for name in TABLES:
        assert_df_equality(
            table(spark, tmp_path / "one", name),
            table(spark, tmp_path / "many", name),
            ignore_row_order=True,
            ignore_nullable=True,
        )


def test_a_crash_between_any_two_commits_is_healed_by_the_batch_that_comes_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Sink(tmp_path / "quiet", "app", Materialiser(tmp_path / "quiet", 0))(everything(spark), 0)
    quiet = {name: content(tmp_path / "quiet", name) for name in TABLES}
    commit = DeltaFiles._commit
    written: list[list[str]] = []
    for survived in range(len(TABLES)):
        root = tmp_path / f"crash-{survived}"
        order: list[str] = []

        def crashing(files: DeltaFiles, *args: object, **more: object) -> bool:
            if len(order) == survived:  # noqa: B023 - called within the round
                raise Crash
            order.append(files.table.name)  # noqa: B023
            return commit(files, *args, **more)

        with monkeypatch.context() as patch:
            patch.setattr(DeltaFiles, "_commit", crashing)
            with pytest.raises(Crash):
                Sink(root, "app", Materialiser(root, 0))(everything(spark), 0)
        written.append(order)
        following = Materialiser(root, 0)
        following.start()
        Sink(root, "app", following)(everything(spark), 0)
        assert {name: content(root, name) for name in TABLES} == quiet
    # Every place between two commits was visited, and rebalances came first.
    assert written[-1][:3] == ["rebalances", "changes", "rejected_events"]
    assert [len(order) for order in written] == list(range(len(TABLES)))


@pytest.mark.parametrize("large_above", [0, 1_000])
def test_whoever_watches_hears_what_was_written(spark: SparkSession, tmp_path: Path, large_above: int) -> None:
    heard: list[tuple[list[str], set[str], int]] = []

    def tell(rebalances: Sequence[Row], changes: Sequence[Row], rejected: int) -> None:
        ids = [row["rebalance_id"] for row in rebalances]
        heard.append((sorted(ids), {change["kind"] for change in changes}, rejected))

    Sink(tmp_path, "app", tell=tell, large_above=large_above)(everything(spark), 0)
    assert sorted(name for ids, _, _ in heard for name in ids) == ["r1", "r2", "r3"]
    assert set().union(*(kinds for _, kinds, _ in heard)) >= {"group_changed", "group_removed"}
    assert sum(rejected for _, _, rejected in heard) == 3


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


def test_the_change_feed_and_the_clustering_are_what_spark_sees(spark: SparkSession, tmp_path: Path) -> None:
    history = Journal()
    sink = Sink(tmp_path, "app", Materialiser(tmp_path, 0))
    for batch in range(3):
        body = journal.GroupChanged(system="kafka", state="stable", members=batch)
        sink(decided(spark, changes=[history.change(batch, body)]), batch)
    detail = spark.sql(f"describe detail delta.`{tmp_path / 'groups'}`").collect()[0]
    assert detail["clusteringColumns"] == ["cluster", "group_id"]
    assert detail["minReaderVersion"] == 1
    assert detail["properties"]["delta.enableChangeDataFeed"] == "true"
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    kinds = feed.load(str(tmp_path / "groups")).groupBy("_change_type").count().collect()
    assert {row["_change_type"]: row["count"] for row in kinds} == {
        "insert": 1,
        "update_preimage": 2,
        "update_postimage": 2,
    }
