"""Shell: `show`: groups, one group, members, rebalances, assignments, findings."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streaming.commands.options import (
    ClusterOption,
    GroupOption,
    JsonOption,
    TablesOption,
    TimeOption,
    tables_root,
    time_ms,
)

if TYPE_CHECKING:
    from streaming.tables.schema import Row
    from streaming.terminal.output import Shown

app = typer.Typer(help="Show what the tables hold.", no_args_is_help=True, add_completion=False)


def _show(rows: Sequence[Row], shown: Sequence[Shown], table: str, nothing: str, *, as_json: bool) -> None:
    from streaming.terminal.output import show_rows, write_json_lines
    from streaming.views.reader import time_columns

    if as_json:
        write_json_lines(rows, time_columns(table))
    elif rows:
        show_rows(rows, shown)
    else:
        sys.stderr.write(f"{nothing}\n")


def _group_columns() -> list[Shown]:
    from streaming.terminal.output import field, time_field

    return [
        field("CLUSTER", "cluster"),
        field("GROUP", "group_id"),
        field("SYSTEM", "system"),
        field("STATE", "state"),
        field("ASSIGNMENT-STRATEGY", "strategy"),
        field("GENERATION", "generation"),
        field("#MEMBERS", "members"),
        field("#QUEUES", "queues"),
        field("IDLE", "idle_members"),
        field("UNASSIGNED", "unassigned_queues"),
        field("SPREAD", "spread"),
        time_field("LAST-REBALANCE", "last_rebalance_at"),
    ]


def _member_columns(*, with_group: bool) -> list[Shown]:
    from streaming.terminal.format import queues_text
    from streaming.terminal.output import Shown, field, time_field

    return [
        *(_name_of() if with_group else []),
        field("CONSUMER-ID", "member_id"),
        field("GROUP-INSTANCE-ID", "instance_id"),
        field("HOST", "host"),
        field("CLIENT-ID", "client_id"),
        Shown("#PARTITIONS", lambda row: str(len(row["computed"] if row["reported"] is None else row["reported"]))),
        Shown("COMPUTED", lambda row: queues_text(row["computed"])),
        Shown("REPORTED", lambda row: queues_text(row["reported"])),
        Shown("AGREES", lambda row: {True: "yes", False: "no", None: "-"}[row["agrees"]]),
        time_field("JOINED", "joined_at"),
    ]


def _name_of() -> list[Shown]:
    from streaming.terminal.output import field

    return [field("CLUSTER", "cluster"), field("GROUP", "group_id")]


def _rebalance_columns(*, with_group: bool) -> list[Shown]:
    from streaming.terminal.output import Shown, field, time_field, yes_no

    return [
        time_field("TIME", "event_time"),
        *(_name_of() if with_group else []),
        field("GENERATION", "generation"),
        Shown("TRIGGER", _causes_text),
        field("STATUS", "status"),
        Shown("#MEMBERS", lambda row: f"{row['members_before']}→{row['members_after']}"),
        field("MOVED", "queues_moved"),
        field("ASSIGNED", "queues_assigned"),
        field("REVOKED", "queues_revoked"),
        Shown("PAUSE", _pause_text),
        field("AGREES", "agrees", yes_no),
        field("REBALANCE-ID", "rebalance_id"),
    ]


def _causes_text(row: Row) -> str:
    main = [cause for cause in row["triggers"] or [] if cause["kind"] == row["trigger"]]
    who = main[0]["member_id"] or main[0]["topic"] if main else None
    others = len(row["triggers"] or []) - 1
    return f"{row['trigger']}" + (f" {who}" if who else "") + (f" (+{others})" if others > 0 else "")


def _pause_text(row: Row) -> str:
    from streaming.terminal.format import span_of_time

    if row["pause_ms"] is not None:
        return span_of_time(row["pause_ms"])
    return "-" if row["pause_estimated_ms"] is None else f"~{span_of_time(row['pause_estimated_ms'])}"


def _finding_columns(*, with_group: bool) -> list[Shown]:
    from streaming.terminal.output import field, time_field

    return [
        field("SEVERITY", "severity"),
        field("KIND", "kind"),
        *(_name_of() if with_group else []),
        time_field("SINCE", "opened_at"),
        time_field("UNTIL", "closed_at"),
        field("MESSAGE", "message"),
        field("ADVICE", "advice"),
    ]


@app.command("groups")
def show_groups(cluster: ClusterOption = None, tables: TablesOption = None, as_json: JsonOption = False) -> None:
    """List the groups as they are now."""
    from streaming.terminal.output import answering
    from streaming.views.groups import groups
    from streaming.views.reader import Reader

    with answering():
        rows = groups(Reader(tables_root(tables)), cluster=cluster)
    _show(rows, _group_columns(), "groups", "no group yet", as_json=as_json)


@app.command("group")
def show_group(
    group: Annotated[str, typer.Argument(metavar="GROUP")],
    cluster: ClusterOption = None,
    tables: TablesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one group: its members, what the strategy gives each and what each reports to hold."""
    from streaming.terminal.output import answering, show_rows, write_json_lines
    from streaming.views.groups import group as one
    from streaming.views.reader import Reader, time_columns

    with answering():
        found = one(Reader(tables_root(tables)), group, cluster)
    if as_json:
        times = [time_columns(name) for name in ("groups", "members", "rebalances", "findings")]
        write_json_lines([{**found.pop("group"), **_renamed(found)}], frozenset().union(*times))
        return
    show_rows([found["group"]], _group_columns())
    for title, rows, columns in (
        ("Members", found["members"], _member_columns(with_group=False)),
        ("Last rebalances", found["rebalances"], _rebalance_columns(with_group=False)),
        ("Findings", found["findings"], _finding_columns(with_group=False)),
    ):
        if rows:
            sys.stdout.write("\n")
            show_rows(rows, columns, title=title)


