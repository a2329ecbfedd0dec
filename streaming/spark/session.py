"""Shell: the Spark session of the job, tuned for many small exactly-once batches on few cores."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from streaming.settings.conf_files import conf_file
from streaming.settings.locations import catalog_schema
from streaming.setup.errors import SetupError
from streaming.setup.jars import spark_jars, store_jars
from streaming.setup.java import find_java
from streaming.spark.catalog_check import require_schema
from streaming.spark.class_archive import archive_options
from streaming.spark.executors import prepare_executors
from streaming.spark.root_cause import reason_in
from streaming.spark.scratch import scratch_folder
from streaming.stores.hadoop import checkpoint_conf, hadoop_conf, scheme_conf, schemes_of, stores_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streaming.settings.locations import Location
    from streaming.settings.model import Settings

# The published Delta; a platform has its own.
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# Tables and state need these settings on every master.
_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Otherwise each write of a shard's state would first read the whole old state only to count the keys.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # This way of reading Kafka's offsets includes internal topics.
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
    # Combine packs each piece of a batch, so fewer pieces pack better.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.streaming.metricsEnabled": "true",
    "spark.ui.showConsoleProgress": "false",
}
# One machine with few cores needs these in addition; a cluster has its own settings.
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.files.openCostInBytes": "65536",
    "spark.python.daemon.module": "streaming.spark.worker_daemon",
    # With the checkpoint on a local disk and without Hadoop's native library, each rename through FileContext starts
    # ten processes (readlink), sixty in a batch. `_write_no_checksums` belongs to it.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}

# In a small batch the JVM mostly plans, which is never hot: the second compiler would take more than half of all
# its CPU time. Large batches are computed in Python.
# Without the second compiler, Java's code cache is 48 MB; it is full after some minutes, and then compiling stops.
_LOCAL_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
# An idle job has 80 MB of live objects. With its default collector Java would let the heap grow to a third of its
# limit before it collects any, and keep that. With less than half of the heap free, large batches collect too often.
_SMALL_HEAP = ("-XX:+UseSerialGC", "-Xms128m", "-XX:MinHeapFreeRatio=50")
# Java refuses to start with two collectors, and reads options from these variables, too.
_JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_COLLECTOR = re.compile(r"-XX:\+Use\w*GC\b")

_CLASS_PATH = "spark.driver.extraClassPath"
_LAST_CLASS_PATH = "SPARK_DIST_CLASSPATH"
_JARS = "spark.jars"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def locations_of(settings: Settings, more: Sequence[Location] = ()) -> list[Location]:
    """Return where Spark reads and writes files; [spark.conf] has the warehouse of a catalog."""
    writes_tables = settings.tables.writer == "delta-spark"
    places = [settings.job.checkpoint, settings.events.folder, *([settings.job.tables] if writes_tables else [])]
    return [*places, *more, *stores_in(settings.spark.conf)]


def session_conf(settings: Settings, more: Sequence[Location] = ()) -> dict[str, str]:
    """Return every Spark setting that the monitor sets, the user's own last.

    Args:
        more: Locations that Spark reads or writes in addition to those of the job.
    """
    conf = _ALWAYS | hadoop_conf(locations_of(settings, more), os.environ, _unknown_to_java(settings))
    if not _is_platform():
        conf |= _DELTA
    conf["spark.sql.shuffle.partitions"] = str(settings.state.shuffle_partitions)
    if not _is_submitted():
        conf["spark.driver.memory"] = settings.spark.driver_memory
        if is_local(settings.spark.master):
            conf |= _LOCAL
            conf[_JAVA_OPTIONS] = " ".join([*_LOCAL_JAVA, *_heap_options(), *archive_options()])
        conf |= scheme_conf(locations_of(settings, more))
        conf |= checkpoint_conf(settings.job.checkpoint)  # after the settings for a disk; its jar is the monitor's own
    return conf | settings.spark.conf


def is_local(master: str) -> bool:
    """Return whether Spark runs its tasks inside the driver.

    Example:
        >>> is_local("local[2]"), is_local("local-cluster[2,1,1024]"), is_local("spark://host:7077")
        (True, False, False)
    """
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def _heap_options() -> tuple[str, ...]:
    """Return Java's options for a small heap; none if the environment chooses a collector."""
    is_chosen = any(_COLLECTOR.search(os.environ.get(name, "")) for name in _JAVA_VARIABLES)
    return () if is_chosen else _SMALL_HEAP


def _is_submitted() -> bool:
    """Return whether something else started the driver's JVM: `spark-submit`, or a platform such as Databricks."""
    return "PYSPARK_GATEWAY_PORT" in os.environ or _is_platform()


def _is_platform() -> bool:
    return "DATABRICKS_RUNTIME_VERSION" in os.environ


def _unknown_to_java(settings: Settings) -> frozenset[str]:
    """Return the options of stores that Spark's JVM lacks as variables, because it started before they were read."""
    options = settings.storage.plain_options() if _is_submitted() else {}
    return frozenset(name for name, value in options.items() if os.environ.get(name) == value)


