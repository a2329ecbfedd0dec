"""Shell: `optimize`: maintenance of the tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.commands.options import JsonOption, TablesOption, path_option
from streaming.settings.locations import absolute, hand_on
from streaming.stores.access import require_stores

if TYPE_CHECKING:
    from streaming.settings.model import Settings
    from streaming.tables.engine import Engine
    from streaming.tables.maintenance import Kept
    from streaming.tables.schema import Row
    from streaming.tables.writer import Upkeep

_HOUR_MS = 3_600_000
_TIMES = frozenset({"before", "newest"})


def optimize(
    tables: TablesOption = None,
    config: Annotated[Path | None, path_option("Settings file; section [retention] sets what is kept.", "FILE")] = None,
    writer: Annotated[
        str | None,
        typer.Option(
            metavar="WRITER",
            help="delta-rs or delta-spark: who writes these tables from now on. No job may be writing them.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, and show what would be compacted and dropped, and why.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compact small files, drop rows beyond their retention and unneeded files.

    It may run alongside the job, except where Spark writes tables on S3.
    """
    from streaming.settings.locations import catalog_schema
    from streaming.settings.model import load
    from streaming.tables import maintenance as upkeep
    from streaming.tables.engine import WRITERS, change_writer, exclusive_commits, stored_writer
    from streaming.terminal.output import answering, write_json_lines
    from streaming.views.reader import Reader

    if writer is not None and writer not in WRITERS:
        raise typer.BadParameter(f"{writer}: there are {' and '.join(WRITERS)}", param_hint="--writer")
    if writer is not None and dry_run:
        raise typer.BadParameter("changes the tables, which --dry-run does not", param_hint="--writer")
    settings = load(config, {"job.tables": tables}, os.environ)
    hand_on(settings.storage.plain_options(), os.environ)
    root = absolute(settings.job.tables)
    require_stores({"--tables": root})
    with answering():
        if not catalog_schema(root):
            Reader(root)
        before = stored_writer(root)
    with nullcontext() if dry_run else exclusive_commits(root, before, writer):
        if writer is not None:
            with answering():
                change_writer(root, writer)
        with _engine(settings, stored_writer(root)) as engine:
            done = upkeep.optimize(
                root,
                engine=engine,
                keep_ms=settings.retention.keep_ms(),
                vacuum_after_ms=settings.tables.vacuum_after_hours * _HOUR_MS,
                dry_run=dry_run,
                report=_progress if sys.stderr.isatty() else lambda _: None,
            )
    rows = [_row(kept, dry_run=dry_run) for kept in done]
    if as_json:
        write_json_lines(rows, _TIMES)
    else:
        _show(rows, dry_run=dry_run)


def _row(kept: Kept, *, dry_run: bool) -> Row:
    upkeep, newest, setting = kept.upkeep, kept.newest_ms, f"retention.{kept.upkeep.table}_hours"
    return {
        "table": upkeep.table,
        "dry_run": dry_run,
        "files_before": upkeep.files_before,
        "files_after": upkeep.files_after,
        "files_compacted": upkeep.files_compacted,
        "files_deleted": upkeep.files_deleted,
        "rows_dropped": sum(dropped.rows for dropped in upkeep.dropped),
        "keep_hours": None if kept.keep_ms is None else kept.keep_ms // _HOUR_MS,
        "setting": None if upkeep.table == "groups" else setting,
        "held_back": kept.is_held_back,
        "dropped": [
            {
                "cluster": dropped.cluster,
                "rows": dropped.rows,
                "before": dropped.before_ms,
                "newest": newest if isinstance(newest, int) else newest.get(dropped.cluster or ""),
            }
            for dropped in upkeep.dropped
        ],
    }


def _show(rows: Sequence[Row], *, dry_run: bool) -> None:
    from streaming.terminal.output import Shown, field, show_rows

    after = [] if dry_run else [field("AFTER", "files_after")]
    show_rows(
        rows,
        [
            field("TABLE", "table"),
            field("FILES", "files_before"),
            *after,
            field("TO-COMPACT" if dry_run else "COMPACTED", "files_compacted"),
            field("TO-DELETE" if dry_run else "DELETED", "files_deleted"),
            field("ROWS-TO-DROP" if dry_run else "ROWS-DROPPED", "rows_dropped"),
            Shown("KEEPS", _keeps),
        ],
    )
    for line in _reasons(rows, dry_run=dry_run):
        sys.stdout.write(f"{line}\n")


def _keeps(row: Row) -> str:
    if row["setting"] is None:
        return "now"
    return "all" if row["keep_hours"] is None else f"{row['keep_hours']} h"


def _reasons(rows: Sequence[Row], *, dry_run: bool) -> Iterator[str]:
    """Write why rows are dropped, and why old ones are not: up to three short lines for each table and cluster."""
    from streaming.terminal.escape import printable
    from streaming.terminal.format import time_text

    done = "to drop" if dry_run else "dropped"
    for row in rows:
        for dropped in row["dropped"]:
            of_cluster = "" if not dropped["cluster"] else f", cluster {printable(dropped['cluster'])}"
            newest = "newest batch" if row["table"] == "rejected_events" else "newest event"
            yield ""
            yield f"{row['table']}{of_cluster}: {dropped['rows']} rows {done}"
            yield f"  before {time_text(dropped['before'])}: {row['setting']} = {row['keep_hours']}"
            yield f"  {newest} {time_text(dropped['newest'])}"
        if row["held_back"]:
            yield ""
            yield f"{row['table']}: old rows stay until every table that follows has applied them: run the job"
    if dry_run:
        yield ""
        yield "Nothing was changed."


@contextmanager
def _engine(settings: Settings, writer: str) -> Iterator[Engine]:
    """Yield the engine of a writer; Spark starts only for Spark's."""
    from streaming.spark.session import end_session, start_session
    from streaming.tables.engine import DELTA_SPARK, DeltaRsEngine, DeltaSparkEngine

    if writer != DELTA_SPARK:
        yield DeltaRsEngine()
        return
    # The stores that Spark must reach depend on it.
    chosen = settings.model_copy(update={"tables": settings.tables.model_copy(update={"writer": writer})})
    tables = absolute(settings.job.tables)
    spark = start_session(chosen, shared=[tables] if isinstance(tables, Path) else [])
    try:
        yield DeltaSparkEngine(spark)
    finally:
        end_session(spark)


def _progress(upkeep: Upkeep) -> None:
    after = "" if upkeep.files_after is None else f" → {upkeep.files_after}"
    sys.stderr.write(f"{upkeep.table}: {upkeep.files_before}{after} files\n")
