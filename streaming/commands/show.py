"""Shell: `show`: groups, one group, members, rebalances, assignments, audits, findings."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streaming.commands.command_group import CommandGroup
from streaming.commands.options import (
    ClusterOption,
    ConfigOption,
    GroupOption,
    JsonOption,
    SinceOption,
    TablesOption,
    TimeOption,
    UntilOption,
    WideOption,
    chosen_of,
    reader_settings,
    tables_root,
    time_ms,
)
from streaming.commands.show_columns import (
    assignment_columns,
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
    from streaming.views.freshness import Freshness

app = typer.Typer(help="Show what the tables hold.", cls=CommandGroup, no_args_is_help=True, add_completion=False)


def _show(
    rows: Sequence[Row],
    shown: Sequence[Shown],
    table: str,
    nothing: str,
    *,
    as_json: bool,
    is_wide: bool,
    cluster: str | None = None,
    group: str | None = None,
) -> None:
    """Write rows, or that there are none; columns of a single cluster or group are left out where space is scarce."""
    from streaming.terminal.output import show_rows, write_json_lines
    from streaming.views.reader import time_columns

    if as_json:
        write_json_lines(rows, time_columns(table))
    elif rows:
        same = {header for header, value in (("CLUSTER", cluster), ("GROUP", group)) if value is not None}
        columns = [column._replace(is_wide=True) if column.header in same else column for column in shown]
        show_rows(rows, columns, is_wide=is_wide)
    else:
        sys.stderr.write(f"{nothing}\n")


def _warn_if_blind(freshness: Freshness, clusters: Iterable[str], cluster: str | None) -> None:
    """Write on standard error the clusters whose present is unknown, and why."""
    from streaming.terminal.escape import printable

    for lost in freshness.blind(clusters):
        if cluster in (None, lost.cluster):
            sys.stderr.write(f"{printable(lost.cluster)} is {printable(lost.text)}\n")


@app.command("groups")
def show_groups(
    cluster: ClusterOption = None,
    state: Annotated[
        list[str] | None, typer.Option(metavar="STATE", help="Only in this state, e.g. stable. Repeatable.")
    ] = None,
    health: Annotated[
        list[str] | None, typer.Option(metavar="HEALTH", help="critical, warning, info, ok, unknown. Repeatable.")
    ] = None,
    system: Annotated[str | None, typer.Option(metavar="SYSTEM", help="kafka, rocketmq or metaq.")] = None,
    finding: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only with an open finding of this kind, e.g. flapping.")
    ] = None,
    search: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only with this in its name, its cluster's or its strategy's.")
    ] = None,
    tables: TablesOption = None,
    config: ConfigOption = None,
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """List the groups as they are now, with their health."""
    from streaming.machine.clock import now_ms
    from streaming.terminal.output import answering
    from streaming.views.group_health import HEALTH, with_health
    from streaming.views.group_lists import Filters, fitting, nothing_to_list
    from streaming.views.group_state_texts import STATES, coordinator_state
    from streaming.views.groups import groups
    from streaming.views.liveness_reader import read_freshness
    from streaming.views.name_checks import require_present
    from streaming.views.reader import Reader
    from udfs.model.systems import SYSTEMS

    filters = Filters(
        states=frozenset(chosen_of("--state", text, STATES) for text in state or []),
        healths=frozenset(chosen_of("--health", text, HEALTH) for text in health or []),
        system=chosen_of("--system", system, [*SYSTEMS]) if system is not None else None,
        finding=finding,
        search=search,
    )
    settings = reader_settings(config, {"job.tables": tables})
    with answering():
        reader = Reader(settings.job.tables)
        require_present(reader, cluster)
        freshness = read_freshness(settings.job.tables)
        every = with_health(reader, groups(reader, cluster=cluster), settings.widespread, now_ms(), freshness)
    rows = [{**row, "coordinator_state": coordinator_state(row)} for row in fitting(every, filters)]
    nothing = nothing_to_list(reader, every)
    _show(rows, group_columns(), "groups", nothing, as_json=as_json, is_wide=wide, cluster=cluster)
    _warn_if_blind(freshness, {row["cluster"] for row in every}, cluster)


@app.command("group")
def show_group(
    group: Annotated[str, typer.Argument(metavar="GROUP")],
    cluster: ClusterOption = None,
    tables: TablesOption = None,
    config: ConfigOption = None,
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show one group: its members with their queues, computed and reported, and how far it has come in each queue."""
    from streaming.machine.clock import now_ms
    from streaming.terminal.escape import printable
    from streaming.terminal.output import answering, show_rows, write_json_lines
    from streaming.views.audit_texts import strategy_text
    from streaming.views.group_health import with_health
    from streaming.views.group_state_texts import coordinator_state, has_former_members, is_under_way
    from streaming.views.groups import group as one
    from streaming.views.groups import never_had_members
    from streaming.views.liveness_reader import read_freshness
    from streaming.views.reader import Reader, time_columns
    from streaming.views.rebalances import client_ids

    settings = reader_settings(config, {"job.tables": tables})
    with answering():
        reader = Reader(settings.job.tables)
        found = one(reader, group, cluster)
        freshness = read_freshness(settings.job.tables)
        (row,) = with_health(reader, [found["group"]], settings.widespread, now_ms(), freshness)
        found["group"] = {**row, "coordinator_state": coordinator_state(row)}
        clients = client_ids(reader, found["rebalances"])
    if as_json:
        names = ("groups", "members", "rebalances", "findings", "queue_progress", "audits")
        times = [time_columns(name) for name in names]
        write_json_lines([{**found.pop("group"), **_renamed(found)}], frozenset().union(*times))
        return
    show_rows([found["group"]], group_columns(), is_wide=wide)
    _warn_if_blind(freshness, {found["group"]["cluster"]}, found["group"]["cluster"])
    if never_had_members(found["group"]):
        sys.stdout.write("\nNo member has been observed.\n")
    if found["group"]["coordinator_state"] != found["group"]["state"]:
        sys.stdout.write(f"\nIts coordinator's state is {found['group']['coordinator_state']}.\n")
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
        ("Last rebalances", found["rebalances"], rebalance_columns(with_group=False, client_ids=clients)),
        ("Last audits", found["audits"], audit_columns(with_group=False)),
        ("Findings", found["findings"], finding_columns(with_group=False)),
    ):
        if rows:
            sys.stdout.write("\n")
            show_rows(rows, columns, title=title, is_wide=wide)


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
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """List members with their queues, now or at a time."""
    from streaming.terminal.output import answering
    from streaming.views.members import members
    from streaming.views.name_checks import require_present
    from streaming.views.reader import Reader

    at_ms = time_ms("--at", at)
    with answering():
        reader = Reader(tables_root(tables, config))
        require_present(reader, cluster, group)
        rows = members(reader, group=group, cluster=cluster, client=client, at_ms=at_ms)
    nothing = "no members" if at_ms is None else "no members at that time"
    _show(
        rows,
        [*name_columns(), *member_columns(rows)],
        "members",
        nothing,
        as_json=as_json,
        is_wide=wide,
        cluster=cluster,
        group=group,
    )


