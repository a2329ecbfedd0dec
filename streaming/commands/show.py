"""Shell: `show`: groups, one group, members, rebalances, assignments, audits, findings."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.commands.command_group import CommandGroup
from streaming.commands.options import (
    ClusterOption,
    ConfigOption,
    GroupOption,
    JsonOption,
    LimitOption,
    SinceOption,
    TablesOption,
    TimeOption,
    UntilOption,
    WideOption,
    chosen_of,
    reader_settings,
    time_ms,
)
from streaming.commands.show_answers import opened, rows_of, show
from streaming.commands.show_columns import (
    annotation_columns,
    assignment_columns,
    audit_columns,
    departure_columns,
    episode_columns,
    finding_columns,
    group_columns,
    member_columns,
    name_columns,
    progress_columns,
    rebalance_columns,
)

if TYPE_CHECKING:
    from dashboard.reading.questions import Reading

# How many rebalances and audits of a group `show group` lists.
_LAST = 5

app = typer.Typer(help="Show what the tables hold.", cls=CommandGroup, no_args_is_help=True, add_completion=False)


def _warn_if_blind(reading: Reading, cluster: str | None) -> bool:
    """Write on standard error the clusters whose present is unknown, and why; return whether there are any."""
    from dashboard.reading.known_time import blind_clusters
    from streaming.terminal.escape import printable

    blind = [lost for lost in blind_clusters(reading) if lost.cluster and cluster in (None, lost.cluster)]
    for lost in blind:
        sys.stderr.write(f"{printable(lost.cluster)} is {printable(lost.text)}\n")
    return bool(blind)


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
    watch: Annotated[bool, typer.Option("--watch", help="List them again every two seconds, until Ctrl-C.")] = False,
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """List the groups as they are now, with their health."""
    from dashboard.reading.known_time import nothing_to_list
    from dashboard.reading.listing import VALUES
    from dashboard.reading.questions import Reading
    from streaming.terminal.output import again_and_again, answering
    from streaming.views.name_checks import require_present

    few = {"state": state, "health": health, "system": [system] if system is not None else []}
    chosen = {
        name: ",".join(chosen_of(f"--{name}", text, VALUES[name]) for text in texts or [])
        for name, texts in few.items()
    }
    settings = reader_settings(config, {"job.tables": tables})
    chosen |= {"cluster": cluster or "", "kind": finding or "", "q": search or ""}

    def listed() -> None:
        with answering():
            reading = Reading.once(settings.job.tables, widespread=settings.widespread)
            require_present(reading.tables, cluster)
            # Advice is judged anew by each command: 10,000 groups take seconds.
            rows = rows_of(reading, "groups", chosen, sort="cluster", is_whole=wide or as_json)
            nothing = "" if rows else nothing_to_list(reading, cluster)
        show(rows, group_columns(), nothing, as_json=as_json, is_wide=wide, cluster=cluster)
        _warn_if_blind(reading, cluster)

    again_and_again(listed) if watch else listed()


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
    from dashboard.reading.group_detail import group_detail
    from dashboard.reading.questions import ALL_ROWS, Reading
    from streaming.terminal.escape import printable
    from streaming.terminal.output import answering, show_rows, write_json_lines
    from streaming.views.audit_texts import strategy_text
    from streaming.views.group_state_texts import has_former_members, is_under_way, never_had_members
    from streaming.views.lag_ages import group_lag_text
    from streaming.views.members import departures
    from streaming.views.rebalances import client_ids

    settings = reader_settings(config, {"job.tables": tables})
    with answering():
        reading = Reading.once(settings.job.tables, widespread=settings.widespread)
        found = group_detail(reading, group, cluster, last=_LAST, most=ALL_ROWS)
        row, rebalances = found.group, found.rebalances.rows
        departed = departures(reading.tables, group, row["cluster"])
        clients = client_ids(reading.tables, rebalances)
    if as_json:
        lists = {
            # ``members`` and ``open_findings`` are counts, as in the listing of groups.
            "member_list": found.members,
            "progress": found.progress,
            "last_rebalances": rebalances,
            "last_audits": found.audits.rows,
            "finding_list": found.findings.rows,
            "last_departures": departed,
            "source": found.source,
        }
        write_json_lines([{**row, **lists}])
        return
    show_rows([row], group_columns(), is_wide=wide)
    when = ", as last known" if _warn_if_blind(reading, row["cluster"]) else ""
    if never_had_members(row):
        sys.stdout.write("\nNo member has been observed.\n")
    if row["coordinator_state"] != row["state"]:
        sys.stdout.write(f"\nIts coordinator's state is {row['coordinator_state']}.\n")
    if row.get("strategy_verdict") is not None:
        sys.stdout.write(f"\nStrategy: {strategy_text(row)}.\n")
    if is_under_way(row):
        sys.stdout.write(f"\nThe group rebalances ({row['coordinator_state']}): its lag is not reliable.\n")
    if has_former_members(row):
        sys.stdout.write("Members and owners are those before it, until the last member has what its target says.\n")
    if row.get("observed_by"):
        sys.stdout.write("\nKnown by admin calls alone: what happens between two polls is one generation.\n")
    if found.source:
        sys.stdout.write(f"\nSource of the cluster's groups: {printable(found.source)}.\n")
    if row.get("waits"):
        sys.stdout.write(f"\nWaiting: {row['waits']}\n")
    for title, rows, columns in (
        ("Members", found.members, member_columns(found.members)),
        (
            f"Progress{when}: {group_lag_text(found.progress)} (? is not reliable)",
            found.progress,
            progress_columns(found.progress),
        ),
        ("Last departures", departed, departure_columns()),
        ("Last rebalances", rebalances, rebalance_columns(with_group=False, client_ids=clients)),
        ("Last audits", found.audits.rows, audit_columns(with_group=False)),
        ("Findings", found.findings.rows, finding_columns(with_group=False)),
    ):
        if rows:
            sys.stdout.write("\n")
            show_rows(rows, columns, title=title, is_wide=wide)


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

    at_ms = time_ms("--at", at)
    with opened(tables, config, cluster, group) as reading:
        chosen = {"group_id": group, "cluster": cluster, "client": client, **_open_at(at_ms)}
        rows = rows_of(reading, "members", chosen, sort="cluster")
    nothing = "no members" if at_ms is None else "no members at that time"
    columns = [*name_columns(), *member_columns(rows)]
    show(rows, columns, nothing, as_json=as_json, is_wide=wide, cluster=cluster, group=group)


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
    limit: LimitOption = 20,
    tables: TablesOption = None,
    config: ConfigOption = None,
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """List rebalances with their causes, newest first; what has a ~ is an estimate."""
    from dashboard.reading.listing import VALUES
    from streaming.views.rebalances import client_ids, none_fit

    since_ms, until_ms = time_ms("--since", since), time_ms("--until", until)
    trigger = chosen_of("--trigger", trigger, VALUES["trigger"])
    status = chosen_of("--status", status, VALUES["status"])
    with opened(tables, config, cluster, group) as reading:
        chosen = {"group_id": group, "cluster": cluster, "trigger": trigger, "status": status}
        rows = rows_of(reading, "rebalances", {**chosen, "since": since_ms or 0, "until": until_ms}, limit=limit)
        clients = {} if wide or as_json else client_ids(reading.tables, rows)
        nothing = "" if rows else none_fit(reading.tables, since_ms, until_ms)
    columns = rebalance_columns(with_group=True, client_ids=clients)
    show(rows, columns, nothing, as_json=as_json, is_wide=wide, cluster=cluster, group=group)


@app.command("assignments")
def show_assignments(
    group: GroupOption = None,
    cluster: ClusterOption = None,
    topic: Annotated[str | None, typer.Option(metavar="TOPIC", help="Only this topic.")] = None,
    member: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this member; the beginning of its id is enough.")
    ] = None,
    origin: Annotated[str | None, typer.Option(metavar="ORIGIN", help="computed or reported.")] = None,
    at: TimeOption = None,
    tables: TablesOption = None,
    config: ConfigOption = None,
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """List the owners of queues, now or at a time."""
    from dashboard.reading.listing import VALUES
    from streaming.views.name_checks import member_named, require_topic

    at_ms = time_ms("--at", at)
    origin = chosen_of("--origin", origin, VALUES["origin"])
    with opened(tables, config, cluster, group) as reading:
        if topic is not None:
            require_topic(reading.tables, topic, cluster=cluster)
        if member is not None:
            member = member_named(reading.tables, member, cluster=cluster, group=group)
        chosen = {"group_id": group, "cluster": cluster, "topic": topic, "member_id": member, "origin": origin}
        rows = rows_of(reading, "assignments", {**chosen, **_open_at(at_ms)})
    nothing = "no queue has an owner" if at_ms is None else "no queue had an owner at that time"
    show(rows, assignment_columns(), nothing, as_json=as_json, is_wide=wide, cluster=cluster, group=group)


def _open_at(at_ms: int | None) -> dict[str, str | int]:
    """Return the parameters that select what was open at a time; None for what is open now."""
    return {"open": "yes"} if at_ms is None else {"at": at_ms}


@app.command("audits")
def show_audits(
    group: GroupOption = None,
    cluster: ClusterOption = None,
    verdict: Annotated[str | None, typer.Option(metavar="VERDICT", help="agrees, differs or not_recomputable.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = 20,
    tables: TablesOption = None,
    config: ConfigOption = None,
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """List audits: whether the reported assignment of each generation matches the recomputed one; newest first."""
    from dashboard.reading.listing import VALUES

    since_ms, until_ms = time_ms("--since", since), time_ms("--until", until)
    verdict = chosen_of("--verdict", verdict, VALUES["verdict"])
    with opened(tables, config, cluster, group) as reading:
        chosen = {"group_id": group, "cluster": cluster, "verdict": verdict}
        rows = rows_of(reading, "audits", {**chosen, "since": since_ms or 0, "until": until_ms}, limit=limit)
    columns = audit_columns(with_group=True)
    show(rows, columns, "no audits", as_json=as_json, is_wide=wide, cluster=cluster, group=group)


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
    from streaming.views.name_checks import require_kind

    with opened(tables, config, cluster, group) as reading:
        chosen = {"group_id": group, "cluster": cluster, "kind": kind, "open": "" if closed else "yes"}
        rows = rows_of(reading, "findings", chosen)
        if not rows and kind is not None:
            require_kind(reading.tables, kind)
    nothing = "no findings" if closed else "no open findings; --all lists closed ones, too"
    columns = finding_columns(with_group=True, with_closed=closed)
    show(rows, columns, nothing, as_json=as_json, is_wide=wide, cluster=cluster, group=group)


@app.command("episodes")
def show_episodes(
    group: GroupOption = None,
    cluster: ClusterOption = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Only this kind, e.g. same_client_again.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = 20,
    tables: TablesOption = None,
    config: ConfigOption = None,
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """List episodes, rebalances with one root: crash loops, deploys, scalings, fixed periods; newest first."""
    from dashboard.reading.listing import VALUES

    since_ms, until_ms = time_ms("--since", since), time_ms("--until", until)
    kind = chosen_of("--kind", kind, VALUES["episode_kind"])
    with opened(tables, config, cluster, group) as reading:
        chosen = {"group_id": group, "cluster": cluster, "kind": kind, "since": since_ms, "until": until_ms}
        rows = rows_of(reading, "episodes", chosen, limit=limit)
    columns = episode_columns(with_group=True)
    show(rows, columns, "no episodes", as_json=as_json, is_wide=wide, cluster=cluster, group=group)


@app.command("annotations")
def show_annotations(
    cluster: ClusterOption = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Only of this kind, e.g. deploy.")] = None,
    search: Annotated[str | None, typer.Option(metavar="TEXT", help="Only with this in its text, kind or id.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = 20,
    tables: TablesOption = None,
    config: ConfigOption = None,
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """List annotations: what people and platforms did; newest first."""
    since_ms, until_ms = time_ms("--since", since), time_ms("--until", until)
    with opened(tables, config, cluster, None) as reading:
        chosen = {"cluster": cluster, "kind": kind, "q": search, "since": since_ms, "until": until_ms}
        rows = rows_of(reading, "annotations", chosen, limit=limit)
    show(rows, annotation_columns(), "no annotations", as_json=as_json, is_wide=wide)
