"""Shell: the long-running job: starts what belongs together, watches over it, stops it in order."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from streaming import logs
from streaming.checkpoint import Checkpoint, ControlFolder, Identity
from streaming.failure import WAY_OUT, is_java_gone, reason
from streaming.following import Follower, check_events_topic, checked_followers, cluster_sources
from streaming.live_view import LiveStatus, LiveView
from streaming.logs import logger
from streaming.materialise import Materialiser
from streaming.query import decisions, packets, start_query
from streaming.session import start_session
from streaming.settings import Settings
from streaming.setup_error import SetupError
from streaming.sink import Sink
from streaming.sources import collected_source, control_source, folder_source, topic_source
from streaming.table_error import TableError
from streaming.ticker import Ticker
from streaming.watch import Watch
from udfs.combining import FollowedCluster
from udfs.consumer_offsets import GroupPatterns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

FAILED_EXIT = 1
_LOOK_EVERY_S = 0.25
_RESTART_AFTER_S = (1.0, 2.0, 5.0, 10.0, 30.0)
_log = logger("job")


class StopRequest:
    """Asked for by SIGTERM, Ctrl-C or a program; asked twice, it no longer waits for the batch."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self.urgent = False

    def ask(self) -> None:
        self.urgent = self._asked.is_set()
        self._asked.set()

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for the request, at most so long; answer whether it came."""
        return self._asked.wait(seconds)

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Take SIGTERM and SIGINT as requests while inside."""

        def take(number: int, _frame: FrameType | None) -> None:
            _log.info("stop asked for", signal=signal.Signals(number).name)
            self.ask()

        before = {number: signal.signal(number, take) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def source_names(settings: Settings) -> list[str]:
    """Answer what the query reads, as the checkpoint remembers it, in the order of the union."""
    names = ["control"]
    if settings.events.folder:
        # Its lines and its files.
        names += [f"{kind}:{Path(settings.events.folder).absolute()}" for kind in ("events", "files")]
    if settings.kafka_events.topic:
        names.append(f"kafka-events:{settings.kafka_events.topic}")
    return names + cluster_sources(settings)


class Job:
    """One run of the job, from the first check to the last commit.

    Args:
        settings: All of them.
        status: What a live view shows; filled while the job runs.
        stop: Asked when the job shall end.
    """

    def __init__(
        self, settings: Settings, *, status: LiveStatus | None = None, stop: StopRequest | None = None
    ) -> None:
        self.settings = settings
        self.status = status or LiveStatus()
        self.stop = stop or StopRequest()
        self._rules = settings.rules()
        self._checkpoint = Checkpoint(settings.job.checkpoint.absolute())
        self._watch = Watch(self.status)
        self._when_running: Callable[[], None] = lambda: None
        self.has_begun = False

    def run(self, *, once: bool = False, flush: bool = False) -> None:
        """Run until stopped, or until all input is read.

        Raises:
            SetupError, SettingsError, CheckpointError: Before Spark starts.
            TableError: A table cannot be used.
        """
        check_events_topic(self.settings, was_read=self._checkpoint.read() is not None)
        if self.settings.followed():
            self.status.state = "checking clusters"
        followers = checked_followers(self.settings, self._checkpoint.collected, self._watch.offsets_read)
        identity = self._checkpoint.open(
            shards=self.settings.state.shards,
            shuffle_partitions=self.settings.state.shuffle_partitions,
            sources=source_names(self.settings),
        )
        with self._checkpoint.sole_use():
            self._run_alone(identity, followers, once=once, flush=flush)
        _log.info("stopped", rebalances=self.status.rebalances_seen, events=self.status.events)

    def _run_alone(self, identity: Identity, followers: Sequence[Follower], *, once: bool, flush: bool) -> None:
        tables = self.settings.job.tables.absolute()
        self.status.tables = str(self.settings.job.tables)
        self.status.state = "starting Spark"
        spark = start_session(self.settings, log_file=self._checkpoint.spark_log)
        try:
            materialiser = Materialiser(tables, self.settings.job.materialize_interval_ms)
            materialiser.start()
            self._watch.begin(tables)
            sink = Sink(tables, identity.app_id, materialiser, tell=self._watch.decided)
            start = self._starter(spark, sink, followers)
            self.has_begun = True
            try:
                if once:
                    self._drain(spark, start, followers, flush=flush)
                else:
                    self._follow(start, followers, materialiser, tables)
            finally:
                self.status.state = "stopping"
                for follower in followers:
                    follower.stop()
                materialiser.stop()
        finally:
            self.status.state = "stopped"
            spark.stop()

    @property
    def spark_log(self) -> Path:
        """Answer where Spark's own words go."""
        return self._checkpoint.spark_log

    def when_running(self, call: Callable[[], None]) -> None:
        """Have this called once, when the first batch has been read."""
        self._when_running = call

    # -- what is started ----------------------------------------------------------------------------------------

    def _starter(
        self, spark: SparkSession, sink: Sink, followers: Sequence[Follower]
    ) -> Callable[[bool], StreamingQuery]:
        """Answer what starts the query, or starts it again."""

        def start(once: bool) -> StreamingQuery:
            kafka = self.settings.kafka
            followed = None
            if kafka.bootstrap_servers:
                followed = FollowedCluster(kafka.cluster, GroupPatterns(kafka.include_groups, kafka.exclude_groups))
            packed = packets(self._sources(spark, followers), self._rules, followed=followed)
            return start_query(
                decisions(packed, self._rules),
                sink,
                checkpoint=self._checkpoint.query,
                once=once,
                trigger_interval_ms=self.settings.job.trigger_interval_ms,
            )

        return start

    def _sources(self, spark: SparkSession, followers: Sequence[Follower]) -> list[DataFrame]:
        """Answer the sources in the order of ``source_names``; it is fixed for the life of a checkpoint."""
        settings = self.settings
        found = [control_source(spark, self._checkpoint.control)]
        if settings.events.folder:
            found.append(
                folder_source(spark, settings.events.folder, max_files_per_batch=settings.job.max_files_per_batch)
            )
        if settings.kafka_events.topic:
            found.append(
                topic_source(
                    spark,
                    settings.kafka_events.topic,
                    bootstrap_servers=settings.kafka_events.bootstrap_servers or settings.kafka.bootstrap_servers,
                    options=settings.kafka_events.plain_options(),
                    max_offsets_per_batch=settings.job.max_offsets_per_batch,
                )
            )
        for follower in followers:
            rows = follower.source(spark, max_offsets_per_batch=settings.job.max_offsets_per_batch)
            if rows is not None:
                found.append(rows)
        if followers:
            found.append(collected_source(spark, self._checkpoint.collected))
        return found

    # -- one pass -----------------------------------------------------------------------------------------------

    def _drain(
        self,
        spark: SparkSession,
        start: Callable[[bool], StreamingQuery],
        followers: Sequence[Follower],
        *,
        flush: bool,
    ) -> None:
        """Read all there is; a live cluster's clock follows in a second pass, the flush in a last one."""
        for follower in followers:
            if not self.stop.asked and not follower.poll():
                _log.warning("a cluster did not answer; this run tells nothing new of it", cluster=follower.status())
        self._pass(start)
        # Of all, before the pass that reads them.
        clocks = [follower.tell_clock() for follower in followers]
        if any(clocks) and not self.stop.asked:
            self._pass(start)
        if flush and not self.stop.asked:
            clusters = clusters_of(spark, self._checkpoint.query)
            ControlFolder(self._checkpoint.control).mark("flush", {cluster: {} for cluster in clusters})
            self._pass(start)

    def _pass(self, start: Callable[[bool], StreamingQuery]) -> None:
        self.status.state = "catching up"
        query = start(True)
        while not query.awaitTermination(_LOOK_EVERY_S):
            self._watch.progress(query)
            if self.stop.asked:
                self._stop_query(query)
                return
        self._watch.progress(query)

    # -- until stopped ------------------------------------------------------------------------------------------

    def _follow(
        self,
        start: Callable[[bool], StreamingQuery],
        followers: Sequence[Follower],
        materialiser: Materialiser,
        tables: Path,
    ) -> None:
        """Keep the query running; survive a broker that is away."""
        ticker = Ticker(self.settings, ControlFolder(self._checkpoint.control), tables)
        for follower in followers:
            follower.start()
        failures = 0
        while not self.stop.asked:
            query = start(False)
            error = self._watch_over(query, followers, materialiser, ticker)
            if error is None:
                return
            reason = self._connection_error(error, followers)
            if reason is None:
                raise error
            pause_s = _RESTART_AFTER_S[min(failures, len(_RESTART_AFTER_S) - 1)]
            failures = 0 if self._watch.progressed else failures + 1
            self.status.state = "reconnecting"
            _log.warning("the source is away; the query starts again", pause_s=pause_s, reason=reason)
            self.stop.wait(pause_s)

    def _connection_error(self, error: BaseException, followers: Sequence[Follower]) -> str | None:
        """Answer how a broker's being away ended the query; None when it was something else."""
        said = [words for follower in followers if (words := follower.connection_error(error)) is not None]
        if self.settings.kafka_events.topic and not said:
            from streaming.kafka.errors import connection_error

            return connection_error(error)
        return said[0] if said else None

    def _watch_over(
        self, query: StreamingQuery, followers: Sequence[Follower], materialiser: Materialiser, ticker: Ticker
    ) -> Exception | None:
        """Stay with a running query until it is stopped (None) or fails."""
        self._watch.progressed = False
        self.status.state = "running"
        while not self.stop.wait(_LOOK_EVERY_S):
            if not query.isActive:
                return query.exception() or RuntimeError("the query ended without being asked")
            self._watch.progress(query)
            if self._watch.progressed:
                self._when_running()
                self._when_running = lambda: None
            materialiser.run_if_due()
            ticker.tick_if_due(caught_up=self._watch.caught_up)
            wrong = [words for follower in followers if (words := follower.status()) is not None]
            self.status.state = ", ".join(wrong) or "running"
        self._stop_query(query)
        return None

    def _stop_query(self, query: StreamingQuery) -> None:
        """Let the running batch end, then stop; what is cut off is done again at the next start."""
        self.status.state = "finishing the batch"
        deadline = time.monotonic() + self.settings.job.stop_timeout_ms / 1000
        asked_after = _last_batch(query)
        # One batch may follow another without a pause: what was running when the stop was asked for has ended then.
        while query.isActive and query.status["isTriggerActive"] and _last_batch(query) == asked_after:
            if self.stop.urgent or time.monotonic() > deadline:
                _log.warning("the batch was cut off; it will be done again at the next start")
                break
            time.sleep(_LOOK_EVERY_S / 5)
        self._watch.progress(query)
        try:
            query.stop()
        except Py4JJavaError as error:
            # Spark's reader waits for a broker that is away, and cannot be interrupted; it ends with the process.
            if "java.util.concurrent.TimeoutException" not in str(error):
                raise
            _log.warning("the source does not let go of a broker that is away; the job ends without it")


def _last_batch(query: StreamingQuery) -> int | None:
    last = query.lastProgress
    return None if last is None else int(last["batchId"])


def clusters_of(spark: SparkSession, checkpoint: Path) -> list[str]:
    """Answer the clusters that a checkpoint's state knows, also those of which nothing was decided yet."""
    keys = spark.read.format("statestore").load(str(checkpoint)).selectExpr("key.cluster AS cluster").distinct()
    return sorted(row["cluster"] for row in keys.collect() if row["cluster"])


def run_job(settings: Settings, *, once: bool = False, flush: bool = False) -> int:
    """Run the job as a command does: logs or a live view, signals, exit code."""
    logs.configure(settings.log.level, settings.log.format)
    return supervise(Job(settings), once=once, flush=flush)


def supervise(job: Job, *, once: bool = False, flush: bool = False) -> int:
    """Run a job that signals may stop, shown on a terminal; answer its exit code, and say in words why it failed."""
    try:
        with job.stop.by_signals():
            if once:
                job.run(once=True, flush=flush)
            else:
                with LiveView(job.status):
                    job.run()
    except (PySparkException, Py4JError, OSError, TableError) as error:
        if job.stop.asked and is_java_gone(error):
            # Whoever stops the whole process group, or all of a unit's processes, ends Spark's Java at once.
            _log.warning("Spark's Java was ended, too; what was cut off will be done again at the next start")
            return 0
        if not job.has_begun:
            # Something is to be set right before a start.
            if isinstance(error, TableError):
                raise
            raise SetupError(f"the job cannot start: {reason(error)}", "mend that, and start again") from error
        # Its text holds the stacks of two virtual machines; they are in the file.
        # A full disk does not say which it is.
        tables = str(job.settings.job.tables.absolute())
        _log.error("the job failed", reason=reason(error), tables=tables, details=str(job.spark_log), way_out=WAY_OUT)
        return FAILED_EXIT
    return 0
