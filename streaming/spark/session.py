"""Shell: the Spark session of the job, tuned for many small exactly-once batches on few cores."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from streaming.settings.conf_files import conf_file
from streaming.setup.errors import SetupError
from streaming.setup.jars import spark_jars
from streaming.setup.java import find_java
from streaming.spark.root_cause import reason_in
from streaming.spark.scratch import scratch_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streaming.settings.model import Settings

# Settings that tables and state need on every master.
_ALWAYS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Each write of a shard's state would first read the whole old state, only to count the keys.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # The way of reading Kafka's offsets that sees internal topics too.
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
    # A batch is packed by combine: the fewer pieces it comes in, the better it packs.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.streaming.metricsEnabled": "true",
}
# What one machine with few cores needs beside that; a cluster has its own settings.
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.files.openCostInBytes": "65536",
    # The checkpoint on a local disk: without Hadoop's own library, each rename by way of FileContext starts ten
    # processes (readlink), sixty in a batch. The plain file system renames by one call; it keeps no checksum beside a
    # file, so that there are no two files which a crash could leave at odds.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
}

# What the JVM runs in a small batch is planning, which is never hot: the second compiler takes more than half of all
# that it computes. Large batches are computed in Python.
_LOCAL_JAVA = ("-XX:TieredStopAtLevel=1",)

_CLASS_PATH = "spark.driver.extraClassPath"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def session_conf(settings: Settings) -> dict[str, str]:
    """Return every Spark setting that the monitor sets, the user's own last."""
    conf = dict(_ALWAYS)
    conf["spark.sql.shuffle.partitions"] = str(settings.state.shuffle_partitions)
    if settings.spark.master.startswith("local"):
        conf |= _LOCAL
        conf["spark.driver.memory"] = settings.spark.driver_memory
        log = f"-Dlog4j2.configurationFile={conf_file('log4j2.properties')}"
        conf[_JAVA_OPTIONS] = " ".join([log, *_LOCAL_JAVA])
    return conf | settings.spark.conf


def start_session(settings: Settings, name: str = "rebalance-monitor", *, log_file: Path | None = None) -> SparkSession:
    """Start Spark, or join the session that spark-submit made.

    Args:
        log_file: Gets all output of Spark's JVM and its Python workers, so that standard error stays the monitor's
            own; the file of the start before is kept beside it. None = standard error.

    Raises:
        SetupError: No fitting Java, jars that cannot be had, nowhere to put temporary files, or settings that Spark
            does not start with.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    conf = session_conf(settings)
    if settings.spark.master.startswith("local"):
        os.environ["JAVA_HOME"] = str(find_java().home)
        _name_files_in_utf8()
        _drop_foreign_spark_home()
        builder = builder.master(settings.spark.master)
        conf |= _local_places(conf, scratch_folder())
    elif settings.spark.master:
        builder = builder.master(settings.spark.master)
    for key, value in conf.items():
        builder = builder.config(key, value)
    try:
        with _stderr_into(log_file), _handler_of_sigint_kept():
            return builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        # A JVM that ended at once has the reason only in its log.
        output = log_file.read_text(errors="replace") if log_file is not None and _has_no_java(error) else str(error)
        raise SetupError(f"Spark does not start: {reason_in(output)}", _remedy(log_file)) from error


def _has_no_java(error: Exception) -> bool:
    return getattr(error, "getCondition", lambda: None)() == "JAVA_GATEWAY_EXITED"


def _remedy(log_file: Path | None) -> str:
    remedy = "see the settings under [spark], SPARK_… variables, and the free memory"
    return remedy if log_file is None else f"{remedy};\nthe full log is in {log_file}"


def _local_places(conf: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Return what keeps a local session's files together: nothing in the working folder, nothing left in /tmp.

    Args:
        conf: The other settings, with the user's own, which go before these.
    """
    # The one JVM reads jars in place; named by spark.jars they would be copied for every session.
    class_path = [*map(str, spark_jars()), *filter(None, [conf.get(_CLASS_PATH)])]
    return {
        "spark.local.dir": conf.get("spark.local.dir", str(scratch)),
        "spark.sql.warehouse.dir": conf.get("spark.sql.warehouse.dir", str(scratch / "warehouse")),
        _CLASS_PATH: os.pathsep.join(class_path),
        _JAVA_OPTIONS: f'"-Djava.io.tmpdir={scratch}" {conf.get(_JAVA_OPTIONS, "")}',
    }


@contextmanager
def _handler_of_sigint_kept() -> Iterator[None]:
    """Keep the program's own handler of Ctrl-C: a new SparkContext replaces it by one that cancels the batch."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextmanager
def _stderr_into(file: Path | None) -> Iterator[None]:
    """Redirect the standard error of processes that start inside into the file."""
    if file is None:
        yield
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists():
        file.replace(file.with_suffix(".before.log"))
    sys.stderr.flush()
    ours = os.dup(2)
    with file.open("wb") as target:
        os.dup2(target.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def _name_files_in_utf8() -> None:
    """Make Java find files whose names are not ASCII: with the locale C it skips them silently.

    Python handles all other ways to set it.
    """
    if os.environ.get("LC_ALL") in ("C", "POSIX"):
        os.environ["LC_ALL"] = "C.UTF-8"


def _drop_foreign_spark_home() -> None:
    """Use the Spark inside pyspark: a SPARK_HOME of another version fails late and darkly."""
    import pyspark

    if os.environ.get("SPARK_HOME", str(Path(pyspark.__file__).parent)) != str(Path(pyspark.__file__).parent):
        os.environ.pop("SPARK_HOME")
