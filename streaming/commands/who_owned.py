"""Shell: `who-owned`: the owner of one queue, now or at a time."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from streaming.commands.command_group import complain
from streaming.commands.options import (
    ClusterOption,
    ConfigOption,
    GroupOption,
    JsonOption,
    TablesOption,
    TimeOption,
    WideOption,
    tables_root,
    time_ms,
)

# The queue exists but has no owner, or an unknown one; this is not an error.
NO_OWNER_EXIT = 1


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
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show the owner of a queue, now or at a time: for each group, as computed and as reported."""
    from dashboard.reading.questions import Reading
    from dashboard.reading.queue_owners import owners_of_queue, why_no_owner
    from streaming.commands.show_columns import assignment_columns
    from streaming.terminal.output import answering, show_rows, write_json_lines
    from streaming.views.name_checks import require_present

    at_ms = time_ms("--at", at)
    with answering():
        reading = Reading.once(tables_root(tables, config))
        reader = reading.tables
        require_present(reader, cluster, group)
        rows = owners_of_queue(reading, topic, queue, group=group, cluster=cluster, broker=broker, at_ms=at_ms)
        if not rows:
            named: dict[str, Any] = {"group": group, "cluster": cluster, "broker": broker, "at_ms": at_ms}
            sentence, is_known = why_no_owner(reader, topic, queue, **named)
    if not rows:
        if not is_known:
            complain(sentence, exit_code=NO_OWNER_EXIT)
        sys.stderr.write(f"{sentence}\n")
        raise typer.Exit(NO_OWNER_EXIT)
    if as_json:
        write_json_lines(rows)
    else:
        show_rows(rows, assignment_columns(with_host=True), is_wide=wide)
