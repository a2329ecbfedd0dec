"""Shell: `explain`: one rebalance as a report."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from streaming.commands.options import ConfigOption, JsonOption, TablesOption, tables_root


def explain(
    rebalance_id: Annotated[str, typer.Argument(metavar="REBALANCE_ID", help="The id, or its first characters.")],
    tables: TablesOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report one rebalance: its causes, the moved queues, its duration, and whether clients agree."""
    from streaming.terminal.output import answering, write_json_lines
    from streaming.views import explain as views
    from streaming.views.reader import Reader, time_columns

    with answering():
        explanation = views.explain(Reader(tables_root(tables, config)), rebalance_id)
    if as_json:
        write_json_lines([explanation], time_columns("rebalances") | time_columns("members"))
    else:
        sys.stdout.write(views.story(explanation) + "\n")
