"""Shell: `show`: groups, one group, members, rebalances, assignments, audits, findings."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

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
from streaming.commands.show_columns import (
    audit_columns,
    departure_columns,
    finding_columns,
    group_columns,
    member_columns,
    name_columns,
    progress_columns,
    rebalance_columns,
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


@app.command("groups")
def show_groups(
    cluster: ClusterOption = None,
    tables: TablesOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the groups as they are now."""
    from streaming.terminal.output import answering
    from streaming.views.groups import groups
    from streaming.views.reader import Reader

    with answering():
        rows = groups(Reader(tables_root(tables, config)), cluster=cluster)
    _show(rows, group_columns(), "groups", "no group yet", as_json=as_json)


@app.command("group")
def show_group(
    group: Annotated[str, typer.Argument(metavar="GROUP")],
    cluster: ClusterOption = None,
    tables: TablesOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one group: its members with their queues, computed and reported, and how far it has come in each queue."""
    from streaming.terminal.escape import printable
    from streaming.terminal.output import answering, show_rows, write_json_lines
    from streaming.views.audit_texts import strategy_text
    from streaming.views.group_state_texts import coordinator_state, has_former_members, is_under_way
    from streaming.views.groups import group as one
    from streaming.views.groups import never_had_members
    from streaming.views.reader import Reader, time_columns

    with answering():
        found = one(Reader(tables_root(tables, config)), group, cluster)
    if as_json:
        names = ("groups", "members", "rebalances", "findings", "queue_progress", "audits")
        times = [time_columns(name) for name in names]
        write_json_lines([{**found.pop("group"), **_renamed(found)}], frozenset().union(*times))
        return
    show_rows([found["group"]], group_columns())
    if never_had_members(found["group"]):
        sys.stdout.write("\nNo member has been observed.\n")
    if found["group"].get("strategy_verdict") is not None:
        sys.stdout.write(f"\nStrategy: {strategy_text(found['group'])}.\n")
    if is_under_way(found["group"]):
        state = coordinator_state(found["group"])
        sys.stdout.write(f"\nThe group rebalances ({state}): its lag is not reliable.\n")
    if has_former_members(found["group"]):
        sys.stdout.write("Members and owners are those before it, until the last member has what its target says.\n")
    if found["group"].get("observed_by"):
        sys.stdout.write("\nKnown by admin calls alone: what happens between two polls is one generation.\n")
    if found["source"]:
        sys.stdout.write(f"\nSource of the cluster's groups: {printable(found['source'])}.\n")
    if found["group"].get("waits"):
        sys.stdout.write(f"\nWaiting: {found['group']['waits']}\n")
    for title, rows, columns in (
        ("Members", found["members"], member_columns(found["members"])),
        ("Progress (lag with ? is not reliable)", found["progress"], progress_columns(found["progress"])),
        ("Last departures", found["departures"], departure_columns()),
        ("Last rebalances", found["rebalances"], rebalance_columns(with_group=False)),
        ("Last audits", found["audits"], audit_columns(with_group=False)),
        ("Findings", found["findings"], finding_columns(with_group=False)),
    ):
        if rows:
            sys.stdout.write("\n")
            show_rows(rows, columns, title=title)


def _renamed(found: dict[str, Any]) -> dict[str, Any]:
    # ``members`` is already the group's count.
    return {
        "member_list": found["members"],
        "progress": found["progress"],
        "last_rebalances": found["rebalances"],
        "last_audits": found["audits"],
        "open_findings": found["findings"],
        "last_departures": found["departures"],
        "source": found["source"],
    }


@app.command("members")
def show_members(
    group: GroupOption = None,
    cluster: ClusterOption = None,
    client: Annotated[
        str | None, typer.Option(metavar="CLIENT", help="Only this client, whatever its member ids.")
    ] = None,
    at: TimeOption = None,
    tables: TablesOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List members with their queues, now or at a time."""
    from streaming.terminal.output import answering
    from streaming.views.groups import one_group
    from streaming.views.members import members
    from streaming.views.reader import Reader

    at_ms = time_ms("--at", at)
    with answering():
        reader = Reader(tables_root(tables, config))
        rows = members(reader, group=group, cluster=cluster, client=client, at_ms=at_ms)
        if not rows and group is not None and client is None and at_ms is None:
            one_group(reader, group, cluster)
    _show(rows, [*name_columns(), *member_columns(rows)], "members", "no members", as_json=as_json)


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
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List rebalances with their causes, newest first; what has a ~ is an estimate."""
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
        reader = Reader(tables_root(tables, config))
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
    _show(rows, rebalance_columns(with_group=True), "rebalances", "no rebalances", as_json=as_json)


@app.command("assignments")
def show_assignments(
    group: GroupOption = None,
    cluster: ClusterOption = None,
    topic: Annotated[str | None, typer.Option(metavar="TOPIC", help="Only this topic.")] = None,
    member: Annotated[str | None, typer.Option(metavar="ID", help="Only this member.")] = None,
    origin: Annotated[str | None, typer.Option(metavar="ORIGIN", help="computed or reported.")] = None,
    at: TimeOption = None,
    tables: TablesOption = None,
    config: ConfigOption = None,
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
        reader = Reader(tables_root(tables, config))
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


@app.command("audits")
def show_audits(
    group: GroupOption = None,
    cluster: ClusterOption = None,
    verdict: Annotated[str | None, typer.Option(metavar="VERDICT", help="agrees, differs or not_recomputable.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Not before.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Before.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of rows.")] = 20,
    tables: TablesOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List audits: whether the reported assignment of each generation is the recomputed one; newest first."""
    from streaming.terminal.output import answering
    from streaming.views.audit_texts import VERDICTS, audits
    from streaming.views.groups import one_group
    from streaming.views.reader import Reader

    since_ms, until_ms = time_ms("--since", since), time_ms("--until", until)
    if verdict not in (None, *VERDICTS):
        raise typer.BadParameter(f"--verdict: {verdict!r} is not one of {', '.join(VERDICTS)}")
    with answering():
        reader = Reader(tables_root(tables, config))
        rows = audits(
            reader, group=group, cluster=cluster, verdict=verdict, since_ms=since_ms, until_ms=until_ms, limit=limit
        )
        if not rows and group is not None:
            one_group(reader, group, cluster)
    _show(rows, audit_columns(with_group=True), "audits", "no audits", as_json=as_json)


@app.command("findings")
def show_findings(
    group: GroupOption = None,
    cluster: ClusterOption = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Only this kind, e.g. source_silent.")] = None,
    closed: Annotated[bool, typer.Option("--all", help="Include closed findings.")] = False,
    tables: TablesOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List findings, the most severe first."""
    from streaming.terminal.output import answering
    from streaming.views.finding_lists import findings
    from streaming.views.reader import Reader

    with answering():
        rows = findings(Reader(tables_root(tables, config)), group=group, cluster=cluster, closed=closed, kind=kind)
    _show(rows, finding_columns(with_group=True), "findings", "no findings", as_json=as_json)
