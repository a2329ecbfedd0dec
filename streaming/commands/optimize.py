"""Shell: `optimize`: upkeep of the tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.commands.options import JsonOption, TablesOption, path_option
from streaming.settings.locations import absolute, hand_on
from streaming.stores.access import require_stores

if TYPE_CHECKING:
    from streaming.settings.model import Settings
    from streaming.tables.engine import Engine
    from streaming.tables.writer import Upkeep

_HOUR_MS = 3_600_000


def optimize(
    tables: TablesOption = None,
    config: Annotated[Path | None, path_option("Settings file; section [tables] sets what is kept.", "FILE")] = None,
    writer: Annotated[
        str | None,
        typer.Option(
            metavar="WRITER",
            help="delta-rs or delta-spark: who writes these tables from now on. No job may be writing them.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compact small files, drop old rows of the journal and unneeded files.

    It may run beside the job, except where Spark writes tables on S3.
    """
    from streaming.settings.locations import catalog_schema
    from streaming.settings.model import load
    from streaming.tables import maintenance as upkeep
    from streaming.tables.engine import WRITERS, change_writer, exclusive_commits, stored_writer
    from streaming.terminal.output import answering, field, show_rows, write_json_lines
    from streaming.views.reader import Reader

    if writer is not None and writer not in WRITERS:
        raise typer.BadParameter(f"{writer}: there are {' and '.join(WRITERS)}", param_hint="--writer")
    settings = load(config, {"job.tables": tables}, os.environ)
    hand_on(settings.storage.plain_options(), os.environ)
    root = absolute(settings.job.tables)
    require_stores({"--tables": root})
    with answering():
        if not catalog_schema(root):
            Reader(root)
        before = stored_writer(root)
    with exclusive_commits(root, before, writer):
        if writer is not None:
            with answering():
                change_writer(root, writer)
        with _engine(settings, stored_writer(root)) as engine:
            done = upkeep.optimize(
                root,
                engine=engine,
                journal_retention_ms=settings.tables.journal_retention_hours * _HOUR_MS,
                progress_retention_ms=settings.tables.progress_retention_hours * _HOUR_MS,
                vacuum_after_ms=settings.tables.vacuum_after_hours * _HOUR_MS,
                report=_progress if sys.stderr.isatty() else lambda _: None,
            )
    rows = [each._asdict() for each in done]
    if as_json:
        write_json_lines(rows, frozenset())
        return
    show_rows(
        rows,
        [
            field("TABLE", "table"),
            field("FILES-BEFORE", "files_before"),
            field("FILES-AFTER", "files_after"),
            field("JOURNAL-ROWS-DROPPED", "journal_rows_dropped"),
            field("FILES-DELETED", "files_deleted"),
        ],
    )


@contextmanager
def _engine(settings: Settings, writer: str) -> Iterator[Engine]:
    """Yield the engine of a writer; Spark starts only for its own."""
    from streaming.spark.session import end_session, start_session
    from streaming.tables.engine import DELTA_SPARK, DeltaRsEngine, DeltaSparkEngine

    if writer != DELTA_SPARK:
        yield DeltaRsEngine()
        return
    # Which stores Spark is to reach depends on it.
    chosen = settings.model_copy(update={"tables": settings.tables.model_copy(update={"writer": writer})})
    tables = absolute(settings.job.tables)
    spark = start_session(chosen, shared=[tables] if isinstance(tables, Path) else [])
    try:
        yield DeltaSparkEngine(spark)
    finally:
        end_session(spark)


def _progress(upkeep: Upkeep) -> None:
    sys.stderr.write(f"{upkeep.table}: {upkeep.files_before} → {upkeep.files_after} files\n")
