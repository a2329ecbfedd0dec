"""Command: `demo`: the job on a simulated fleet that lives now."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.commands.command_group import announce
from streaming.commands.options import path_option, span_ms
from streaming.machine.file_lock import exclusive_lock
from streaming.machine.folder_check import write_error
from streaming.setup.errors import SetupError

if TYPE_CHECKING:
    from streaming.job import Job
    from streaming.settings.model import Settings

# On a terminal the demo runs until it is stopped; elsewhere it stops after this time.
UNATTENDED_MS = 60_000
_OURS = ".rebalance-monitor-demo"


def demo(
    length: Annotated[
        str | None,
        typer.Option("--for", metavar="SPAN", help="Stop after this time, e.g. 60s. Default: never."),
    ] = None,
    folder: Annotated[Path, path_option("Where events, tables and checkpoint go; emptied at each start.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the random fleet.")] = 1,
    groups: Annotated[int, typer.Option(metavar="N", min=3, help="Groups of the fleet, in three clusters.")] = 24,
    members: Annotated[int, typer.Option(metavar="N", min=3, help="Members of the fleet, approximately.")] = 180,
) -> None:
    """Run the job on a simulated fleet of Kafka, RocketMQ and MetaQ groups; watch it here and in a browser.

    On a terminal until Ctrl-C; elsewhere, or with --for, it stops by itself. At the end it prints a summary.
    """
    announce("loading the job and its simulated fleet; the view opens in some seconds")
    from rich.console import Console

    from streaming.job import Job
    from streaming.machine import logs
    from streaming.machine.clock import now_ms
    from streaming.settings.model import load
    from streaming.simulator.fleet import Fleet
    from streaming.simulator.live_writer import LiveWriter
    from streaming.supervisor import FAILED_EXIT, supervise
    from streaming.views.job_summary import print_summary, summarise

    length_ms = span_ms(length, "--for")
    if length_ms is None and not sys.stderr.isatty():
        length_ms = UNATTENDED_MS
    events, tables = folder / "events", folder / "tables"
    settings = load(
        overrides={
            "events.folder": events.absolute(),
            "job.tables": tables,
            "job.checkpoint": folder / "checkpoint",
            # A demo shows at once what a long-running job may show later.
            "job.materialize_interval_ms": 2_000,
        },
        env=os.environ,
    )
    logs.configure(settings.log.level, settings.log.format)
    with _own_folder(folder):
        job = Job(settings)
        fleet = Fleet(seed, start_ms=now_ms(), groups=groups, members=members, speed=2.0, short_sessions=True)
        ending = threading.Timer((length_ms or 0) / 1000, job.stop.request)
        ending.daemon = True
        if length_ms is not None:
            # The time counts from the first batch on, when there is something to see.
            job.when_running(ending.start)
        with _pages(settings, job), LiveWriter(fleet, events, folder / "truth.jsonl") as simulator:
            exit_code = supervise(job)
        ending.cancel()
        print_summary(summarise(tables), Console())
    sys.exit(exit_code if simulator.failure is None else FAILED_EXIT)


@contextmanager
def _pages(settings: Settings, job: Job) -> Iterator[None]:
    """Serve the pages over the demo's tables, at the address in the settings or, if that is taken, a free one."""
    from dashboard.server import DashboardServer

    tables, chosen, widespread = settings.job.tables, settings.dashboard, settings.widespread
    try:
        server = DashboardServer(tables, chosen, widespread=widespread)
    except SetupError:
        free = chosen.model_copy(update={"port": 0})
        server = DashboardServer(tables, free, widespread=widespread)
    with server.in_background():
        sys.stderr.write(f"pages: {server.url}\n")
        job.status.pages = server.url
        yield


@contextmanager
def _own_folder(folder: Path) -> Iterator[None]:
    """Create the folder, or empty the one that an earlier demo created, and keep other demos out; touch no other.

    Raises:
        SetupError: It belongs to another program, or cannot be written.
    """
    another = "name another one with --folder"
    if (wrong := write_error(folder)) is not None:
        raise SetupError(wrong, another)
    ours = folder / _OURS
    try:
        if folder.exists() and any(folder.iterdir()) and not ours.exists():
            raise SetupError(f"{folder} has files that were not made by a demo", another)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(f"{folder} cannot be used: {error.strerror}", another) from error
    with exclusive_lock(ours, problem=f"another demo runs in {folder}", remedy=f"stop it, or {another}"):
        for old in folder.iterdir():
            if old.is_dir() and not old.is_symlink():
                shutil.rmtree(old)
            elif old != ours:
                old.unlink()
        (folder / "events").mkdir()
        yield
