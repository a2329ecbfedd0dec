"""Command: `allocate`: run the strategies, case by case from standard input, or for people."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from streaming.commands.command_group import complain

if TYPE_CHECKING:
    from streaming.allocation.comparison import Compared

NOT_READ_EXIT = 1
_BLOCK_BYTES = 1 << 16
_BEFORE = re.compile(r"[0-9]{1,9}")
# Simulated groups must fit into memory, even with 160 points for each member on MetaQ's ring.
_MOST_MEMBERS = 10_000
_MOST_QUEUES = 1_000_000


def allocate(
    *,
    strategy: Annotated[
        str | None, typer.Option(metavar="NAME", help="For people: one strategy, e.g. rocketmq.AVG.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="For people: compare every strategy.")] = False,
    queues: Annotated[int | None, typer.Option(metavar="N", min=0, help="Number of queues per topic.")] = None,
    members: Annotated[int | None, typer.Option(metavar="N", min=1, help="Number of members.")] = None,
    topics: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of topics; all members subscribe to each.")
    ] = 1,
    before: Annotated[
        str | None,
        typer.Option(metavar="MEMBERS[,QUEUES]", help="Size of the group before: shows how many queues move."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """Assign queues as the real clients do.

    Without options: one case a line as JSON on standard input, one answer a line on standard output; exit 1 if a line
    could not be read. With --strategy or --all, --queues and --members: a table.
    """
    if strategy is None and not every:
        given = {
            "--queues": queues is not None,
            "--members": members is not None,
            "--topics": topics != 1,
            "--before": before is not None,
            "--json": as_json,
        }
        if any(given.values()):
            complain(f"{', '.join(name for name in given if given[name])}: only with --strategy or --all")
        _answer_lines()
        return
    _show(strategy, every=every, queues=queues, members=members, topics=topics, before=before, as_json=as_json)


def _answer_lines() -> None:
    from streaming.allocation.cases import answer_line
    from streaming.allocation.plugins import installed_user_strategies

    all_read = True
    number = 0
    answers = sys.stdout.buffer
    # The output of custom strategies must not mix with the results.
    with redirect_stdout(sys.stderr):
        installed_user_strategies()
        for lines in _blocks(sys.stdin.buffer):
            block = bytearray()
            for line in lines:
                number += 1
                if line.strip():
                    answer, read = answer_line(line, number)
                    all_read &= read
                    block += answer + b"\n"
            answers.write(block)
            answers.flush()
    if not all_read:
        raise typer.Exit(NOT_READ_EXIT)


def _blocks(source: BinaryIO) -> Iterator[list[bytes]]:
    """Return whole lines as they arrive: all at once from a file, one by one from a waiting caller."""
    begun: list[bytes] = []
    while chunk := source.read1(_BLOCK_BYTES):  # type: ignore[attr-defined]
        first, *rest = chunk.split(b"\n")
        begun.append(first)
        if rest:
            *whole, last = rest
            yield [b"".join(begun), *whole]
            begun = [last]
    yield [b"".join(begun)]


def _show(
    strategy: str | None,
    *,
    every: bool,
    queues: int | None,
    members: int | None,
    topics: int,
    before: str | None,
    as_json: bool,
) -> None:
    from streaming.allocation.comparison import Size, compare, compare_all, is_strategy
    from streaming.allocation.plugins import installed_user_strategies
    from streaming.settings.suggestions import did_you_mean
    from udfs.strategies.registry import names

    with redirect_stdout(sys.stderr):
        installed_user_strategies()
    mistakes = [f"{name} is missing" for name, value in (("--queues", queues), ("--members", members)) if value is None]
    if strategy is not None and every:
        mistakes.append("--strategy and --all cannot go together")
    if strategy is not None and not is_strategy(strategy):
        meant = did_you_mean(strategy, names()) or "; --all lists them"
        mistakes.append(f"--strategy: there is no strategy {strategy}{meant}")
    size_before = None
    if before is not None and queues is not None:
        numbers = before.split(",")
        if len(numbers) > 2 or not all(map(_BEFORE.fullmatch, numbers)) or int(numbers[0]) < 1:
            mistakes.append(f"--before is MEMBERS or MEMBERS,QUEUES, e.g. 2 or 2,5, not {before!r}")
        else:
            size_before = Size(int(numbers[0]), int(numbers[1]) if len(numbers) == 2 else queues, topics)
    sizes = [Size(members or 1, queues or 0, topics), *([size_before] if size_before else [])]
    if max(size.members for size in sizes) > _MOST_MEMBERS:
        mistakes.append(f"at most {_MOST_MEMBERS} members")
    if max(size.queues * size.topics for size in sizes) > _MOST_QUEUES:
        mistakes.append(f"at most {_MOST_QUEUES} queues in all topics")
    if mistakes:
        complain(*mistakes)
    with redirect_stdout(sys.stderr):
        compared = [compare(strategy, sizes[0], size_before)] if strategy else compare_all(sizes[0], size_before)
    if every:
        _show_comparison(compared, as_json=as_json)
    else:
        _show_one(compared[0], topics=topics, as_json=as_json)


def _show_one(compared: Compared, *, topics: int, as_json: bool) -> None:
    from streaming.allocation.comparison import queue_text
    from streaming.terminal.output import field, show_rows, write_json_lines

    if compared.error is not None:
        complain(compared.error, exit_code=NOT_READ_EXIT)
    if as_json:
        write_json_lines(_json_rows(compared), frozenset())
        return
    rows = [
        {"member_id": member, "queues": len(held), "queue_ids": queue_text(held, with_topic=topics > 1)}
        for member, held in compared.assignment.items()
    ]
    show_rows(rows, [field("MEMBER", "member_id"), field("#QUEUES", "queues"), field("QUEUES", "queue_ids")])
    moved = "" if compared.moved is None else f", {compared.moved} moved"
    sys.stdout.write(
        f"\n{compared.strategy}: spread {compared.spread}, {compared.idle_members} idle, "
        f"{compared.unassigned_queues} unassigned{moved}\n"
    )


def _json_rows(compared: Compared) -> Iterator[dict[str, object]]:
    """Return one row for each member and topic, and then the summary with the moves."""
    topics = sorted({queue.topic for held in compared.assignment.values() for queue in held})
    for member, held in compared.assignment.items():
        for topic in topics:
            numbers = sorted(queue.queue_id for queue in held if queue.topic == topic)
            yield {"member_id": member, "topic": topic, "queues": len(numbers), "queue_ids": numbers}
    moves = None if compared.moves is None else [move._asdict() for move in compared.moves]
    yield {**_summary(compared), "moves": moves}


def _summary(compared: Compared) -> dict[str, object]:
    return {
        "strategy": compared.strategy,
        "spread": compared.spread,
        "idle_members": compared.idle_members,
        "unassigned_queues": compared.unassigned_queues,
        "queues_moved": compared.moved,
    }


def _show_comparison(compared: list[Compared], *, as_json: bool) -> None:
    from streaming.terminal.output import field, show_rows, write_json_lines

    rows = [{**_summary(each), "error": each.error} for each in compared]
    if as_json:
        write_json_lines(rows, frozenset())
        return
    shown = [
        field("STRATEGY", "strategy"),
        field("SPREAD", "spread"),
        field("IDLE", "idle_members"),
        field("UNASSIGNED", "unassigned_queues"),
        field("MOVED", "queues_moved"),
    ]
    if any(row["error"] for row in rows):
        shown.append(field("ERROR", "error"))
    show_rows(rows, shown)
