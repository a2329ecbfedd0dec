"""Shell: `explain`: one rebalance told as a story."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from streaming.commands.options import JsonOption, TablesOption, tables_root


def explain(
    rebalance_id: Annotated[str, typer.Argument(metavar="REBALANCE_ID", help="Or how it begins.")],
    tables: TablesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what happened in a rebalance, who caused it, what moved, how long it took, whether clients agree."""
    from streaming.output import answering, write_json_lines
    from streaming.views import explain as views
    from streaming.views.reading import Reader, time_columns

    with answering():
        told = views.explain(Reader(tables_root(tables)), rebalance_id)
    if as_json:
        write_json_lines([told], time_columns("rebalances") | time_columns("members"))
    else:
        sys.stdout.write(views.story(told) + "\n")