@app.command("rebalances")
def show_rebalances(
    group: GroupOption = None,
    cluster: ClusterOption = None,
    trigger: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only with this cause, e.g. session_expired.")
    ] = None,
    status: Annotated[str | None, typer.Option(metavar="STATUS", help="completed or failed.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of rows.")] = 20,
    tables: TablesOption = None,
    config: ConfigOption = None,
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """List rebalances with their causes, newest first; what has a ~ is an estimate."""
    from streaming.terminal.output import answering
    from streaming.views.name_checks import require_present
    from streaming.views.reader import Reader
    from streaming.views.rebalances import STATUSES, client_ids, none_fit, rebalances
    from udfs.model.journal import TRIGGER_ORDER

    since_ms, until_ms = time_ms("--since", since), time_ms("--until", until)
    trigger, status = chosen_of("--trigger", trigger, TRIGGER_ORDER), chosen_of("--status", status, STATUSES)
    with answering():
        reader = Reader(tables_root(tables, config))
        require_present(reader, cluster, group)
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
        clients = {} if wide or as_json else client_ids(reader, rows)
    columns = rebalance_columns(with_group=True, client_ids=clients)
    nothing = "" if rows else none_fit(reader, since_ms, until_ms)
    _show(rows, columns, "rebalances", nothing, as_json=as_json, is_wide=wide, cluster=cluster, group=group)


