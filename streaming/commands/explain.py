"""Shell: `explain`: one rebalance as a report."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from streaming.commands.options import (
    ClusterOption,
    ConfigOption,
    GroupOption,
    JsonOption,
    TablesOption,
    annotation_spans,
    tables_root,
)


def explain(
    rebalance_id: Annotated[
        str | None, typer.Argument(metavar="REBALANCE_ID", help="The id, or its first characters.")
    ] = None,
    group: GroupOption = None,
    cluster: ClusterOption = None,
    last: Annotated[bool, typer.Option("--last", help="The last rebalance of --group.")] = False,
    tables: TablesOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report one rebalance: its causes, the moved queues, its duration, and whether clients agree.

    Name it by its id, or the last one of a group with --group GROUP --last.
    """
    from dashboard.reading.rebalance_detail import rebalance_detail
    from streaming.terminal.escape import printable
    from streaming.terminal.output import answering, write_json_lines
    from streaming.views.explain import story
    from streaming.views.liveness_reader import blind_text
    from streaming.views.reader import Reader
    from streaming.views.rebalances import last_rebalance_of

    if (rebalance_id is None) != last or last != (group is not None) or (cluster and not last):
        raise typer.BadParameter("name either REBALANCE_ID, or --group GROUP --last, with --cluster if several have it")
    with answering():
        reader = Reader(tables_root(tables, config))
        if rebalance_id is None:
            rebalance_id = last_rebalance_of(reader, group or "", cluster)
        found = rebalance_detail(reader, rebalance_id, most=sys.maxsize, near=annotation_spans(config))
        blind = blind_text(reader.root, found["rebalance"]["cluster"]) if last else ""
    if as_json:
        write_json_lines([found])
    else:
        sys.stdout.write(story(found) + "\n")
    if blind:
        # There may have been later ones.
        sys.stderr.write(f"{printable(blind)}\n")
