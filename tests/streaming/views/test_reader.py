"""Reading tables: absent ones, odd names, and no slow import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import CHANGES, MEMBERS
from streaming.tables.writer import Mark
from streaming.views.reader import Except, Reader
from tests.streaming.views.story import json_of, run


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "groups"],
        ["show", "group", "g"],
        ["show", "members"],
        ["show", "rebalances"],
        ["show", "assignments"],
        ["show", "findings"],
        ["who-owned", "t", "0"],
        ["explain", "x"],
        ["optimize"],
    ],
)
def test_without_tables_the_remedy_is_named(tmp_path: Path, arguments: list[str]) -> None:
    missing = run(tmp_path / "nowhere", *arguments)
    assert (missing.exit_code, "--tables DIR" in missing.stderr) == (2, True)
    empty = run(tmp_path, *arguments)
    assert (empty.exit_code, "--tables DIR" in empty.stderr) == (2, True)


def test_tables_that_are_not_there_yet_count_as_empty(tmp_path: Path) -> None:
    DeltaRsTable(tmp_path, CHANGES)
    assert json_of(tmp_path, "show", "groups") == []
    assert run(tmp_path, "show", "group", "g").exit_code == 2


def test_a_quote_in_a_name_is_a_letter_like_any_other(tables: Path) -> None:
    result = run(tables, "show", "group", "it's")
    assert (result.exit_code, result.stderr) == (2, "error: there is no group it's\n")


def test_reading_at_a_time_imports_no_pandas(tmp_path: Path) -> None:
    DeltaRsTable(tmp_path, MEMBERS).append(to_arrow(MEMBERS, [{"joined_at": 1}]), Mark("job", 0))
    imports = "import sys; from pathlib import Path; from streaming.views.reader import Reader, holds_at"
    reads = f"rows = Reader(Path({str(tmp_path)!r})).rows('members', keep=holds_at('joined_at', 'left_at', 5))"
    script = f"{imports}; {reads}; print(len(rows), 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "1 False\n"


def test_values_that_are_left_out(tmp_path: Path) -> None:
    rows = [{"member_id": name, "joined_at": 1} for name in ("a", "b", "it's")]
    DeltaRsTable(tmp_path, MEMBERS).append(to_arrow(MEMBERS, rows), Mark("job", 0))

    def left(*names: str) -> list[str]:
        found = Reader(tmp_path).rows("members", where={"member_id": Except(frozenset(names))})
        return sorted(row["member_id"] for row in found)

    assert left("it's", "a", "none") == ["b"]
    assert left() == ["a", "b", "it's"]
