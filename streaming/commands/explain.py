"""Shell: `explain`: one rebalance as a report, or a span of a group's time as one story."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.commands.options import (
    ClusterOption,
    ConfigOption,
    GroupOption,
    JsonOption,
    SinceOption,
    TablesOption,
    UntilOption,
    annotation_spans,
    tables_root,
    time_ms,
)

if TYPE_CHECKING:
    from streaming.views.reader import Reader
    from streaming.views.related_annotations import AnnotationSpans


def explain(
    rebalance_id: Annotated[
        str | None, typer.Argument(metavar="REBALANCE_ID", help="The id, or its first characters.")
    ] = None,
    group: GroupOption = None,
    cluster: ClusterOption = None,
    last: Annotated[bool, typer.Option("--last", help="The last rebalance of --group.")] = False,
    since: SinceOption = None,
    until: UntilOption = None,
    tables: TablesOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report one rebalance: its causes, the moved queues, its duration, and whether clients agree.

    Name it by its id, or the last one of a group with --group GROUP --last. With --group GROUP --since TIME it says
    what happened to the group since then, as one story.
    """
    from dashboard.reading.rebalance_detail import rebalance_detail
    from streaming.terminal.escape import printable
    from streaming.terminal.output import answering, write_json_lines
    from streaming.views.explain import story
    from streaming.views.liveness_reader import blind_text
    from streaming.views.reader import Reader
    from streaming.views.rebalances import last_rebalance_of

    ways = [rebalance_id is not None, last, since is not None]
    if sum(ways) != 1 or (rebalance_id is None) != (group is not None) or (cluster and not group):
        raise typer.BadParameter(
            "name either REBALANCE_ID, or --group GROUP --last, or --group GROUP --since TIME,"
            " with --cluster if several have it"
        )
    if until is not None and since is None:
        raise typer.BadParameter("--until needs --since")
    if since is not None:
        with answering():
            reader = Reader(tables_root(tables, config))
        _report_span(reader, group or "", cluster, (since, until), annotation_spans(config), as_json)
        return
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


def _report_span(
    reader: Reader, group: str, cluster: str | None, span: tuple[str, str | None], near: AnnotationSpans, as_json: bool
) -> None:
    """Write what happened to a group in a span of time."""
    from streaming.machine.clock import now_ms
    from streaming.terminal.output import TIMES, answering, write_json_lines
    from streaming.views.group_story import group_story, story_text

    since_ms, until_ms = time_ms("--since", span[0]), time_ms("--until", span[1])
    assert since_ms is not None
    now = now_ms()
    until_ms = now if until_ms is None else until_ms
    if until_ms <= since_ms:
        raise typer.BadParameter("--until: it must be after --since")
    with answering():
        found = group_story(reader, group, cluster, since_ms, until_ms, now, near)
    if as_json:
        write_json_lines([found], TIMES | {"dropped_before"})
    else:
        sys.stdout.write(story_text(found) + "\n")