def start_session(
    settings: Settings,
    name: str = "rebalance-monitor",
    *,
    log_file: Path | None = None,
    shared: Sequence[Path] = (),
    more: Sequence[Location] = (),
) -> SparkSession:
    """Start Spark, or join the session that spark-submit made; then executors have the monitor's code.

    Under spark-submit its `--master` counts, whatever the settings say, and so do the jars that it was given.

    Args:
        log_file: Gets all output of Spark's JVM and its Python workers, so that standard error stays the monitor's own;
            the file of the previous start is kept next to it. None for standard error.
        shared: Folders that executors also read or write.
        more: Locations that Spark reads or writes in addition to those of the job.

    Raises:
        SetupError: No suitable Java, unavailable jars, nowhere to put temporary files, settings that Spark does not
            start with, executors on which the job cannot run, or a catalog that does not keep the tables.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    master = "" if _is_submitted() else settings.spark.master
    if master.startswith("sc://") or "SPARK_REMOTE" in os.environ:
        raise SetupError(
            "Spark Connect cannot run the job: it would run the sink in a process of the server, apart from the job.",
            "Give [spark] master the cluster itself (spark://, k8s://, yarn), or use spark-submit.",
        )
    builder = SparkSession.builder.appName(name)
    conf = session_conf(settings, more)
    if "spark.pyspark.python" in conf:
        os.environ["PYSPARK_PYTHON"] = conf["spark.pyspark.python"]
    if master:
        builder = builder.master(master)
    last_jars: Sequence[Path] = ()
    if not _is_submitted():
        os.environ["JAVA_HOME"] = str(find_java().home)
        _name_files_in_utf8()
        schemes = schemes_of(locations_of(settings, more))
        if is_local(master):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            _drop_foreign_spark_home()
            last_jars = store_jars(schemes)
            conf |= _local_places(conf, scratch_folder())
        else:
            jars = [*spark_jars(), *store_jars(schemes)]
            conf[_JARS] = ",".join([*map(str, jars), *filter(None, [conf.get(_JARS)])])
        conf |= _driver_options(conf, scratch_folder())
    for key, value in conf.items():
        builder = builder.config(key, value)
    try:
        with _stderr_into(log_file), _handler_of_sigint_kept(), _read_last(last_jars):
            spark = builder.getOrCreate()
            if schema := catalog_schema(settings.job.tables):
                folder = require_schema(spark, schema, scratch_folder())
                shared = shared if folder is None else [*shared, folder]
            if is_local(spark.conf.get("spark.master") or ""):
                _write_no_checksums(spark)
            else:
                prepare_executors(spark, scratch_folder(), shared)
            return spark
    except (PySparkException, Py4JError) as error:
        # If the JVM ended at once, only its log has the reason.
        output = log_file.read_text(errors="replace") if log_file is not None and _has_no_java(error) else str(error)
        log = None if _is_submitted() else log_file
        raise SetupError(f"Spark does not start: {reason_in(output)}", _remedy(log)) from error


def _write_no_checksums(spark: SparkSession) -> None:
    """Make Hadoop write no checksum next to a local file, so that a crash cannot leave the two inconsistent.

    There is no setting for it, and no public call. `RawLocalFileSystem` as `fs.file.impl` writes none either, but with
    it the state store cannot upload its snapshots (`FileSystem.getLocal` casts), and keeps each change forever.
    """
    jvm = spark._jvm
    assert jvm is not None
    hadoop = jvm.org.apache.hadoop
    files = hadoop.fs.FileSystem.getLocal(hadoop.conf.Configuration())
    files.setWriteChecksum(False)
    files.setVerifyChecksum(False)


def end_session(spark: SparkSession) -> None:
    """Stop Spark, unless it belongs to a platform that keeps it for others."""
    if not _is_platform():
        spark.stop()


def _has_no_java(error: Exception) -> bool:
    return getattr(error, "getCondition", lambda: None)() == "JAVA_GATEWAY_EXITED"


def _remedy(log_file: Path | None) -> str:
    remedy = "see the settings under [spark], SPARK_… variables, and the free memory"
    return remedy if log_file is None else f"{remedy};\nthe full log is in {log_file}"


@contextmanager
def _read_last(jars: Sequence[Path]) -> Iterator[None]:
    """Make a JVM that starts inside read these jars last, because its archive of classes excludes them.

    Java accepts an archive if jars were added at the end. Only a variable of Spark's adds there, not a setting.
    """
    before = os.environ.get(_LAST_CLASS_PATH)
    if jars:
        os.environ[_LAST_CLASS_PATH] = os.pathsep.join([*filter(None, [before]), *map(str, jars)])
    try:
        yield
    finally:
        os.environ.pop(_LAST_CLASS_PATH, None)
        if before is not None:
            os.environ[_LAST_CLASS_PATH] = before


def _local_places(conf: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Return settings that keep a local session's files together: nothing in the working folder, nothing left in /tmp.

    Args:
        conf: The other settings, including the user's own, which take precedence over these.
    """
    # A single JVM reads jars in place; named in spark.jars, they would be copied for every session.
    class_path = [*map(str, spark_jars()), *filter(None, [conf.get(_CLASS_PATH)])]
    return {
        "spark.local.dir": conf.get("spark.local.dir", str(scratch)),
        "spark.sql.warehouse.dir": conf.get("spark.sql.warehouse.dir", str(scratch / "warehouse")),
        _CLASS_PATH: os.pathsep.join(class_path),
    }


def _driver_options(conf: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Return options for the output of the driver's own JVM; the user's options come after, and override these."""
    log = scratch / "log4j2.properties"
    log.write_bytes(conf_file(log.name).read_bytes())
    options = f'"-Djava.io.tmpdir={scratch}" "-Dlog4j2.configurationFile={log}" {conf.get(_JAVA_OPTIONS, "")}'
    return {_JAVA_OPTIONS: options}


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
    """Make Java find files whose names are not ASCII, which it silently skips with the locale C.

    Python handles all other ways to set the locale.
    """
    if os.environ.get("LC_ALL") in ("C", "POSIX"):
        os.environ["LC_ALL"] = "C.UTF-8"


def _drop_foreign_spark_home() -> None:
    """Use the Spark inside pyspark, because a SPARK_HOME of another version fails late and obscurely."""
    import pyspark

    if os.environ.get("SPARK_HOME", str(Path(pyspark.__file__).parent)) != str(Path(pyspark.__file__).parent):
        os.environ.pop("SPARK_HOME")
