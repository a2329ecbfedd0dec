"""Shell: the long-running job: starts its parts, watches over them, stops them in order."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

from streaming.collectors.collector import AttachedCluster
from streaming.collectors.loss_watch import LossWatch
from streaming.collectors.registry import attached_clusters, check_events_topic
from streaming.machine.logs import logger
from streaming.machine.stop_request import StopRequest
from streaming.pipeline.idle_ticker import IdleTicker
from streaming.pipeline.liveness_writer import LivenessWriter
from streaming.pipeline.outage_findings import OutageFindings
from streaming.pipeline.progress_listener import ProgressListener, caught_up
from streaming.pipeline.query import decisions, packets, start_query, stop_query
from streaming.pipeline.query_position import QueryPosition
from streaming.pipeline.sink import Sink
from streaming.pipeline.source_order import QuerySource, names_of, query_sources, rows_of
from streaming.settings.locations import Location, absolute, catalog_schema, hand_on
from streaming.settings.model import Settings
from streaming.spark.checkpoint import Checkpoint, ControlFolder, Identity
from streaming.spark.session import end_session, start_session
from streaming.spark.state_reader import clusters_of
from streaming.stores.access import require_stores
from streaming.stores.locks import Guard, all_of
from streaming.stores.store_path import access_variables
from streaming.tables.engine import (
    DELTA_RS,
    DELTA_SPARK,
    DeltaRsEngine,
    DeltaSparkEngine,
    Engine,
    exclusive_commits,
    writer_of,
)
from streaming.tables.materializer import Materializer
from streaming.terminal.live_view import LiveStatus
from udfs.ingest.combiner import FollowedCluster
from udfs.kafka.consumer_offsets import OFFSETS_TOPIC, GroupPatterns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

_POLL_EVERY_S = 0.5
_RESTART_AFTER_S = (1.0, 2.0, 5.0, 10.0, 30.0)
_log = logger("job")


class Job:
    """One run of the job, from the first check to the last commit.

    Args:
        status: The status for a live view, updated while the job runs.
    """

    def __init__(
        self, settings: Settings, *, status: LiveStatus | None = None, stop: StopRequest | None = None
    ) -> None:
        self.settings = settings
        self.status = status or LiveStatus()
        self.stop = stop or StopRequest()
        self._config = settings.core_config()
        self._checkpoint = Checkpoint(settings.job.checkpoint)
        self._position = QueryPosition(self._checkpoint.query, OFFSETS_TOPIC)
        self._watch = ProgressListener(self.status, self._position)
        self._when_running: Callable[[], None] = lambda: None
        self._unfinished = False
        self._clusters: frozenset[str] = frozenset()  # clusters with a state
        self._guard: Guard = lambda: None
        self._sources: list[QuerySource] = []
        self._query: StreamingQuery | None = None
        self._followers: Sequence[AttachedCluster] = ()
        self._outages: OutageFindings | None = None
        self._liveness = LivenessWriter.of(
            settings,
            is_caught_up=lambda: self._query is not None and caught_up(self._query),
            sources=lambda: [follower.source_status() for follower in self._followers],
        )
        self.has_begun = False

    def run(self, *, once: bool = False, flush: bool = False) -> None:
        """Run until stopped, or until all input is read.

        Raises:
            SetupError, SettingsError, CheckpointError: Before Spark starts.
            TableError: A table cannot be used.
        """
        hand_on(self.settings.storage.plain_options(), os.environ)
        job = self.settings.job
        # Spark would notice late, and report it in a page of text.
        require_stores(self.settings.places())
        check_events_topic(self.settings, was_read=self._checkpoint.read() is not None)
        if self.settings.followed():
            self.status.state = "checking clusters"
        self._followers = followers = attached_clusters(
            self.settings, self._checkpoint.collected, self._position.offsets, self._liveness.is_prompt
        )
        self._watch.clock.sources = dict(
            follower.group_source for follower in followers if follower.group_source is not None
        )
        self._sources = list(query_sources(self.settings, self._checkpoint, followers))
        identity = self._checkpoint.open(
            shards=self.settings.state.shards,
            shuffle_partitions=self.settings.state.shuffle_partitions,
            sources=names_of(self._sources),
        )
        tables = absolute(job.tables)
        writer = writer_of(self.settings.tables.writer, tables)
        with self._checkpoint.exclusive_lock() as state_guard, exclusive_commits(tables, writer) as tables_guard:
            self._guard = all_of(state_guard, tables_guard)
            with self._liveness.until_end(self.stop, is_once=once):
                self._run_alone(identity, followers, tables, writer, once=once, flush=flush)
        _log.info("stopped", rebalances=self.status.rebalance_count, events=self.status.events)

    def _run_alone(
        self,
        identity: Identity,
        followers: Sequence[AttachedCluster],
        tables: Location,
        writer: str,
        *,
        once: bool,
        flush: bool,
    ) -> None:
        self.status.tables = str(self.settings.job.tables)
        if not catalog_schema(tables):
            self._liveness.start(tables, identity.app_id)
        engine: Engine = DeltaRsEngine()
        interval_ms = self.settings.job.materialize_interval_ms
        if writer == DELTA_RS:
            materializer = Materializer(tables, interval_ms, self._watch, guard=self._guard)
        self.status.state = "starting Spark"
        folders = [self._checkpoint.root, self.settings.events.folder]
        if writer == DELTA_SPARK:
            folders.append(tables)
            if isinstance(tables, Path):
                tables.mkdir(parents=True, exist_ok=True)  # executors check that it exists
        shared = [folder.absolute() for folder in folders if isinstance(folder, Path)]
        spark = start_session(self.settings, log_file=self.spark_log, shared=shared)
        try:
            if writer == DELTA_SPARK:
                engine, interval_ms = DeltaSparkEngine(spark), self.settings.tables.spark_interval_ms
                materializer = Materializer(tables, interval_ms, self._watch, engine=engine, guard=self._guard)
                _log.info("Spark writes the tables", tables_at=str(materializer.root), interval_ms=interval_ms)
            materializer.start()
            if catalog_schema(tables):
                self._liveness.start(materializer.root, identity.app_id)
            self._watch.begin(materializer.root)
            sink = Sink(
                tables,
                identity.app_id,
                materializer,
                report=self._watch.decided,
                resume=self._resumer(),
                begun=self._note_clusters,
                observed=self._liveness.observed,
                engine=engine,
                guard=self._guard,
                clock=self._watch.clock,
            )
            if self.settings.time.silence == "expire" and any((self._checkpoint.query / "commits").glob("[0-9]*")):
                self._note_clusters(clusters_of(spark, self._checkpoint.query))
            losses = LossWatch(
                self.settings, self._checkpoint, identity, lambda: clusters_of(spark, self._checkpoint.query)
            )
            start = self._starter(spark, sink, losses)
            self._outages = OutageFindings(
                engine,
                materializer.root,
                tables,
                identity.app_id,
                after_ms=self.settings.time.source_silent_after_ms,
                lateness_ms=self.settings.time.allowed_lateness_ms,
            )
            self.has_begun = True
            try:
                if once:
                    self._drain(spark, start, followers, losses, flush=flush)
                else:
                    self._follow(start, followers, losses, materializer)
                losses.after_end()
            finally:
                self.status.state = "stopping"
                for follower in followers:
                    follower.stop()
                materializer.stop()
        finally:
            self.status.state = "stopped"
            end_session(spark)

    def _resumer(self) -> Callable[[Sequence[str]], None]:
        """Return a function that writes the mark ``resume``: the next batch for groups with waiting input."""
        control = ControlFolder(self._checkpoint.control)

        def resume(clusters: Sequence[str]) -> None:
            self._unfinished = True
            control.mark("resume", {cluster: {} for cluster in clusters})

        return resume

    def _note_clusters(self, clusters: Iterable[str]) -> None:
        self._clusters = self._clusters.union(clusters)

    @property
    def spark_log(self) -> Path:
        """Return the file of Spark's own log."""
        return self._checkpoint.log_file("spark.log")

    def when_running(self, call: Callable[[], None]) -> None:
        """Register a function to be called once, when the first batch has been read."""
        self._when_running = call

    # -- starting -----------------------------------------------------------------------------------------------

    def _starter(self, spark: SparkSession, sink: Sink, losses: LossWatch) -> Callable[[bool], StreamingQuery]:
        """Return a function that starts the query, or starts it again."""

        def write(decided: DataFrame, batch_id: int) -> None:
            self._position.began(batch_id)
            with self._liveness.batch(batch_id):
                sink(decided, batch_id)

        def start(once: bool) -> StreamingQuery:
            kafka = self.settings.kafka
            patterns = GroupPatterns(kafka.include_groups, kafka.exclude_groups)
            followed = FollowedCluster(kafka.cluster, patterns) if kafka.bootstrap_servers else None
            found = rows_of(self._sources, spark, is_tolerant=losses.before_start())
            packed = packets(found, self._config, followed=followed, access=access_variables())
            self._query = start_query(
                decisions(packed, self._config, checkpoint=self._checkpoint.root),
                write,
                checkpoint=self._checkpoint.query,
                once=once,
                trigger_interval_ms=self.settings.job.trigger_interval_ms,
            )
            return self._query

        return start

    # -- one pass -----------------------------------------------------------------------------------------------

    def _drain(
        self,
        spark: SparkSession,
        start: Callable[[bool], StreamingQuery],
        followers: Sequence[AttachedCluster],
        losses: LossWatch,
        *,
        flush: bool,
    ) -> None:
        """Read everything; a live cluster's clock follows in a second pass, the flush in a last one."""
        for follower in followers:
            if not self.stop.is_requested and not follower.poll():
                _log.warning("a cluster did not answer; this run reports nothing new of it", cluster=follower.status())
        self._pass(start, losses)
        # The end offsets of all are read before the pass that reads up to them.
        clocks = [follower.flush_clock() for follower in followers]
        if any(clocks) and not self.stop.is_requested:
            self._pass(start, losses)
        if flush and not self.stop.is_requested:
            clusters = clusters_of(spark, self._checkpoint.query)
            if not clusters:
                _log.warning("nothing was read, now or before", events=str(self.settings.events.folder))
            ControlFolder(self._checkpoint.control).mark("flush", {cluster: {} for cluster in clusters})
            self._pass(start, losses)

    def _pass(self, start: Callable[[bool], StreamingQuery], losses: LossWatch) -> None:
        """Read everything, as often as groups have more to do than fits into a batch."""
        self._unfinished = True
        while self._unfinished and not self.stop.is_requested:
            self._unfinished = False
            self._read_through(start, losses)

    def _read_through(self, start: Callable[[bool], StreamingQuery], losses: LossWatch) -> None:
        self.status.state = "catching up"
        self._liveness.enter("catching_up")
        query = start(True)
        try:
            while not query.awaitTermination(_POLL_EVERY_S):  # type: ignore[arg-type]  # pyspark takes fractions
                self._watch.progress(query)
                self._check_lock(query)
                if self.stop.is_requested:
                    self._stop_query(query)
                    return
        except StreamingQueryException as error:
            if not losses.may_start_again(error):
                raise
            self._read_through(start, losses)  # it is tolerant: deleted records do not fail it
            return
        self._watch.progress(query)

    # -- until stopped ------------------------------------------------------------------------------------------

    def _follow(
        self,
        start: Callable[[bool], StreamingQuery],
        followers: Sequence[AttachedCluster],
        losses: LossWatch,
        materializer: Materializer,
    ) -> None:
        """Keep the query running, even through outages of a broker."""
        ticker = IdleTicker(self.settings, ControlFolder(self._checkpoint.control), lambda: sorted(self._clusters))
        for follower in followers:
            follower.start()
        failures = 0
        while not self.stop.is_requested:
            query = start(False)
            error = self._watch_over(query, followers, losses, materializer, ticker)
            if error is None:
                return
            if losses.may_start_again(error):
                continue
            reason = self._connection_error(error, followers)
            if reason is None:
                raise error
            pause_s = _RESTART_AFTER_S[min(failures, len(_RESTART_AFTER_S) - 1)]
            failures = 0 if self._watch.progressed else failures + 1
            self.status.state = "reconnecting"
            self._liveness.enter("reconnecting")
            _log.warning("the source is unavailable; the query restarts", pause_s=pause_s, reason=reason)
            self.stop.wait(pause_s)

    def _connection_error(self, error: BaseException, followers: Sequence[AttachedCluster]) -> str | None:
        """Return the broker's error if it ended the query; None for any other error."""
        problems = [problem for follower in followers if (problem := follower.connection_error(error)) is not None]
        if self.settings.kafka_events.topic and not problems:
            from streaming.collectors.kafka.errors import connection_error

            return connection_error(error)
        return problems[0] if problems else None

    def _watch_over(
        self,
        query: StreamingQuery,
        followers: Sequence[AttachedCluster],
        losses: LossWatch,
        materializer: Materializer,
        ticker: IdleTicker,
    ) -> Exception | None:
        """Stay with a running query until it is stopped (None) or fails."""
        self._watch.progressed = False
        self.status.state = "running"
        self._liveness.enter("running")
        while not self.stop.wait(_POLL_EVERY_S):
            if not query.isActive:
                return query.exception() or RuntimeError("the query ended unexpectedly")
            self._watch.progress(query)
            self._check_lock(query)
            if self._watch.progressed:
                self._when_running()
                self._when_running = lambda: None
            materializer.run_if_due()
            self._liveness.touch(ticker.tick_if_due(lambda: caught_up(query)))
            if self._outages and self._outages.step(self._liveness.silent(), self._liveness.known_until()):
                materializer.notice()
            if (passed := losses.step(progressed=self._watch.progressed)) is not None:
                self._stop_query(query)
                return passed
            wrong = [problem for follower in followers if (problem := follower.status()) is not None]
            self.status.state = ", ".join(wrong) or "running"
        self._stop_query(query)
        return None

    def _check_lock(self, query: StreamingQuery) -> None:
        """Stop the query at once, and raise an error, if another job may have taken the checkpoint over."""
        try:
            self._guard()
        except OSError:
            query.stop()
            raise

    def _stop_query(self, query: StreamingQuery) -> None:
        """Wait for the running batch, then stop; an interrupted batch is repeated at the next start."""
        self.stop.log_signals()
        self.status.state = "finishing the batch"
        deadline = time.monotonic() + self.settings.job.stop_timeout_ms / 1000
        running = _last_batch(query)
        # One batch may follow another without a pause; by then the batch at the time of the stop request has ended.
        while query.isActive and query.status["isTriggerActive"] and _last_batch(query) == running:
            if self.stop.urgent or time.monotonic() > deadline:
                _log.warning("the batch was interrupted; it is repeated at the next start")
                break
            time.sleep(_POLL_EVERY_S / 5)
        self._watch.progress(query)
        if not stop_query(query):
            _log.warning("the source does not close while a broker is unavailable; the job ends without it")


def _last_batch(query: StreamingQuery) -> int | None:
    last = query.lastProgress
    return None if last is None else int(last["batchId"])
