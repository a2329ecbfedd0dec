"""Shell: `explain`: one rebalance as a report."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from streaming.commands.options import ConfigOption, JsonOption, TablesOption, annotation_spans, tables_root


def explain(
    rebalance_id: Annotated[str, typer.Argument(metavar="REBALANCE_ID", help="The id, or its first characters.")],
    tables: TablesOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report one rebalance: its causes, the moved queues, its duration, and whether clients agree."""
    from dashboard.reading.rebalance_detail import rebalance_detail
    from streaming.terminal.output import answering, write_json_lines
    from streaming.views.explain import story
    from streaming.views.reader import Reader

    with answering():
        reader = Reader(tables_root(tables, config))
        found = rebalance_detail(reader, rebalance_id, most=sys.maxsize, near=annotation_spans(config))
    if as_json:
        write_json_lines([found])
    else:
        sys.stdout.write(story(found) + "\n")
