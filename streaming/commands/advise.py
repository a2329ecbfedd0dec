"""Command: `advise`: which change of configuration would have saved groups most, by their own past."""

from __future__ import annotations

import sys
import textwrap
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated

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

    from streaming.history.advice import GroupAdvice

_WIDTH = 80
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
    from streaming.history.advice_texts import advice_row
    from streaming.terminal.output import write_json_lines

    if all_groups == bool(group):
        raise typer.BadParameter("name a group with --group, or take all of them with --all", param_hint="--group")
    if group is not None and into is not None:
        raise typer.BadParameter("is where --all writes; advice for one group is only shown", param_hint="--into")
    if group is not None:
        found = [_advice_of_one(group, cluster, days, tables, config)]
    else:
        found = _advice_of_all(cluster, days, into, tables, config)
    if as_json:
        write_json_lines([advice_row(advice) for advice in found])
    else:
        _show(found, days, is_all=group is None)
    warn_if_blind(tables_root(tables, config), sorted({advice.recorded["cluster"] for advice in found}))


def _advice_of_one(group: str, cluster: str | None, days: int, tables: str | None, config: Path | None) -> GroupAdvice:
    from streaming.allocation.plugins import installed_user_strategies
    from streaming.history.advice import group_advice
    from streaming.history.recent_figures import recent_figures, since_of
    from streaming.machine.clock import now_ms
    from streaming.terminal.output import answering
    from streaming.views.name_checks import one_group
    from streaming.views.reader import Reader

    with redirect_stdout(sys.stderr):
        installed_user_strategies()
    with answering():
        reader = Reader(tables_root(tables, config))
        named = one_group(reader, group, cluster) | {"group_id": group}
        return group_advice(recent_figures(reader, named, since_of(reader, days, now_ms()), core_config(config)))


def _advice_of_all(
    cluster: str | None, days: int, into: str | None, tables: str | None, config: Path | None
) -> list[GroupAdvice]:
    from streaming.history.advice import advice_by_group, asked_of
    from streaming.history.recent_figures import DAY_MS, since_of
    from streaming.machine.clock import now_ms
    from streaming.replays.replay_request import ReplayRequest
    from streaming.settings.locations import catalog_schema, tables_of
    from streaming.terminal.output import answering
    from streaming.views.reader import Reader

    settings = reader_settings(config, {"job.tables": tables})
    place = settings.job.tables if into is None else tables_of(into)
    with answering():
        now = now_ms()
        is_read = not catalog_schema(settings.job.tables)
        asked = asked_of(since_of(Reader(settings.job.tables), days, now) if is_read else now - days * DAY_MS)
        replayed = replay_many(settings, into, ReplayRequest(asked, (f"advise {days}",), cluster))
        rows = Reader(place).rows("replay_groups", where={"replay_id": replayed["replay_id"]})
    return advice_by_group(rows)


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
    from streaming.history.advice_texts import entry_lines, heading, no_advice_text

    yield heading(found, days)
    if found.recorded["rebalances"] is None:
        return
    for number, advice in enumerate(found.advice, start=1):
        yield ""
        yield f"{number}. {advice.policy}"
        yield from (_labelled(label, text) for label, text in entry_lines(advice))
    if reason := no_advice_text(found):
        yield reason


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
