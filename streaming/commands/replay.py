"""Command: `replay`: what a group's past would have been under another strategy, with other queues or members."""

from __future__ import annotations

import sys
import textwrap
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streaming.commands.command_group import announce, complain, warn_if_blind
from streaming.commands.options import (
    ClusterOption,
    ConfigOption,
    IntoOption,
    JsonOption,
    SinceOption,
    TablesOption,
    UntilOption,
    core_config,
    reader_settings,
    tables_root,
    time_ms,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streaming.history.policy_outcomes import PolicyOutcome, PolicyOutcomes
    from streaming.replays.replay_request import ReplayRequest
    from streaming.settings.model import Settings
    from streaming.tables.schema import Row

_LISTED = 5


def replay(
    group: Annotated[
        list[str] | None,
        typer.Option("--group", "-g", metavar="GROUP", help="The group; of several each, as with --all. Repeatable."),
    ] = None,
    all_groups: Annotated[
        bool, typer.Option("--all", help="All groups: a job of Spark writes tables. Repeated, it continues.")
    ] = False,
    cluster: ClusterOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="POLICY",
            help="strategy=NAME, queues TOPIC=N, without MEMBER|HOST|CLIENT, static[=CLIENT], session_timeout=30s,"
            " graceful, members=+2, join_delay=3s, protocol=cooperative, combined with +. Repeatable.",
        ),
    ] = None,
    all_strategies: Annotated[
        bool, typer.Option("--all-strategies", help="Also each strategy of the group's system.")
    ] = False,
    into: IntoOption = None,
    tables: TablesOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide a group's recorded past again, by the same code as live, and under policies.

    It reads the tables alone and changes nothing. Without a policy it says which rebalances the tables give again:
    replay -g orders; replay -g orders -p strategy=CONSISTENT_HASH -p "without 10.0.0.7"; replay -g orders
    --all-strategies. Of many groups it starts Spark and writes the tables replays and replay_groups: replay --all
    --all-strategies --since 7d.
    """
    policies, groups = policy or [], group or []
    if all_groups == bool(groups):
        raise typer.BadParameter("name groups with --group, or take all of them with --all", param_hint="--group")
    span = time_ms("--since", since), time_ms("--until", until)
    if not all_groups and into is None and len(groups) == 1:
        _replay_one(groups[0], cluster, span, policies, all_strategies, tables, config, as_json=as_json)
        return
    from streaming.history.replay_figures import Asked
    from streaming.replays.replay_request import ReplayRequest

    asked = Asked(tuple(policies), all_strategies, *span)
    request = ReplayRequest(asked, (since, until), cluster, tuple(sorted(set(groups))))
    replayed = replay_many(reader_settings(config, {"job.tables": tables}), into, request)
    if as_json:
        from streaming.terminal.output import write_json_lines

        write_json_lines([replayed])
    else:
        _show_sums(replayed)


def _replay_one(
    group: str,
    cluster: str | None,
    span: tuple[int | None, int | None],
    policies: list[str],
    all_strategies: bool,
    tables: str | None,
    config: Path | None,
    *,
    as_json: bool,
) -> None:
    from streaming.allocation.plugins import installed_user_strategies
    from streaming.history.group_rows import group_rows
    from streaming.history.policy_outcomes import outcomes_of
    from streaming.history.policy_texts import strategies_of
    from streaming.terminal.output import answering, write_json_lines
    from streaming.views.name_checks import one_group
    from streaming.views.reader import Reader
    from udfs.strategies.registry import names

    since_ms, until_ms = span
    with answering():
        reader = Reader(tables_root(tables, config))
        named = one_group(reader, group, cluster)
        rows = group_rows(reader, named["cluster"], group, since_ms)
        policies = [*policies, *(strategies_of(rows) if all_strategies else [])]
        used = {row["strategy"] for row in rows.rebalances if row["strategy"]}
        if policies or not used <= set(names()):
            with redirect_stdout(sys.stderr):
                installed_user_strategies()
        found = outcomes_of(rows, policies, core_config(config), until_ms)
        if as_json:
            write_json_lines([_row(found, outcome) for outcome in found.outcomes], frozenset())
        else:
            _show(found)
        if until_ms is None:
            warn_if_blind(reader.root, [found.rows.cluster])


def replay_many(settings: Settings, into: str | None, request: ReplayRequest) -> Row:
    """Replay many groups by a job of Spark, its progress on the terminal; return its finished row of ``replays``."""
    from streaming.machine.logs import configure

    # What py4j logs as its JVM ends is no news to a person who waits for figures.
    configure("warning", settings.log.format)
    announce("loading Spark")
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from streaming.replays.replay_job import replay_groups
    from streaming.settings.locations import catalog_schema, tables_of
    from streaming.spark.root_cause import WAY_OUT, reason
    from streaming.stores.access import require_stores
    from streaming.terminal.output import answering
    from streaming.views.reader import Reader

    place = None if into is None else tables_of(into)
    require_stores({"--into": settings.job.tables if place is None else place})
    with answering():
        request.check_policies()
        if not catalog_schema(settings.job.tables):
            Reader(settings.job.tables)
        try:
            return replay_groups(
                settings, place, request, lambda done, whole: announce(f"{done} of {whole} groups are replayed")
            )
        except (PySparkException, Py4JError) as error:
            complain(f"the replay failed: {reason(error)}", WAY_OUT, exit_code=1)


def _show_sums(replayed: Row) -> None:
    from streaming.terminal.escape import printable
    from streaming.terminal.format import count
    from streaming.terminal.output import Shown, field, show_rows

    sys.stdout.write(f"Replay {replayed['replay_id']}: {count(replayed['groups'], 'group')}.\n\n")

    def beside(name: str) -> Callable[[Row], str]:
        # Each policy has groups of its own: what is compared with it are these.
        def text(row: Row) -> str:
            was = "" if row["policy"] is None else f" ({_or_unknown(row[f'recorded_{name}'])})"
            return f"{_or_unknown(row[name])}{was}"

        return text

    columns = [
        Shown("POLICY", lambda row: row["policy"] or "as recorded"),
        Shown("GROUPS", lambda row: str(row["groups"] - row["groups_unknown"])),
        field("UNKNOWN", "groups_unknown"),
        Shown("REBALANCES", beside("rebalances")),
        Shown("MOVED", beside("queues_moved")),
        Shown("STOPPED", beside("queues_stopped")),
    ]
    show_rows(replayed["sums"], columns)
    sys.stdout.write("\n")
    _write_wrapped(
        "In brackets: what was recorded of the same groups. STOPPED are queues that stood still. UNKNOWN groups have no"
        " figures; each has its reason in the table replay_groups, which has a row for each group and policy:"
    )
    sys.stdout.write(f"WHERE replay_id = '{printable(replayed['replay_id'])}'.\n")


def _or_unknown(number: int | None) -> str:
    return "unknown" if number is None else str(number)


def _row(found: PolicyOutcomes, outcome: PolicyOutcome) -> dict[str, Any]:
    row = outcome._asdict() | {"cluster": found.rows.cluster, "group_id": found.rows.group_id}
    row |= {"since": found.since, "until": found.until, "is_estimated": outcome.policy is not None}
    return row | {"not_reproduced": [result.rebalance_id for result in found.not_reproduced]}


def _show(found: PolicyOutcomes) -> None:
    from streaming.terminal.escape import printable
    from streaming.terminal.format import count, span_of_time, time_text
    from streaming.terminal.output import Shown, show_rows

    number, same = len(found.recorded), sum(result.is_same for result in found.results)
    said = f"{same} decided again as recorded" if found.not_reproduced else "all decided again as recorded"
    span = f"{time_text(found.since)} to {time_text(found.until)}"
    sys.stdout.write(
        f"{printable(found.rows.group_id)} in {printable(found.rows.cluster)}, {span}:\n"
        f"{count(number, 'rebalance')}, {said}.\n\n"
    )

    is_compared = len(found.outcomes) > 1

    def pause(row: dict[str, Any]) -> str:
        # Policies are compared by one measure, which is the recorded past's, too.
        estimate = row["pause_estimate_ms"] if is_compared else row["queue_pause_ms"]
        if estimate is None:
            return "unknown"
        sign = "~" if is_compared else ">" if row["pause_unknown"] else ""
        return sign + span_of_time(estimate)

    def mean(number: float | None) -> str:
        return "-" if number is None else f"{number:.1f}"

    columns = [
        Shown("POLICY", lambda row: row["policy"] or "as recorded"),
        Shown("REBALANCES", lambda row: str(row["rebalances"])),
        Shown("MOVED", lambda row: f"{'>' if row['stopped'] is None else ''}{row['moved']}"),
        Shown("IDLE", lambda row: mean(row["idle"])),
        Shown("SPREAD", lambda row: mean(row["spread"])),
        Shown("QUEUE-PAUSE", pause),
    ]
    show_rows([outcome._asdict() for outcome in found.outcomes], columns, is_wide=False)
    sys.stdout.write("\n")
    for line in _lines(found):
        _write_wrapped(line, "  ")


def _write_wrapped(text: str, indent: str = "") -> None:
    """Write a text at the width of a terminal; ``indent``: of all lines but the first."""
    from streaming.terminal.escape import printable

    shown = textwrap.fill(printable(text), 80, subsequent_indent=indent, break_on_hyphens=False)
    sys.stdout.write(f"{shown}\n")


def _lines(found: PolicyOutcomes) -> list[str]:
    """Return what else is to be said, and what the tables do not know."""
    from streaming.history.policy_settings import setting_lines
    from streaming.terminal.format import count, span_of_time
    from udfs.model.first_few import first_few

    lines: list[str] = []
    for outcome in found.outcomes[1:]:
        gone = first_few([name[:8] for name in outcome.gone], _LISTED)
        changes = [f"without {gone}"] if gone else []
        changes += [f"with {count(len(outcome.added), 'other rebalance')}"] if outcome.added else []
        if changes:
            lines.append(f"{outcome.policy}: {' and '.join(changes)}.")
        lines += [f"{outcome.policy}: {note}." for note in outcome.notes]
    lines += [f"As recorded: {note}." for note in found.outcomes[0].notes]
    policies = [outcome.policy for outcome in found.outcomes if outcome.policy is not None]
    lines += [f"To set {line}." for line in setting_lines(policies, found.rows)]
    if found.not_reproduced:
        shown = [f"{result.rebalance_id[:8]} ({result.why})" for result in found.not_reproduced]
        lines.append(f"Not decided again as recorded: {first_few(shown, _LISTED)}.")
    lines.append("IDLE and SPREAD are means over time.")
    recorded = found.outcomes[0]
    by_table = sum(row["queues_moved"] or 0 for row in found.recorded)
    if recorded.moved != by_table:
        lines.append(
            f"As recorded, MOVED has {recorded.moved}: queues that a cooperative rebalance first revoked count as"
            f" moved. The table rebalances has {by_table} in queues_moved."
        )
    if len(found.outcomes) > 1 and recorded.queue_pause_ms is not None:
        lines.append(f"The queue-pause that was measured, as recorded: {span_of_time(recorded.queue_pause_ms)}.")
    if recorded.pause_unknown and recorded.queue_pause_ms is not None:
        lines.append(f"{count(recorded.pause_unknown, 'rebalance')} that moved queues had no measured pause.")
    if len(found.outcomes) > 1 and found.pause_each is not None:
        queues = "queues that stand still" if found.rows.is_reported else "moved queues"
        each = found.pause_each.span_text()
        lines.append(f"QUEUE-PAUSE is estimated in each row: {queues} times what one stood still, {each}.")
    return lines
