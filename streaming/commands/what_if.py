"""Command: `what-if`: what a change would do to a group, before it is made."""

from __future__ import annotations

import sys
import textwrap
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.commands.command_group import complain
from streaming.commands.options import (
    ClusterOption,
    ConfigOption,
    JsonOption,
    TablesOption,
    TimeOption,
    WideOption,
    core_config,
    tables_root,
    time_ms,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streaming.tables.schema import Row
    from streaming.terminal.output import Shown
    from streaming.views.foresight import Comparison, Foresight

# Members, and moves, that are listed without --wide.
_SHOWN = 20


def what_if(
    group: Annotated[str, typer.Option("--group", "-g", metavar="GROUP", help="The group.")],
    cluster: ClusterOption = None,
    at: TimeOption = None,
    add: Annotated[int, typer.Option(metavar="N", min=0, max=10_000, help="New members.")] = 0,
    like: Annotated[
        str | None, typer.Option(metavar="MEMBER", help="New members subscribe like this one. Default: like most.")
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEMBER|N", help="A member leaves: its id or the beginning of it, or its client; or the N newest."
        ),
    ] = None,
    lose_host: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="The members on this host fall silent. Repeatable.")
    ] = None,
    lose_rack: Annotated[
        list[str] | None, typer.Option(metavar="RACK", help="The members in this rack fall silent. Repeatable.")
    ] = None,
    queues: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC=N", help="The topic has N queues (of RocketMQ and MetaQ: on each broker)."),
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(metavar="NAME|all", help="Another strategy, e.g. cooperative-sticky; all compares.")
    ] = None,
    rolling_restart: Annotated[bool, typer.Option("--rolling-restart", help="Every member restarts.")] = False,
    at_a_time: Annotated[int, typer.Option(min=1, metavar="K", help="How many restart at a time.")] = 1,
    static: Annotated[
        bool, typer.Option("--static", help="They restart as static members, within their session timeout.")
    ] = False,
    tables: TablesOption = None,
    config: ConfigOption = None,
    wide: WideOption = False,
    as_json: JsonOption = False,
) -> None:
    """Foresee what a change does to a group: who gets which queue, what moves, what stands still and for how long.

    It changes nothing, and needs no Spark and no cluster: the group's own strategy decides on its own members.
    Options combine: what-if -g orders --add 2 --queues orders=24; what-if -g orders --remove 1 --strategy all; what-if
    -g orders --lose-host 10.0.0.7; what-if -g orders --rolling-restart --at-a-time 2.
    """
    from streaming.terminal.escape import printable
    from streaming.terminal.format import time_text
    from streaming.terminal.output import answering
    from streaming.views.foresight import answer, compared
    from streaming.views.known_groups import found_group, load_custom_strategies
    from streaming.views.liveness_reader import blind_text
    from streaming.views.reader import Reader
    from streaming.views.wished_changes import EVERY, Wish, mistakes_of

    wish = Wish(
        add=add,
        like=like,
        remove=remove or (),
        hosts=lose_host or (),
        racks=lose_rack or (),
        queues=_queues_of(queues or []),
        strategy=None if strategy == EVERY else strategy,
        at_once=at_a_time if rolling_restart else 0,
        is_static=static,
    )
    if mistakes := mistakes_of(wish, is_compared=strategy == EVERY, at_a_time=at_a_time):
        complain(*mistakes)
    at_ms = time_ms("--at", at)
    core = core_config(config)
    with answering():
        root = tables_root(tables, config)
        reader = Reader(root)
        found = found_group(reader, group, cluster, at_ms, core.vote_tie_order)
        blind = blind_text(root, found.known.cluster) if at_ms is None else ""
        if blind:
            found.doubts.append(f"the group is as last known, because {blind}")
        with redirect_stdout(sys.stderr):
            load_custom_strategies(found, strategy)
        if strategy == EVERY:
            _show_compared(compared(found, wish, core), as_json=as_json)
        else:
            when = "as last known" if blind else "now" if at_ms is None else f"at {time_text(at_ms)}"
            _show(answer(reader, found, wish, core, at_ms), at_ms, when, as_json=as_json, is_wide=wide)
    if blind:
        sys.stderr.write(f"{printable(blind)}\n")