def _renamed(found: dict[str, Any]) -> dict[str, Any]:
    # ``members`` is already the group's count.
    return {
        "member_list": found["members"],
        "last_rebalances": found["rebalances"],
        "open_findings": found["findings"],
    }


@app.command("members")
def show_members(
    group: GroupOption = None,
    cluster: ClusterOption = None,
    at: TimeOption = None,
    tables: TablesOption = None,
    as_json: JsonOption = False,
) -> None:
    """List members with their queues, now or at a time."""
    from streaming.terminal.output import answering
    from streaming.views.groups import one_group
    from streaming.views.members import members
    from streaming.views.reader import Reader

    at_ms = time_ms("--at", at)
    with answering():
        reader = Reader(tables_root(tables))
        rows = members(reader, group=group, cluster=cluster, at_ms=at_ms)
        if not rows and group is not None and at_ms is None:
            one_group(reader, group, cluster)
    _show(rows, _member_columns(with_group=True), "members", "no members", as_json=as_json)


@app.command("rebalances")
def show_rebalances(
    group: GroupOption = None,
    cluster: ClusterOption = None,
    trigger: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only with this cause, e.g. session_expired.")
    ] = None,
    status: Annotated[str | None, typer.Option(metavar="STATUS", help="completed or failed.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Not before.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Before.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of rows.")] = 20,
    tables: TablesOption = None,
    as_json: JsonOption = False,
) -> None:
    """List rebalances with their causes, newest first; a pause with ~ is an estimate."""
    from streaming.terminal.output import answering
    from streaming.views.groups import one_group
    from streaming.views.reader import Reader
    from streaming.views.rebalances import rebalances
    from udfs.model.journal import TRIGGER_ORDER

    since_ms, until_ms = time_ms("--since", since), time_ms("--until", until)
    if trigger is not None and trigger not in TRIGGER_ORDER:
        raise typer.BadParameter(f"--trigger: {trigger!r} is not one of {', '.join(TRIGGER_ORDER)}")
    if status not in (None, "completed", "failed"):
        raise typer.BadParameter(f"--status: {status!r} is neither completed nor failed")
    with answering():
        reader = Reader(tables_root(tables))
        rows = rebalances(
            reader,
            group=group,
            cluster=cluster,
            trigger=trigger,
            status=status,
            since_ms=since_ms,
            until_ms=until_ms,
            limit=limit,
        )
        if not rows and group is not None:
            one_group(reader, group, cluster)
    _show(rows, _rebalance_columns(with_group=True), "rebalances", "no rebalances", as_json=as_json)


@app.command("assignments")
def show_assignments(
    group: GroupOption = None,
    cluster: ClusterOption = None,
    topic: Annotated[str | None, typer.Option(metavar="TOPIC", help="Only this topic.")] = None,
    member: Annotated[str | None, typer.Option(metavar="ID", help="Only this member.")] = None,
    origin: Annotated[str | None, typer.Option(metavar="ORIGIN", help="computed or reported.")] = None,
    at: TimeOption = None,
    tables: TablesOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the owners of queues, now or at a time."""
    from streaming.terminal.output import answering, field, time_field
    from streaming.views.assignments import assignments
    from streaming.views.groups import one_group
    from streaming.views.reader import Reader

    at_ms = time_ms("--at", at)
    if origin not in (None, "computed", "reported"):
        raise typer.BadParameter(f"--origin: {origin!r} is neither computed nor reported")
    with answering():
        reader = Reader(tables_root(tables))
        rows = assignments(reader, group=group, cluster=cluster, topic=topic, member=member, origin=origin, at_ms=at_ms)
        if not rows and group is not None and at_ms is None:
            one_group(reader, group, cluster)
    columns = [
        field("CLUSTER", "cluster"),
        field("GROUP", "group_id"),
        field("TOPIC", "topic"),
        field("BROKER", "broker"),
        field("PARTITION", "queue_id"),
        field("CONSUMER-ID", "member_id"),
        field("GROUP-INSTANCE-ID", "instance_id"),
        field("ORIGIN", "origin"),
        field("GENERATION", "generation"),
        time_field("SINCE", "valid_from"),
        time_field("UNTIL", "valid_to"),
    ]
    _show(rows, columns, "assignments", "no assignments", as_json=as_json)


@app.command("findings")
def show_findings(
    group: GroupOption = None,
    cluster: ClusterOption = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Only this kind, e.g. source_silent.")] = None,
    closed: Annotated[bool, typer.Option("--all", help="Include closed findings.")] = False,
    tables: TablesOption = None,
    as_json: JsonOption = False,
) -> None:
    """List findings, the most severe first."""
    from streaming.terminal.output import answering
    from streaming.views.findings import findings
    from streaming.views.reader import Reader

    with answering():
        rows = findings(Reader(tables_root(tables)), group=group, cluster=cluster, closed=closed, kind=kind)
    _show(rows, _finding_columns(with_group=True), "findings", "no findings", as_json=as_json)
