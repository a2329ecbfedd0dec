"""Command: `replay`: what a group's past would have been under another strategy, with other queues or members."""

from __future__ import annotations

import sys
import textwrap
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streaming.commands.options import (
    ClusterOption,
    ConfigOption,
    JsonOption,
    SinceOption,
    TablesOption,
    UntilOption,
    core_config,
    tables_root,
    time_ms,
)

if TYPE_CHECKING:
    from streaming.history.policy_outcomes import PolicyOutcome, PolicyOutcomes

_LISTED = 5


def replay(
    group: Annotated[str, typer.Option("--group", "-g", metavar="GROUP", help="The group.")],
    cluster: ClusterOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="POLICY",
            help="strategy=NAME, queues TOPIC=N, without MEMBER|HOST|CLIENT, static, session_timeout=30s, graceful,"
            " members=+2, join_delay=3s, combined with +. Repeatable.",
        ),
    ] = None,
    all_strategies: Annotated[
        bool, typer.Option("--all-strategies", help="Also each strategy of the group's system.")
    ] = False,
    tables: TablesOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide a group's recorded past again, by the same code as live, and under policies: what would have changed?

    It reads the tables alone and changes nothing. Without a policy it says which rebalances the tables give again:
    replay -g orders; replay -g orders -p strategy=CONSISTENT_HASH -p "without 10.0.0.7"; replay -g orders
    --all-strategies.
    """
    from streaming.allocation.plugins import installed_user_strategies
    from streaming.history.group_rows import group_rows
    from streaming.history.policy_outcomes import outcomes_of
    from streaming.history.policy_texts import strategies_of
    from streaming.terminal.output import answering, write_json_lines
    from streaming.views.name_checks import one_group
    from streaming.views.reader import Reader
    from udfs.strategies.registry import names

    since_ms, until_ms = time_ms("--since", since), time_ms("--until", until)
    with answering():
        reader = Reader(tables_root(tables, config))
        named = one_group(reader, group, cluster)
        rows = group_rows(reader, named["cluster"], group, since_ms)
        policies = [*(policy or []), *(strategies_of(rows) if all_strategies else [])]
        used = {row["strategy"] for row in rows.rebalances if row["strategy"]}
        if policies or not used <= set(names()):
            with redirect_stdout(sys.stderr):
                installed_user_strategies()
        found = outcomes_of(rows, policies, core_config(config), until_ms)
        if as_json:
            write_json_lines([_row(found, outcome) for outcome in found.outcomes], frozenset())
        else:
            _show(found)


def _row(found: PolicyOutcomes, outcome: PolicyOutcome) -> dict[str, Any]:
    row = outcome._asdict() | {"cluster": found.rows.cluster, "group_id": found.rows.group_id}
    row |= {"since": found.since, "until": found.until, "is_estimated": outcome.policy is not None}
    return row | {"not_reproduced": [result.rebalance_id for result in found.not_reproduced]}


def _show(found: PolicyOutcomes) -> None:
    from streaming.terminal.escape import printable
    from streaming.terminal.format import count, span_of_time, time_text
    from streaming.terminal.output import Shown, show_rows

    differing, number = found.not_reproduced, len(found.results)
    said = "all decided again as recorded" if not differing else f"{number - len(differing)} decided again as recorded"
    span = f"{time_text(found.since)} to {time_text(found.until)}"
    sys.stdout.write(
        f"{printable(found.rows.group_id)} in {printable(found.rows.cluster)}, {span}:\n"
        f"{count(number, 'rebalance')}, {said}.\n\n"
    )

    def pause(row: dict[str, Any]) -> str:
        if row["queue_pause_ms"] is None:
            return "unknown"
        sign = "~" if row["policy"] is not None else ">" if row["pause_unknown"] else ""
        return sign + span_of_time(row["queue_pause_ms"])

    def mean(number: float | None) -> str:
        return "-" if number is None else f"{number:.1f}"

    columns = [
        Shown("POLICY", lambda row: row["policy"] or "as recorded"),
        Shown("REBALANCES", lambda row: str(row["rebalances"])),
        Shown("MOVED", lambda row: str(row["moved"])),
        Shown("IDLE", lambda row: mean(row["idle"])),
        Shown("SPREAD", lambda row: mean(row["spread"])),
        Shown("QUEUE-PAUSE", pause),
    ]
    show_rows([outcome._asdict() for outcome in found.outcomes], columns, is_wide=False)
    for line in _lines(found):
        shown = textwrap.fill(printable(line), 80, subsequent_indent="  ", break_on_hyphens=False)
        sys.stdout.write(f"\n{shown}")
    sys.stdout.write("\n")


def _lines(found: PolicyOutcomes) -> list[str]:
    """Return what else is to be said, and what the tables do not know."""
    from streaming.history.policy_settings import setting_lines
    from streaming.terminal.format import count

    lines: list[str] = []
    for outcome in found.outcomes[1:]:
        changes = [f"without {', '.join(name[:8] for name in outcome.gone[:_LISTED])}"] if outcome.gone else []
        changes += [f"{len(outcome.gone) - _LISTED} more"] if len(outcome.gone) > _LISTED else []
        changes += [f"with {count(len(outcome.added), 'other rebalance')}"] if outcome.added else []
        if changes:
            lines.append(f"{outcome.policy}: {' and '.join(changes)}.")
        lines += [f"{outcome.policy}: {note}." for note in outcome.notes]
    lines += [f"As recorded: {note}." for note in found.outcomes[0].notes]
    policies = [outcome.policy for outcome in found.outcomes if outcome.policy is not None]
    lines += [f"To set {line}." for line in setting_lines(policies, found.rows)]
    if found.not_reproduced:
        shown = [f"{result.rebalance_id[:8]} ({result.reason or 'unknown'})" for result in found.not_reproduced]
        more = f" and {len(shown) - _LISTED} more" if len(shown) > _LISTED else ""
        lines.append(f"Not decided again as recorded: {', '.join(shown[:_LISTED])}{more}.")
    lines.append("IDLE and SPREAD are means over time.")
    unknown = found.outcomes[0].pause_unknown
    if unknown and found.outcomes[0].queue_pause_ms is not None:
        lines.append(f"{count(unknown, 'rebalance')} that moved queues had no measured pause.")
    if len(found.outcomes) > 1 and found.pause_each is not None:
        is_reported = found.rows.rebalances[0]["generation_source"] == "reported"
        queues = "queues that stand still" if is_reported else "moved queues"
        each = found.pause_each.span_text()
        lines.append(f"Queue-pause under a policy is estimated: {queues} times what one stood still, {each}.")
    return lines
