"""Shell: `who-owned`: the owner of one queue, now or at a time."""

from __future__ import annotations

from typing import Annotated

import typer

from streaming.commands.options import (
    ClusterOption,
    ConfigOption,
    GroupOption,
    JsonOption,
    TablesOption,
    TimeOption,
    tables_root,
    time_ms,
)


def who_owned(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    queue: Annotated[int, typer.Argument(metavar="QUEUE", help="Number of the queue (partition).", min=0)],
    group: GroupOption = None,
    cluster: ClusterOption = None,
    broker: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this broker, where queues are numbered per broker.")
    ] = None,
    at: TimeOption = None,
    tables: TablesOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the owner of a queue, now or at a time: for each group, as computed and as reported."""
    from streaming.tables.errors import NotFoundError
    from streaming.terminal.format import queue_name, time_text
    from streaming.terminal.output import Shown, answering, field, show_rows, time_field, write_json_lines
    from streaming.views import assignments as views
    from streaming.views.groups import one_group
    from streaming.views.reader import Reader, time_columns

    at_ms = time_ms("--at", at)
    with answering():
        reader = Reader(tables_root(tables, config))
        rows = views.who_owned(reader, topic, queue, group=group, cluster=cluster, broker=broker, at_ms=at_ms)
        if not rows:
            if group is not None and at_ms is None:
                one_group(reader, group, cluster)
            if not views.has_topic(reader, topic):
                raise NotFoundError(f"the tables have no topic {topic}")
            for name, dropped_ms in views.spans_dropped_before(reader, cluster, at_ms):
                raise NotFoundError(
                    f"the owner of {queue_name(topic, broker, queue)} at {time_text(at_ms or 0)} is not known: spans of"
                    f" cluster {name} that ended before {time_text(dropped_ms)} were dropped"
                    " (retention.assignments_hours)"
                )
            when = "now" if at_ms is None else f"at {time_text(at_ms)}"
            owner = "nobody" if group is None else f"no member of group {group}"
            owned = "owns" if at_ms is None else "owned"
            raise NotFoundError(f"{owner} {owned} {queue_name(topic, broker, queue)} {when}")
    if as_json:
        write_json_lines(rows, time_columns("assignments"))
        return
    show_rows(
        rows,
        [
            field("CLUSTER", "cluster"),
            field("GROUP", "group_id"),
            Shown("QUEUE", lambda row: queue_name(row["topic"], row["broker"], row["queue_id"])),
            field("CONSUMER-ID", "member_id"),
            field("GROUP-INSTANCE-ID", "instance_id"),
            field("HOST", "host"),
            field("CLIENT-ID", "client_id"),
            field("ORIGIN", "origin"),
            field("GENERATION", "generation"),
            time_field("SINCE", "valid_from"),
            time_field("UNTIL", "valid_to"),
        ],
    )
