"""Command: `demo`: the job on a simulated fleet that lives now."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from streaming.commands.options import path_option
from streaming.commands.spans import span_ms
from streaming.setup_error import SetupError
from streaming.sole_use import sole_use
from streaming.writable import why_not_writable

# On a terminal the demo runs until stopped; where nobody can stop it, so long.
UNATTENDED_MS = 60_000
_OURS = ".rebalance-monitor-demo"


def demo(
    length: Annotated[
        str | None, typer.Option("--for", metavar="SPAN", help="End after so long, e.g. 60s. Else: when stopped.")
    ] = None,
    folder: Annotated[Path, path_option("Where events, tables and checkpoint go; emptied at each start.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option(help="Another seed is another fleet.")] = 1,
    groups: Annotated[int, typer.Option(min=3, help="Of the fleet, over three clusters.")] = 24,
    members: Annotated[int, typer.Option(min=3, help="Of the fleet, about.")] = 180,
) -> None:
    """Run the job on a simulated fleet of Kafka, RocketMQ and MetaQ groups, and watch it rebalance.

    On a terminal until Ctrl-C; elsewhere, or with --for, it ends by itself. Then it says what it saw.
    """
    from rich.console import Console

    from streaming import logs
    from streaming.job import FAILED_EXIT, Job, supervise
    from streaming.settings import load
    from streaming.simulator.fleet import Fleet
    from streaming.simulator.live import LiveWriter
    from streaming.summary import print_summary, summarise
    from streaming.wall_clock import now_ms

    length_ms = span_ms(length, "--for")
    if length_ms is None and not sys.stderr.isatty():
        length_ms = UNATTENDED_MS
    events, tables = folder / "events", folder / "tables"
    settings = load(
        overrides={
            "events.folder": str(events.absolute()),
            "job.tables": tables,
            "job.checkpoint": folder / "checkpoint",
            # A demo shows at once what a long-running job may show a little later.
            "job.trigger_interval_ms": 1_000,
            "job.materialize_interval_ms": 2_000,
        },
        env=os.environ,
    )
    logs.configure(settings.log.level, settings.log.format)
    with _own_folder(folder):
        job = Job(settings)
        fleet = Fleet(seed, start_ms=now_ms(), groups=groups, members=members, speed=2.0, short_sessions=True)
        ending = threading.Timer((length_ms or 0) / 1000, job.stop.ask)
        ending.daemon = True
        if length_ms is not None:
            # What counts is the time in which there is something to see: from the first batch on.
            job.when_running(ending.start)
        with LiveWriter(fleet, events, folder / "truth.jsonl") as simulator:
            exit_code = supervise(job)
        ending.cancel()
        print_summary(summarise(tables), Console())
    sys.exit(exit_code if simulator.failure is None else FAILED_EXIT)


@contextmanager
def _own_folder(folder: Path) -> Iterator[None]:
    """Make the folder, or empty the one that an earlier demo made, and keep other demos out; touch no other.

    Raises:
        SetupError: It is another's, or cannot be written.
    """
    another = "name another one with --folder"
    if (wrong := why_not_writable(folder)) is not None:
        raise SetupError(wrong, another)
    ours = folder / _OURS
    try:
        if folder.exists() and any(folder.iterdir()) and not ours.exists():
            raise SetupError(f"{folder} has files that no demo made", another)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(f"{folder} cannot be used: {error.strerror}", another) from error
    with sole_use(ours, problem=f"another demo runs in {folder}", way_out=f"stop it, or {another}"):
        for old in folder.iterdir():
            if old.is_dir() and not old.is_symlink():
                shutil.rmtree(old)
            elif old != ours:
                old.unlink()
        (folder / "events").mkdir()
        yield