@app.command("assignments")
def show_assignments(
    group: GroupOption = None,
    cluster: ClusterOption = None,
    topic: Annotated[str | None, typer.Option(metavar="TOPIC", help="Only this topic.")] = None,
    member: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this member; the begin of its id is enough.")
    ] = None,
    origin: Annotated[str | None, typer.Option(metavar="ORIGIN", help="computed or reported.")] = None,
    at: TimeOption = None,
    tables: TablesOption = None,
    config: ConfigOption = None,
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """List the owners of queues, now or at a time."""
    from streaming.terminal.output import answering
    from streaming.views.assignments import ORIGINS, assignments
    from streaming.views.name_checks import member_named, require_present, require_topic
    from streaming.views.reader import Reader

    at_ms = time_ms("--at", at)
    origin = chosen_of("--origin", origin, ORIGINS)
    with answering():
        reader = Reader(tables_root(tables, config))
        require_present(reader, cluster, group)
        if topic is not None:
            require_topic(reader, topic, cluster=cluster)
        if member is not None:
            member = member_named(reader, member, cluster=cluster, group=group)
        rows = assignments(reader, group=group, cluster=cluster, topic=topic, member=member, origin=origin, at_ms=at_ms)
    nothing = "no queue has an owner" if at_ms is None else "no queue had an owner at that time"
    _show(
        rows, assignment_columns(), "assignments", nothing, as_json=as_json, is_wide=wide, cluster=cluster, group=group
    )


@app.command("audits")
def show_audits(
    group: GroupOption = None,
    cluster: ClusterOption = None,
    verdict: Annotated[str | None, typer.Option(metavar="VERDICT", help="agrees, differs or not_recomputable.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of rows.")] = 20,
    tables: TablesOption = None,
    config: ConfigOption = None,
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """List audits: whether the reported assignment of each generation is the recomputed one; newest first."""
    from streaming.terminal.output import answering
    from streaming.views.audit_texts import VERDICTS, audits
    from streaming.views.name_checks import require_present
    from streaming.views.reader import Reader

    since_ms, until_ms = time_ms("--since", since), time_ms("--until", until)
    verdict = chosen_of("--verdict", verdict, VERDICTS)
    with answering():
        reader = Reader(tables_root(tables, config))
        require_present(reader, cluster, group)
        rows = audits(
            reader, group=group, cluster=cluster, verdict=verdict, since_ms=since_ms, until_ms=until_ms, limit=limit
        )
    _show(
        rows,
        audit_columns(with_group=True),
        "audits",
        "no audits",
        as_json=as_json,
        is_wide=wide,
        cluster=cluster,
        group=group,
    )


@app.command("findings")
def show_findings(
    group: GroupOption = None,
    cluster: ClusterOption = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Only this kind, e.g. source_silent.")] = None,
    closed: Annotated[bool, typer.Option("--all", help="Include closed findings.")] = False,
    tables: TablesOption = None,
    config: ConfigOption = None,
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """List findings, the most severe first."""
    from streaming.terminal.output import answering
    from streaming.views.finding_lists import findings
    from streaming.views.liveness_reader import read_freshness
    from streaming.views.name_checks import require_kind, require_present
    from streaming.views.reader import Reader

    with answering():
        root = tables_root(tables, config)
        reader = Reader(root)
        require_present(reader, cluster, group)
        freshness = read_freshness(root)
        rows = findings(reader, group=group, cluster=cluster, closed=closed, kind=kind, freshness=freshness)
        if not rows and kind is not None:
            require_kind(reader, kind)
    nothing = "no findings" if closed else "no open findings; --all lists closed ones, too"
    columns = finding_columns(with_group=True, with_closed=closed)
    _show(rows, columns, "findings", nothing, as_json=as_json, is_wide=wide, cluster=cluster, group=group)
