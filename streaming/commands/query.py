"""Command: `query`: the predefined questions, their answers, and their SQL."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.commands.options import (
    ClusterOption,
    ConfigOption,
    GroupOption,
    JsonOption,
    SinceOption,
    TablesOption,
    TimeOption,
    UntilOption,
    WideOption,
    chosen_of,
    tables_root,
    time_ms,
)

if TYPE_CHECKING:
    from dashboard.questions.answer import Answer


def query(
    name: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="Name of a question. Without it all are listed.")
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    at: TimeOption = None,
    cluster: ClusterOption = None,
    group: GroupOption = None,
    topic: Annotated[str | None, typer.Option(metavar="TOPIC", help="The topic, where a question needs one.")] = None,
    queue: Annotated[int | None, typer.Option(metavar="NUMBER", min=-1, help="The queue (partition).")] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", metavar="N", min=1, help="Maximum number of rows.")
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(metavar="DIALECT", help="Print the SQL for duckdb, spark or trino instead, to run it elsewhere."),
    ] = None,
    tables: TablesOption = None,
    config: ConfigOption = None,
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run one of the ready questions: who rebalances most, why, at what cost; `query` alone lists them."""
    from dashboard.questions.catalog import DIALECTS, question, questions
    from streaming.terminal.output import answering, field, show_rows, write_json_lines

    if name is None:
        listed = [
            {"name": question.name, "title": question.title, "parameters": list(question.parameters)}
            for question in questions().values()
        ]
        if as_json:
            write_json_lines(listed, frozenset())
        else:
            show_rows(listed, [field("QUESTION", "name"), field("", "title")])
        return
    sql = chosen_of("--sql", sql, DIALECTS)
    given = {
        "since": time_ms("--since", since),
        "until": time_ms("--until", until),
        "at": time_ms("--at", at),
        "cluster": cluster,
        "group": group,
        "topic": topic,
        "queue": queue,
        "limit": limit,
    }
    with answering():
        chosen = question(name)
    try:
        if sql is not None:
            sys.stdout.write(
                f"-- {chosen.title}\n{chosen.bound(next(dialect for dialect in DIALECTS if dialect == sql), given)}"
            )
            return
        chosen.values(given)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    _print(_answer(name, given, tables, config), as_json=as_json, is_wide=wide)


def _answer(name: str, given: Mapping[str, object], tables: str | None, config: Path | None) -> Answer:
    from dashboard.questions.answer import answer
    from dashboard.questions.catalog import question
    from dashboard.reading.questions import Reading
    from streaming.terminal.output import answering
    from streaming.views.name_checks import require_names

    with answering():
        reading = Reading.once(tables_root(tables, config))
        require_names(reading.tables, given)
        return answer(question(name), reading.tables, reading.queries, given)


def _print(found: Answer, *, as_json: bool, is_wide: bool) -> None:
    from streaming.terminal.output import name_field, show_rows, time_field, write_json_lines

    if as_json:
        write_json_lines(found.rows, found.times)
    elif found.rows:
        columns = [(name.upper().replace("_", "-"), name) for name in found.columns]
        shown = [time_field(*column) if column[1] in found.times else name_field(*column) for column in columns]
        show_rows(found.rows, shown, is_wide=is_wide)
    else:
        sys.stderr.write("no rows\n")
