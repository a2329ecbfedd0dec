"""Shell: `optimize`: upkeep of the tables."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.commands.options import JsonOption, TablesOption
from streaming.settings.locations import hand_on

if TYPE_CHECKING:
    from streaming.tables.writer import Upkeep

_HOUR_MS = 3_600_000


def optimize(
    tables: TablesOption = None,
    config: Annotated[Path | None, typer.Option(help="Settings file; section [tables] sets what is kept.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compact small files, drop old rows of the journal and unneeded files; may run beside the job."""
    from streaming.settings.model import load
    from streaming.tables import maintenance as upkeep
    from streaming.terminal.output import answering, field, show_rows, write_json_lines
    from streaming.views.reader import Reader

    settings = load(config, {"job.tables": tables}, os.environ)
    hand_on(settings.storage.plain_options(), os.environ)
    with answering():
        Reader(settings.job.tables)
    done = upkeep.optimize(
        settings.job.tables,
        journal_retention_ms=settings.tables.journal_retention_hours * _HOUR_MS,
        vacuum_after_ms=settings.tables.vacuum_after_hours * _HOUR_MS,
        told=_progress if sys.stderr.isatty() else lambda _: None,
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


def _progress(upkeep: Upkeep) -> None:
    sys.stderr.write(f"{upkeep.table}: {upkeep.files_before} → {upkeep.files_after} files\n")