def _queues_of(texts: list[str]) -> dict[str, int]:
    from streaming.tables.errors import NotFoundError
    from streaming.views.wished_changes import queues_of

    try:
        return queues_of(texts)
    except NotFoundError as error:
        raise typer.BadParameter(str(error)) from error


def _show(given: Foresight, at_ms: int | None, when: str, *, as_json: bool, is_wide: bool) -> None:
    from streaming.terminal.format import queues_text
    from streaming.terminal.member_names import brief_id
    from streaming.terminal.output import Shown, field, name_field, write_json_lines
    from streaming.views.foresight import answer_row, member_rows
    from streaming.views.foresight_texts import headline, lines, move_rows

    if as_json:
        write_json_lines([answer_row(given, at_ms)])
        return
    sys.stdout.write(f"{_wrapped(headline(given, when))}\n")
    columns = [
        name_field("CONSUMER-ID", "member_id", brief_id),
        field("GROUP-INSTANCE-ID", "instance_id", is_wide=True),
        field("HOST", "host"),
        field("CLIENT-ID", "client_id", is_wide=True),
        field("MEMBER", "change"),
        Shown("#BEFORE", lambda row: "-" if row["before"] is None else str(len(row["before"]))),
        Shown("#AFTER", lambda row: "-" if row["after"] is None else str(len(row["after"]))),
        Shown("BEFORE", lambda row: "-" if row["before"] is None else queues_text(row["before"]), is_wide=True),
        Shown("AFTER", lambda row: "-" if row["after"] is None else queues_text(row["after"])),
    ]
    _show_few(member_rows(given), columns, "members", is_wide=is_wide)
    moves = move_rows(given)
    if moves:
        sys.stdout.write("\n")
        columns = [name_field("FROM", "from", brief_id), name_field("TO", "to", brief_id)]
        columns += [field("#MOVED", "number"), field("MOVED", "queues")]
        _show_few(moves, columns, "pairs of members", is_wide=is_wide)
    sys.stdout.write("\n" + "".join(map(_wrapped, lines(given))))


def _wrapped(line: str) -> str:
    from streaming.terminal.escape import printable

    indent = "    " if line.startswith(" ") else "  "
    return textwrap.fill(printable(line), 80, subsequent_indent=indent, break_on_hyphens=False) + "\n"


def _show_few(rows: Sequence[Row], columns: Sequence[Shown], what: str, *, is_wide: bool) -> None:
    from streaming.terminal.output import show_rows

    show_rows(rows if is_wide else rows[:_SHOWN], columns, is_wide=is_wide)
    if not is_wide and len(rows) > _SHOWN:
        sys.stdout.write(f"… and {len(rows) - _SHOWN} more {what}; --wide lists all\n")


def _show_compared(compared: list[Comparison], *, as_json: bool) -> None:
    from streaming.terminal.output import field, show_rows, write_json_lines

    rows = [each.row for each in compared]
    if as_json:
        write_json_lines(rows, frozenset())
        return
    has_change = any(row["queues_moved"] is not None for row in rows)
    columns = [
        field("STRATEGY", "strategy"),
        field("SWITCH", "queues_switched"),
        *([field("MOVED", "queues_moved")] if has_change else []),
        field("STOPPED", "queues_stopped"),
        field("SPREAD", "spread"),
        field("IDLE", "idle_members"),
        field("UNASSIGNED", "unassigned_queues"),
    ]
    columns += [field("ERROR", "error")] if any(row["error"] for row in rows) else []
    show_rows(rows, columns)
