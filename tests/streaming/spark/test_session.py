"""The session under which the job runs: a checkpoint that other settings made is continued."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from streaming.settings.model import load
from streaming.spark.session import session_conf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.state import GroupState

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
# Spark's own choice for a local disk, which earlier releases had: each file has a checksum of Hadoop's beside it.
_BEFORE = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"


def _count(_key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    count = (state.get[0] if state.exists else 0) + sum(map(len, frames))
    state.update((count,))
    yield pd.DataFrame({"count": [count]})


def _counts(spark: SparkSession, place: Path, line: str) -> list[int]:
    """Return how many lines the query has read in all, after each of its batches from here on."""
    found: list[int] = []
    (place / "lines" / line).write_text(f"{line}\n")

    def take(rows: DataFrame, _batch: int) -> None:
        found.extend(row["count"] for row in rows.collect())

    lines = spark.readStream.text(str(place / "lines")).selectExpr("'all' AS key", "value")
    counted = lines.groupBy("key").applyInPandasWithState(_count, "count long", "count long", "append", "NoTimeout")
    writer = counted.writeStream.outputMode("append").option("checkpointLocation", str(place / "checkpoint"))
    writer.foreachBatch(take).trigger(availableNow=True).start().awaitTermination()
    return found


@pytest.mark.spark
def test_a_checkpoint_of_an_earlier_release_is_continued(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "lines").mkdir()
    ours = spark.conf.get(_MANAGER)
    spark.conf.set(_MANAGER, _BEFORE)
    try:
        before = _counts(spark, tmp_path, "a") + _counts(spark, tmp_path, "b")
    finally:
        spark.conf.set(_MANAGER, str(ours))
    states = {file.parent: file for file in (tmp_path / "checkpoint" / "state").rglob(".2.changelog.crc")}
    assert before == [1, 2]
    assert states
    # What the earlier release may leave of a batch that it did not finish: a checksum of a file that is written anew.
    for folder, file in states.items():
        (folder / ".3.changelog.crc").write_bytes(file.read_bytes())
    assert _counts(spark, tmp_path, "c") + _counts(spark, tmp_path, "d") == [3, 4]
    assert not list((tmp_path / "checkpoint").rglob(".4.changelog.crc"))


def test_what_is_tuned_for_one_machine_is_left_alone_on_a_cluster() -> None:
    local = session_conf(load(None, {"spark.master": "local[2]"}))
    cluster = session_conf(load(None, {"spark.master": "spark://host:7077"}))
    assert _MANAGER in local
    assert not {_MANAGER, "spark.hadoop.fs.file.impl", "spark.driver.extraJavaOptions"} & cluster.keys()


def test_a_users_own_setting_precedes_ours() -> None:
    mine = {"spark.conf": {_MANAGER: "mine", "spark.driver.extraJavaOptions": "-Xlog:gc"}}
    conf = session_conf(load(None, mine))
    assert (conf[_MANAGER], conf["spark.driver.extraJavaOptions"]) == ("mine", "-Xlog:gc")
