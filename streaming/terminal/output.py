"""Shell: answers on stdout: tables for people, one JSON object a line for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import sleep
from typing import Any, NamedTuple

import typer

from streaming.tables.replay_tables import EVERY_TABLE
from streaming.tables.schema import TIME, Row
from streaming.terminal.escape import printable
from streaming.terminal.format import brief_time_text, time_text
from streaming.terminal.table_layout import table_lines

USAGE_EXIT = 2
# A table that is written to a file or a pipe has this width.
UNBOUNDED_WIDTH = 10_000
_WATCH_EVERY_S = 2.0
# Fields that are times in answers of commands and of the API: columns of tables, and values derived from them.
TIMES = frozenset(
    {column.name for table in EVERY_TABLE.values() for column in table.columns if column.type == TIME}
    | {"hour", "last_at", "newest_event", "at", "known_until", "since", "until"}
    | {"spans_dropped_before", "computed_at"}
)

Render = Callable[[Any], str]


class Shown(NamedTuple):
    """One column for people.

    Attributes:
        header: As in the source system's own tools, if they have it.
        brief: The cell in a narrow space; None for the same as ``cell``.
        is_wide: Only shown with ``--wide``.
        is_brief: Only shown without ``--wide``, if other columns have the same in full.
        is_name: Its middle is left out if there is no space.
    """

    header: str
    cell: Callable[[Row], str]
    brief: Callable[[Row], str] | None = None
    is_wide: bool = False
    is_brief: bool = False
    is_name: bool = False


def field(header: str, name: str, render: Render | None = None, *, is_wide: bool = False) -> Shown:
    """Show one field of a row; null is ``-``."""
    return Shown(header, _cell(name, render), is_wide=is_wide)


def time_field(header: str, name: str, *, is_wide: bool = False) -> Shown:
    """Show one field that is a time."""
    return Shown(header, _cell(name, time_text), _cell(name, brief_time_text), is_wide)


def name_field(header: str, name: str, brief: Render | None = None) -> Shown:
    """Show one field that is a name, shorter in a narrow space."""
    return Shown(header, _cell(name, None), _cell(name, brief), is_name=True)


def _cell(name: str, render: Render | None) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        value = row.get(name)
        if value is None:
            return "-"
        return render(value) if render else str(value)

    return cell


def widened(shown: Sequence[Shown]) -> list[Shown]:
    """Return the columns so that all of them are shown only with ``--wide``."""
    return [column._replace(is_wide=True) for column in shown]


def yes_no(value: bool) -> str:
    """Write a boolean for people."""
    return "yes" if value else "no"


def is_terminal() -> bool:
    """Return whether people read the output on a screen."""
    return sys.stdout.isatty()


def show_rows(rows: Sequence[Row], shown: Sequence[Shown], *, title: str | None = None, is_wide: bool = False) -> None:
    """Write rows as a table for people, one line each.

    Args:
        is_wide: All columns, and nothing shortened. Otherwise the few most important columns; on a terminal long names
            lose their middle and lines their end, so that each fits.
    """
    from rich.console import Console
    from rich.text import Text

    columns = [column for column in shown if not (column.is_brief if is_wide else column.is_wide)]
    cells = [[column.header for column in columns]]
    for row in rows:
        cells.append([printable((column.cell if is_wide else column.brief or column.cell)(row)) for column in columns])
    is_bounded = is_terminal() and not is_wide
    console = Console(file=sys.stdout, width=None if is_bounded else UNBOUNDED_WIDTH, highlight=False)
    names = frozenset(place for place, column in enumerate(columns) if column.is_name)
    lines = table_lines(cells, console.width if is_bounded else None, names)
    with console.capture() as capture:
        if title is not None:
            console.print(Text(printable(title), style="bold"), no_wrap=True, overflow="ignore", crop=False)
        for number, line in enumerate(lines):
            text = Text(line, style="" if number else "bold")
            console.print(text, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)
    sys.stdout.write(capture.get())


def again_and_again(write: Callable[[], None]) -> None:
    """Write an answer again and again until Ctrl-C; on a terminal each replaces the one before it."""
    with suppress(KeyboardInterrupt):
        while True:
            if is_terminal():
                # Where it is moved to the first line, and what is below is deleted.
                sys.stdout.write("\x1b[H\x1b[J")
            write()
            sys.stdout.flush()
            sleep(_WATCH_EVERY_S)


def write_json_lines(values: Iterable[object], times: frozenset[str] = TIMES) -> None:
    """Write one JSON object per line, times as RFC 3339; ``times``: the names of fields that are times."""
    for value in values:
        sys.stdout.write(json.dumps(with_times(value, times), ensure_ascii=False) + "\n")


def with_times(value: object, times: frozenset[str]) -> object:
    """Return the value with every field of these names as a time in RFC 3339, however deep."""
    if isinstance(value, Mapping):
        return {
            key: time_text(each) if key in times and isinstance(each, int) else with_times(each, times)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [with_times(each, times) for each in value]
    return value


@contextmanager
def answering() -> Iterator[None]:
    """Convert unanswerable requests to a sentence on stderr and exit code 2: the same arguments can never work."""
    from streaming.tables.errors import AmbiguousError, NoTablesError, NotFoundError

    try:
        yield
    except (NotFoundError, NoTablesError, AmbiguousError) as error:
        _print(str(error))
        raise typer.Exit(USAGE_EXIT) from error


def _print(sentence: str) -> None:
    sys.stderr.write(f"error: {sentence}\n")
