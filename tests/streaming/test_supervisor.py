"""The job as a command runs it: how it ends, and its metrics while it runs."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException
from structlog.testing import capture_logs

from streaming.machine.stop_request import StopRequest
from streaming.settings.model import Settings, load
from streaming.setup.errors import SetupError
from streaming.stores.failure import StoreAwayError
from streaming.supervisor import FAILED_EXIT, supervise
from streaming.tables.errors import TableError
from streaming.terminal.live_view import LiveStatus
from tests.kit.processes import free_port


class FailingJob:
    """Fails as the test has it."""

    def __init__(self, settings: Settings, error: Exception, *, has_begun: bool = True) -> None:
        self.settings, self.error, self.has_begun = settings, error, has_begun
        self.stop = StopRequest()
        self.spark_log = Path("/log")

    def run(self, *, once: bool = False, flush: bool = False) -> None:
        raise self.error


@pytest.fixture
def failing(tmp_path: Path) -> Callable[..., FailingJob]:
    def make(error: Exception, **more: bool) -> FailingJob:
        return FailingJob(load(None, {"job.tables": tmp_path / "t"}), error, **more)

    return make


@pytest.mark.parametrize("error", [PySparkException("no space left"), OSError(28, "No space left on device")])
def test_a_failure_is_one_line_with_its_remedy(error: Exception, failing: Callable[..., FailingJob]) -> None:
    with capture_logs() as logged:
        assert supervise(failing(error), once=True) == FAILED_EXIT  # type: ignore[arg-type]
    [line] = logged
    assert (line["log_level"], line["event"]) == ("error", "the job failed")
    assert "space left" in line["reason"]
    assert line["remedy"]


def test_an_error_before_the_first_batch_must_be_fixed_by_people(failing: Callable[..., FailingJob]) -> None:
    with pytest.raises(SetupError, match=r"the job cannot start: .*No space left"):
        supervise(failing(OSError(28, "No space left on device"), has_begun=False), once=True)  # type: ignore[arg-type]
    with pytest.raises(TableError):
        supervise(failing(TableError("written by a newer release"), has_begun=False), once=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "error",
    [
        StoreAwayError(5, "error sending request", "s3://lake/c"),
        TableError("s3://lake/t/changes cannot be used: 503 Service Unavailable. Choose a folder with --tables."),
        PySparkException("boom\nCaused by: java.net.ConnectException: Connection refused"),
    ],
)
def test_a_store_that_vanishes_before_the_first_batch_is_left_to_the_next_start(
    error: Exception, failing: Callable[..., FailingJob]
) -> None:
    with pytest.raises(StoreAwayError, match=r"error sending request|the job cannot start: .*(503|refused).*continues"):
        supervise(failing(error, has_begun=False), once=True)  # type: ignore[arg-type]


def test_a_jvm_that_ends_with_a_stop_is_no_failure_and_one_that_ends_by_itself_is(
    failing: Callable[..., FailingJob],
) -> None:
    ended = Py4JNetworkError("Answer from Java side is empty")
    for is_requested, exit_code in ((True, 0), (False, FAILED_EXIT)):
        job = failing(ended)
        if is_requested:
            job.stop.request()
        with capture_logs():
            assert supervise(job, once=True) == exit_code  # type: ignore[arg-type]


class ScrapedJob(FailingJob):
    """Reads its own metrics while it runs."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, OSError())
        self.status = LiveStatus(state="running", events=7)
        self.scraped = ""

    def run(self, *, once: bool = False, flush: bool = False) -> None:
        address = f"http://127.0.0.1:{self.settings.metrics.port}/metrics"
        try:
            with urllib.request.urlopen(address, timeout=30) as answer:
                self.scraped = answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                self.scraped = error.reason


def test_metrics_are_served_while_the_job_runs_where_a_port_is_set() -> None:
    port = free_port()
    job = ScrapedJob(load(None, {"metrics.port": port}))
    assert supervise(job, once=True) == 0  # type: ignore[arg-type]
    assert "rebalance_monitor_job_events_total 7.0" in job.scraped
    with pytest.raises(OSError):
        job.run()
    assert load().metrics.port == 0


def test_metrics_that_other_machines_reach_need_the_token_of_the_pages() -> None:
    open_to_all = {"metrics.port": free_port(), "metrics.host": "0.0.0.0"}
    with pytest.raises(SetupError, match=r"metrics\.host.* no token"):
        supervise(ScrapedJob(load(None, open_to_all)), once=True)  # type: ignore[arg-type]
    job = ScrapedJob(load(None, {**open_to_all, "dashboard.token": "t" * 16}))
    assert supervise(job, once=True) == 0  # type: ignore[arg-type]
    assert job.scraped == "Unauthorized"
