"""Command: `advise`: which change of configuration would have saved groups most, by their own past."""

from __future__ import annotations

import sys
import textwrap
from contextlib import redirect_stdout
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streaming.commands.command_group import warn_if_blind
from streaming.commands.options import (
    ClusterOption,
    ConfigOption,
    IntoOption,
    JsonOption,
    TablesOption,
    core_config,
    reader_settings,
    tables_root,
)
from streaming.commands.replay import replay_many

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from streaming.history.advice import Advice, GroupAdvice
    from streaming.tables.schema import Row

_WIDTH = 80
_DAY_MS = 86_400_000
# Ids of rebalances that a person is shown; all are in the row.
_LISTED = 5
_DAYS = 7


def advise(
    group: Annotated[str | None, typer.Option("--group", "-g", metavar="GROUP", help="The group.")] = None,
    all_groups: Annotated[
        bool, typer.Option("--all", help="All groups, by the job of `replay --all`. Repeated, it continues.")
    ] = False,
    cluster: ClusterOption = None,
    days: Annotated[int, typer.Option("--days", min=1, max=366, metavar="N", help="The last days.")] = _DAYS,
    into: IntoOption = None,
    tables: TablesOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Advise changes of configuration: what would have saved most queue-pause in the last days, and at what price.

    A fixed set of policies is replayed (docs/advice.md); a saving below a threshold is no advice. For all groups it
    starts Spark: advise --all.
    """
    from streaming.history.advice import group_advice
    from streaming.terminal.output import write_json_lines

    if all_groups == bool(group):
        raise typer.BadParameter("name a group with --group, or take all of them with --all", param_hint="--group")
    if group is not None and into is not None:
        raise typer.BadParameter("is where --all writes; advice for one group is only shown", param_hint="--into")
    if group is not None:
        by_group = [_figures_of_one(group, cluster, days, tables, config)]
    else:
        by_group = _figures_of_all(cluster, days, into, tables, config)
    found = [group_advice(rows) for rows in by_group]
    if as_json:
        write_json_lines([_row(advice) for advice in found])
    else:
        _show(found, days, is_all=group is None)
    warn_if_blind(tables_root(tables, config), sorted({advice.recorded["cluster"] for advice in found}))


def _figures_of_one(group: str, cluster: str | None, days: int, tables: str | None, config: Path | None) -> list[Row]:
    from streaming.allocation.plugins import installed_user_strategies
    from streaming.history.advice import asked_of
    from streaming.history.replay_figures import replay_figures
    from streaming.machine.clock import now_ms
    from streaming.terminal.output import answering
    from streaming.views.name_checks import one_group
    from streaming.views.reader import Reader

    with redirect_stdout(sys.stderr):
        installed_user_strategies()
    with answering():
        reader = Reader(tables_root(tables, config))
        named = one_group(reader, group, cluster)
        asked = asked_of(_newest(reader.newest_ms("rebalances", "event_time"), now_ms()) - days * _DAY_MS)
        return replay_figures(reader, named["cluster"], group, asked, core_config(config), named["system"])


def _figures_of_all(
    cluster: str | None, days: int, into: str | None, tables: str | None, config: Path | None
) -> list[list[Row]]:
    from streaming.history.advice import asked_of
    from streaming.machine.clock import now_ms
    from streaming.replays.replay_request import ReplayRequest
    from streaming.settings.locations import catalog_schema, tables_of
    from streaming.terminal.output import answering
    from streaming.views.reader import Reader

    settings = reader_settings(config, {"job.tables": tables})
    place = settings.job.tables if into is None else tables_of(into)
    with answering():
        newest = None
        if not catalog_schema(settings.job.tables):
            newest = Reader(settings.job.tables).newest_ms("rebalances", "event_time")
        asked = asked_of(_newest(newest, now_ms()) - days * _DAY_MS)
        replayed = replay_many(settings, into, ReplayRequest(asked, (f"advise {days}",), cluster))
        rows = Reader(place).rows("replay_groups", where={"replay_id": replayed["replay_id"]})
    rows.sort(key=_key)
    return [list(of_group) for _, of_group in groupby(rows, _key)]


def _newest(newest_ms: int | None, now: int) -> int:
    """Return the end of the last days: of a recording its newest rebalance, whatever the clock says."""
    return now if newest_ms is None else min(newest_ms, now)


def _key(row: Row) -> tuple[str, str]:
    return row["cluster"], row["group_id"]


def _row(found: GroupAdvice) -> dict[str, Any]:
    return {
        "cluster": found.recorded["cluster"],
        "group_id": found.recorded["group_id"],
        "covers_from": found.recorded.get("covers_from"),
        "covers_to": found.recorded.get("covers_to"),
        "recorded": {name: found.recorded.get(name) for name in ("rebalances", "queues_moved", "queue_pause_ms")},
        "policies_tried": found.tried,
        "unknown": found.unknown,
        "advice": [advice._asdict() for advice in found.advice],
    }


def _show(found: Sequence[GroupAdvice], days: int, *, is_all: bool) -> None:
    from streaming.terminal.format import count

    advised = [each for each in found if each.advice]
    advised.sort(key=lambda each: (-(each.advice[0].saved_pause_ms or 0), -(each.advice[0].saved_repeated or 0)))
    for each in advised if is_all else found:
        _write(_lines(each, days))
        sys.stdout.write("\n")
    if is_all:
        silent = [each for each in found if not each.advice]
        unknown = sum(each.unknown is not None for each in silent)
        _write(
            [
                f"{count(len(advised), 'group')} with advice. Of {count(len(silent) - unknown, 'other group')} no"
                f" policy would have saved enough, of {unknown} it is not known; --json has each reason."
            ]
        )


def _lines(found: GroupAdvice, days: int) -> Iterator[str]:
    from streaming.history.advice import LEAST_PAUSE_MS, LEAST_REPEATED, LEAST_SHARE
    from streaming.terminal.format import count, span_of_time, time_text

    recorded = found.recorded
    name = f"{recorded['group_id']} in {recorded['cluster']}"
    if recorded["rebalances"] is None:
        yield f"{name}: no advice, because {found.unknown}."
        return
    pause = recorded["queue_pause_ms"]
    measured = "unknown" if pause is None else span_of_time(pause)
    yield (
        f"{name}, the last {count(days, 'day')}: {count(recorded['rebalances'], 'rebalance')},"
        f" {count(recorded['queues_moved'], 'queue')} moved, queue-pause {measured}."
        f" They are from {time_text(recorded['covers_from'])} to {time_text(recorded['covers_to'])}."
    )
    for number, advice in enumerate(found.advice, start=1):
        yield ""
        yield f"{number}. {advice.policy}"
        yield from _lines_of(advice)
    if found.unknown is not None:
        yield f"No advice: {found.unknown}."
    elif not found.advice:
        yield (
            f"No advice: none of {found.tried} policies would have saved {LEAST_SHARE:.0%} of the stopped queues"
            f" and with them {span_of_time(LEAST_PAUSE_MS)} of queue-pause or {LEAST_REPEATED:,} repeated messages."
        )


def _lines_of(advice: Advice) -> Iterator[str]:
    from streaming.terminal.format import count, span_of_time

    saved = []
    if advice.saved_pause_ms is not None:
        saved.append(f"~{span_of_time(advice.saved_pause_ms)} of queue-pause ({advice.saved_share:.0%})")
    if advice.saved_repeated is not None:
        saved.append(f"~{advice.saved_repeated:,} messages read twice")
    yield _labelled("saves", f"{', '.join(saved)}: {count(advice.fewer_stops, 'queue')} would not have stopped")
    if advice.gone_rebalances:
        named = [rebalance_id[:8] for rebalance_id in advice.gone_rebalance_ids[:_LISTED]]
        more = advice.gone_rebalances - len(named)
        text = f"{', '.join(named)}{f' and {more} more' if more > 0 else ''}"
        yield _labelled("without", f"{count(advice.gone_rebalances, 'rebalance')}: {text}")
    for cost in advice.costs:
        yield _labelled("costs", cost)
    for setting in advice.settings:
        yield _labelled("set", setting)
    for assumed in advice.assumes:
        yield _labelled("assumes", assumed)
    yield _labelled("sure", f"{advice.sure}: {advice.sure_because}")


def _labelled(label: str, text: str) -> str:
    return f"   {label:<8} {text}"


def _write(lines: Iterator[str] | Sequence[str]) -> None:
    """Write lines at the width of a terminal; the text after a label stays under its beginning."""
    from streaming.terminal.escape import printable

    for line in lines:
        indent = " " * 12 if line.startswith("   ") else ""
        wrapped = textwrap.wrap(
            printable(line), _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        sys.stdout.write("\n".join(wrapped or [""]) + "\n")
