"""Shell: the job as a command: signals, metrics, the live view, its exit code, one line if it fails."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from streaming.job import Job
from streaming.machine import logs, telemetry
from streaming.machine.logs import logger
from streaming.pipeline.job_metrics import JobCollector, serve_metrics
from streaming.settings.locations import absolute
from streaming.settings.model import Settings
from streaming.setup.errors import SetupError
from streaming.spark.root_cause import WAY_OUT, is_java_ended, reason, state_error
from streaming.stores.failure import StoreAwayError, is_passing
from streaming.tables.errors import TableError
from streaming.terminal.live_view import LiveView

FAILED_EXIT = 1
_log = logger("job")


def run_job(settings: Settings, *, once: bool = False, flush: bool = False) -> int:
    """Run the job as a command does: logs or a live view, signals, exit code."""
    logs.configure(settings.log.level, settings.log.format)
    return supervise(Job(settings), once=once, flush=flush)


def _metrics(job: Job) -> AbstractContextManager[object]:
    settings, pages = job.settings.metrics, job.settings.dashboard
    if not settings.port:
        return nullcontext()
    token = pages.token.get_secret_value()
    return serve_metrics(job.status, settings.host, settings.port, token=token, names=pages.allowed_hosts)


def supervise(job: Job, *, once: bool = False, flush: bool = False) -> int:
    """Run a job that signals may stop, shown on a terminal; return its exit code, and log why it failed."""
    try:
        with job.stop.by_signals(), _metrics(job), telemetry.sent("job", lambda: JobCollector(job.status).collect()):
            if once:
                job.run(once=True, flush=flush)
            else:
                with LiveView(job.status):
                    job.run()
    except (PySparkException, Py4JError, OSError, TableError) as error:
        if job.stop.is_requested and is_java_ended(error):
            # A stop signal to the whole process group, or to all processes of a unit, would end Spark's JVM at once.
            _log.warning("Spark's JVM was stopped, too; the interrupted batch is repeated at the next start")
            return 0
        if not job.has_begun:
            if isinstance(error, StoreAwayError):
                raise
            why = f"the job cannot start: {reason(error)}"
            if is_passing(why):
                raise StoreAwayError(f"{why}; {WAY_OUT}") from error
            # A user must fix something before a start.
            if isinstance(error, TableError):
                raise
            raise SetupError(why, "fix that, and start again") from error
        unreadable = state_error(error)
        if unreadable is not None:
            _log.error("the job failed", reason=unreadable, details=str(job.spark_log))
            return FAILED_EXIT
        # The error's text contains the stacks of two virtual machines, which are in the file.
        # The error of a full disk does not name the disk.
        tables = str(absolute(job.settings.job.tables))
        _log.error("the job failed", reason=reason(error), tables=tables, details=str(job.spark_log), remedy=WAY_OUT)
        return FAILED_EXIT
    return 0
