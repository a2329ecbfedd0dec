"""Shell: answers on stdout: tables for people, one JSON object a line for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import typer

from streaming.tables.schema import Row
from streaming.terminal.escape import printable
from streaming.terminal.format import time_text

NOT_FOUND_EXIT = 1
USAGE_EXIT = 2
# A table written to a file or a pipe is not wrapped.
_UNBOUNDED_WIDTH = 10_000

Render = Callable[[Any], str]


class Shown(NamedTuple):
    """One column for people.

    Attributes:
        header: As the source system's own tools write it, where they have it.
        cell: Returns the text of a row.
    """

    header: str
    cell: Callable[[Row], str]


def field(header: str, name: str, render: Render | None = None) -> Shown:
    """Show one field of a row; null is ``-``."""

    def cell(row: Row) -> str:
        value = row.get(name)
        if value is None:
            return "-"
        return render(value) if render else str(value)

    return Shown(header, cell)


def time_field(header: str, name: str) -> Shown:
    """Show one field that is a time."""
    return field(header, name, time_text)


def yes_no(value: bool) -> str:
    """Write a truth for people."""
    return "yes" if value else "no"


def show_rows(rows: Sequence[Row], shown: Sequence[Shown], *, title: str | None = None) -> None:
    """Write rows as a table for people: plain columns, wrapped only on a terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else _UNBOUNDED_WIDTH, highlight=False)
    if title is not None:
        console.print(Text(printable(title), style="bold"))
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for column in shown:
        # Ids are what people copy: they are folded, never cut.
        table.add_column(Text(column.header), overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(column.cell(row))) for column in shown))
    with console.capture() as capture:
        console.print(table)
    sys.stdout.write("\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n")


def write_json_lines(values: Iterable[object], times: frozenset[str]) -> None:
    """Write one JSON object a line, times as RFC 3339."""
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
    """Convert what cannot be answered into a sentence on stderr and an exit code: 1 not found, 2 usage."""
    from streaming.tables.errors import AmbiguousError, NoTablesError, NotFoundError

    try:
        yield
    except NotFoundError as error:
        _print(str(error))
        raise typer.Exit(NOT_FOUND_EXIT) from error
    except (NoTablesError, AmbiguousError) as error:
        _print(str(error))
        raise typer.Exit(USAGE_EXIT) from error


def _print(sentence: str) -> None:
    sys.stderr.write(f"error: {sentence}\n")
