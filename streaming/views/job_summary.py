"""Shell: a job's observations in a few lines, read from its tables without Spark."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from streaming.settings.locations import Location
from streaming.tables import schema
from streaming.terminal.escape import printable
from streaming.terminal.format import counted

if TYPE_CHECKING:
    import pyarrow as pa

PROGRAM = "rebalance-monitor"
SHOWN = 5
# DuckDB's memory limit; a larger grouping is spilled to a file.
_MEMORY = "512MB"

_Rows: TypeAlias = Callable[[schema.Table, str], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Summary:
    """The content of the tables, and commands to try next.

    Attributes:
        causes: System, main cause, rebalances.
        worst_groups: Cluster, group, rebalances, queues moved, usual cause; the busiest first.
        findings: Open findings: kind, severity, how many, an example; the most severe first.
    """

    clusters: int = 0
    groups: int = 0
    members: int = 0
    rebalances: int = 0
    failed: int = 0
    queues_moved: int = 0
    agreeing: int = 0
    differing: int = 0
    rejected: int = 0
    causes: list[tuple[str, str, int]] = field(default_factory=list)
    worst_groups: list[tuple[str, str, int, int, str]] = field(default_factory=list)
    findings: list[tuple[str, str, int, str]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)


_NEEDED = {
    schema.REBALANCES: (
        "rebalance_id",
        "cluster",
        "system",
        "group_id",
        "event_time",
        "trigger",
        "status",
        "queues_moved",
        "agrees",
    ),
    schema.GROUPS: ("cluster", "group_id", "members"),
    schema.FINDINGS: ("cluster", "group_id", "kind", "severity", "message", "closed_at"),
    schema.REJECTED_EVENTS: ("reason",),
    schema.ASSIGNMENTS: ("cluster", "group_id", "topic", "queue_id", "valid_to"),
}


def summarise(tables_root: Location) -> Summary:
    """Return a summary of the tables below ``tables_root``; a table that does not exist yet counts as empty.

    No table is in memory completely: DuckDB reads each as a stream, and spills to disk.
    """
    import duckdb

    with (
        tempfile.TemporaryDirectory(prefix="rebalance-monitor-") as spill,
        duckdb.connect(config={"memory_limit": _MEMORY, "temp_directory": spill}) as connection,
    ):

        def rows(table: schema.Table, query: str) -> list[tuple[Any, ...]]:
            connection.register(table.name, _stream(tables_root, table))
            try:
                return list(connection.execute(query).fetchall())
            finally:
                connection.unregister(table.name)

        return _summary(rows, tables_root)


def _stream(tables_root: Location, table: schema.Table) -> pa.RecordBatchReader:
    import pyarrow as pa
    from deltalake import DeltaTable

    from streaming.tables.location import is_table, table_uri

    columns = _NEEDED[table]
    schema = pa.schema([table.schema.field(name) for name in columns])
    path = table_uri(tables_root, table.name)
    if not is_table(tables_root, table.name):
        return pa.RecordBatchReader.from_batches(schema, [])
    batches = pa.RecordBatchReader.from_stream(DeltaTable(path).scan(columns=list(columns)))
    return pa.RecordBatchReader.from_batches(schema, (batch.select(list(columns)).cast(schema) for batch in batches))


def _summary(rows: _Rows, tables_root: Location) -> Summary:
    (totals,) = rows(
        schema.REBALANCES,
        """select count(*), count(*) filter (status = 'failed'), coalesce(sum(queues_moved), 0),
                  count(*) filter (agrees), count(*) filter (not agrees) from rebalances""",
    )
    (now,) = rows(schema.GROUPS, "select count(distinct cluster), count(*), coalesce(sum(members), 0) from groups")
    ((rejected,),) = rows(schema.REJECTED_EVENTS, "select count(*) from rejected_events")
    causes = rows(
        schema.REBALANCES,
        """select system, trigger, count(*) as times from rebalances
           group by system, trigger order by system, times desc, trigger""",
    )
    worst = rows(
        schema.REBALANCES,
        f"""select cluster, group_id, count(*) as times, coalesce(sum(queues_moved), 0)::bigint,
                   mode(trigger order by trigger)
            from rebalances group by cluster, group_id order by times desc, cluster, group_id limit {SHOWN}""",
    )
    findings = rows(
        schema.FINDINGS,
        f"""select kind, severity, count(*) as times, min(message) from findings where closed_at is null
            group by kind, severity
            order by case severity when 'critical' then 0 when 'warning' then 1 else 2 end, times desc, kind
            limit {SHOWN}""",
    )
    return Summary(
        clusters=now[0],
        groups=now[1],
        members=int(now[2]),
        rebalances=totals[0],
        failed=totals[1],
        queues_moved=int(totals[2]),
        agreeing=totals[3],
        differing=totals[4],
        rejected=rejected,
        causes=causes,
        worst_groups=worst,
        findings=findings,
        commands=_commands(rows, tables_root),
    )


def _commands(rows: _Rows, tables_root: Location) -> list[str]:
    """Return commands that have a result on these tables."""
    program, where = called_as(), f"--tables {quote(str(tables_root))}"
    commands = [f"{program} show groups {where}"]
    grave = rows(
        schema.REBALANCES,
        """select rebalance_id from rebalances
           order by trigger not in ('session_expired', 'member_left'), queues_moved desc, event_time desc, rebalance_id
           limit 1""",
    )
    commands += [f"{program} explain {rebalance_id} {where}" for (rebalance_id,) in grave]
    busiest = rows(
        schema.REBALANCES,
        """select cluster, group_id from rebalances
           group by cluster, group_id order by count(*) desc, cluster, group_id limit 1""",
    )
    commands += [
        f"{program} show group {quote(group)} --cluster {quote(cluster)} {where}" for cluster, group in busiest
    ]
    owned = rows(
        schema.ASSIGNMENTS,
        """select topic, queue_id, group_id from assignments where valid_to is null and queue_id >= 0
           order by cluster, group_id, topic, queue_id limit 1""",
    )
    commands += [
        f"{program} who-owned {quote(topic)} {queue} --group {quote(group)} {where}" for topic, queue, group in owned
    ]
    return commands


def print_summary(summary: Summary, console: Console) -> None:
    """Print a summary for people."""
    console.print()
    console.print(
        f"[bold]{counted(summary.rebalances, 'rebalance')}[/] of {counted(summary.groups, 'group')} in"
        f" {counted(summary.clusters, 'cluster')} moved {counted(summary.queues_moved, 'queue')};"
        f" {counted(summary.members, 'member')} now."
    )
    compared = summary.agreeing + summary.differing
    if compared:
        console.print(f"{summary.agreeing:,} of {compared:,} reported assignments equal the computed ones.")
    if summary.failed:
        console.print(f"{summary.failed:,} failed: their strategy reported an error.")
    if summary.rejected:
        console.print(f"{summary.rejected:,} inputs were rejected or changed (table rejected_events).")
    if summary.causes:
        _print_causes(summary.causes, console)
    _print_rows(
        console,
        ("busiest groups", "", "rebalances", "queues moved", "mostly"),
        [
            (cluster, group, f"{rebalances:,}", f"{moved:,}", cause)
            for cluster, group, rebalances, moved, cause in summary.worst_groups
        ],
    )
    _print_rows(
        console,
        ("open findings", "times", "severity", "for example"),
        [(kind, f"{number:,}", severity, example) for kind, severity, number, example in summary.findings],
    )
    console.print("\nGo on with:")
    for command in summary.commands:
        console.print(f"  {command}", soft_wrap=True, highlight=False, markup=False)


def _print_causes(causes: list[tuple[str, str, int]], console: Console) -> None:
    systems = sorted({system for system, _, _ in causes})
    by_trigger: dict[str, dict[str, int]] = {}
    for system, trigger, rebalances in causes:
        by_trigger.setdefault(trigger, {})[system] = rebalances
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    grid.add_column("main cause", no_wrap=True)
    for system in systems:
        grid.add_column(system, justify="right")
    for trigger, counts in sorted(by_trigger.items(), key=lambda item: (-sum(item[1].values()), item[0])):
        grid.add_row(trigger, *(f"{counts[system]:,}" if system in counts else "–" for system in systems))
    console.print()
    console.print(grid)


def _print_rows(console: Console, headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print rows below their headings; long values are cut at the width of the screen."""
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    numeric = [all(cell.replace(",", "").isdigit() for cell in column) for column in zip(*rows, strict=True)]
    console.print()
    for number, row in enumerate([headings, *rows]):
        cells = [
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, numeric, strict=True)
        ]
        text = Text(
            printable("  ".join(cells).rstrip()), style="" if number else "bold", no_wrap=True, overflow="ellipsis"
        )
        console.print(text, no_wrap=True, overflow="ellipsis", crop=True)


def called_as() -> str:
    """Return how this program was called, so that printed commands can be copied: its name if it is on the PATH."""
    called = Path(sys.argv[0])
    if called.name != PROGRAM or shutil.which(PROGRAM) == str(called):
        return PROGRAM
    return quote(os.path.relpath(called) if called.is_relative_to(Path.cwd()) else str(called))
