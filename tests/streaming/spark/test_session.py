"""The session under which the job runs: a checkpoint that other settings made is continued."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from pyspark.errors import PySparkException

from streaming.settings.model import load
from streaming.setup.errors import SetupError
from streaming.setup.jars import store_jars
from streaming.spark.session import session_conf, start_session

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
    # An earlier release may leave the checksum of a file that its unfinished batch wrote, and this one writes anew.
    for folder, file in states.items():
        (folder / ".3.changelog.crc").write_bytes(file.read_bytes())
    assert _counts(spark, tmp_path, "c") + _counts(spark, tmp_path, "d") == [3, 4]
    assert not list((tmp_path / "checkpoint").rglob(".4.changelog.crc"))


# In a process of its own: the thread that uploads snapshots takes its interval from the first query of a process.
_UPLOADING = """
import sys, time
from pathlib import Path
from streaming.settings.model import load
from streaming.spark.session import start_session

store = "spark.sql.streaming.stateStore."
quick = {f"{store}maintenanceInterval": "500ms", f"{store}minDeltasForSnapshot": "2"}
spark = start_session(load(None, {"spark.driver_memory": "1g", "spark.conf": quick}))
place = Path(sys.argv[1])
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
writer = rows.groupBy(rows.value % 3).count().writeStream.format("noop").outputMode("update")
query = writer.option("checkpointLocation", str(place)).trigger(processingTime="0 seconds").start()
deadline = time.monotonic() + 120
while not list(place.rglob("*.zip")):
    assert query.isActive and time.monotonic() < deadline, "no snapshot"
    time.sleep(0.1)
query.stop()
assert list(place.rglob("*.changelog")) and not list(place.rglob("*.crc"))
"""


@pytest.mark.spark
def test_snapshots_of_the_state_get_into_a_local_checkpoint_without_checksums(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _UPLOADING, tmp_path / "checkpoint"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_settings_tuned_for_one_machine_are_not_applied_on_a_cluster() -> None:
    local = session_conf(load(None, {"spark.master": "local[2]"}))
    cluster = session_conf(load(None, {"spark.master": "spark://host:7077"}))
    assert _MANAGER in local
    assert not {_MANAGER, "spark.driver.extraJavaOptions"} & cluster.keys()


def test_files_of_a_checkpoint_on_s3_are_put_and_not_renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    on_disk, on_s3 = ({"job.checkpoint": place, "spark.master": "local[2]"} for place in ("/c", "s3://lake/c"))
    # For a disk nothing else is configured.
    assert session_conf(load(None, on_disk)) == session_conf(load(None, {"spark.master": "local[2]"}))
    assert session_conf(load(None, on_s3))[_MANAGER].endswith(".cloud.AbortableStreamBasedCheckpointFileManager")
    # The jars are then those of the platform.
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert _MANAGER not in session_conf(load(None, on_s3))


def test_the_jars_of_a_store_come_behind_all_others_of_one_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the others, the JVM would not accept its archive of classes."""
    observed: list[str | None] = []

    def launch() -> None:
        observed.append(os.environ.get("SPARK_DIST_CLASSPATH"))
        raise PySparkException("no Java here")

    monkeypatch.setattr("pyspark.sql.SparkSession.Builder.getOrCreate", lambda _: launch())
    for mine in (None, "mine"):
        if mine is not None:
            monkeypatch.setenv("SPARK_DIST_CLASSPATH", mine)
        for given in (
            {},
            {"events.folder": "s3://lake/events"},
            {"spark.conf": {"spark.sql.warehouse.dir": "s3a://lake/w"}},
        ):
            with pytest.raises(SetupError):
                start_session(load(None, {"spark.master": "local[2]", "events.folder": "here", **given}))
        assert os.environ.get("SPARK_DIST_CLASSPATH") == mine
    jars = ":".join(map(str, store_jars({"s3"})))
    assert observed == [None, jars, jars, "mine", f"mine:{jars}", f"mine:{jars}"]


def test_a_users_own_setting_precedes_ours() -> None:
    mine = {"spark.conf": {_MANAGER: "mine", "spark.driver.extraJavaOptions": "-Xlog:gc"}}
    conf = session_conf(load(None, mine))
    assert (conf[_MANAGER], conf["spark.driver.extraJavaOptions"]) == ("mine", "-Xlog:gc")


def test_a_collector_that_the_environment_chooses_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java does not start with two."""
    name = "spark.driver.extraJavaOptions"
    for variable in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"):
        monkeypatch.delenv(variable, raising=False)
    assert "-XX:+UseSerialGC" in session_conf(load(None, {"spark.master": "local[2]"}))[name]
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xlog:gc -XX:+UseG1GC")
    assert "GC " not in session_conf(load(None, {"spark.master": "local[2]"}))[name]


def test_below_spark_submit_its_own_settings_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    conf = session_conf(load(None, {"spark.conf": {"spark.executor.memory": "3g"}}))
    assert not {_MANAGER, "spark.driver.memory", "spark.driver.host"} & conf.keys()
    assert conf["spark.executor.memory"] == "3g"


def test_below_spark_submit_options_of_a_settings_file_reach_hadoop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's JVM starts before the settings are read, so its environment does not have them."""
    options = {"aws_access_key_id": "k", "AWS_SECRET_ACCESS_KEY": "hush"}
    settings = load(None, {"job.checkpoint": "s3://lake/c", "storage.options": options})
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    key, secret = "spark.hadoop.fs.s3a.access.key", "spark.hadoop.fs.s3a.secret.key"
    assert not {key, secret} & session_conf(settings).keys()
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    conf = session_conf(settings)
    assert (conf.get(key), conf.get(secret)) == (None, "hush")


def test_a_platforms_own_delta_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"spark.sql.extensions", "spark.sql.catalog.spark_catalog"}
    assert names <= session_conf(load(None, {})).keys()
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "18.0")
    assert not names & session_conf(load(None, {})).keys()


@pytest.mark.parametrize(("master", "variable"), [("sc://host", {}), ("local[2]", {"SPARK_REMOTE": "sc://host"})])
def test_spark_connect_is_refused_by_name(
    master: str, variable: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variable.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SetupError, match="Spark Connect cannot run the job"):
        start_session(load(None, {"spark.master": master}))
