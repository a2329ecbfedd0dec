"""Shell: how `show` opens tables, reads rows of a listing, and writes them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from streaming.commands.options import tables_root

if TYPE_CHECKING:
    from pathlib import Path

    from dashboard.reading.questions import Reading
    from streaming.tables.schema import Row
    from streaming.terminal.output import Shown


@contextmanager
def opened(tables: str | None, config: Path | None, cluster: str | None, group: str | None) -> Iterator[Reading]:
    """Open the tables, which must know the cluster and the group; report a failure in one line."""
    from dashboard.reading.questions import Reading
    from streaming.terminal.output import answering
    from streaming.views.name_checks import require_present

    with answering():
        reading = Reading.once(tables_root(tables, config))
        require_present(reading.tables, cluster, group)
        yield reading


def rows_of(
    reading: Reading,
    listing: str,
    chosen: Mapping[str, str | int | None],
    *,
    sort: str = "",
    limit: int | None = None,
    is_whole: bool = True,
) -> list[Row]:
    """Return rows of a listing, as in the API.

    Args:
        chosen: Parameters of the listing; times in epoch ms; None or empty for any.
        sort: One of the listing's orders; empty for its default. limit: None for no limit.
        is_whole: False to leave out what the listing adds to the rows.
    """
    from dashboard.reading.listing_query import BadQuestionError, piece
    from dashboard.reading.listings import LISTINGS
    from dashboard.reading.questions import ALL_ROWS
    from streaming.terminal.format import time_text

    texts = {name: time_text(value) if isinstance(value, int) else str(value or "") for name, value in chosen.items()}
    try:
        most = ALL_ROWS if limit is None else limit
        return piece(reading, LISTINGS[listing], texts, sort=sort, limit=most, is_whole=is_whole).rows
    except BadQuestionError as error:
        raise typer.BadParameter(str(error)) from error


def show(
    rows: Sequence[Row],
    shown: Sequence[Shown],
    nothing: str,
    *,
    as_json: bool,
    is_wide: bool,
    cluster: str | None = None,
    group: str | None = None,
) -> None:
    """Write rows, or that there are none; columns with only one cluster or group are left out if space is scarce."""
    from streaming.terminal.output import show_rows, write_json_lines

    if as_json:
        write_json_lines(rows)
    elif rows:
        same = {header for header, value in (("CLUSTER", cluster), ("GROUP", group)) if value is not None}
        columns = [column._replace(is_wide=True) if column.header in same else column for column in shown]
        show_rows(rows, columns, is_wide=is_wide)
    else:
        sys.stderr.write(f"{nothing}\n")
