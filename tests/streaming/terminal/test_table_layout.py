"""Tables within the width of a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from streaming.terminal.table_layout import table_lines

HEAD = ["GROUP", "STATE", "MESSAGE"]


def test_without_a_width_nothing_is_cut() -> None:
    assert table_lines([HEAD, ["x" * 200, "ok", "y" * 200]], None)[1] == f"{'x' * 200}  ok     {'y' * 200}"


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (80, "orders-of-the-whole-world  stable  all is well"),
        (44, "orders-of…le-world  stable  all is well here"),
        (30, "orders…world  stable  all is…"),
        (12, "orders…worl…"),
    ],
)
def test_names_lose_their_middle_and_lines_their_end(width: int, line: str) -> None:
    text = "all is well" if width == 80 else "all is well here"
    lines = table_lines([HEAD, ["orders-of-the-whole-world", "stable", text]], width, frozenset({0}))
    assert lines[1] == line


@given(
    st.lists(st.lists(st.text("ab日本é-", max_size=40), min_size=3, max_size=3), max_size=5),
    st.integers(1, 100),
    st.frozensets(st.integers(0, 2)),
)
def test_no_line_is_wider_than_the_terminal_and_each_row_has_one(
    rows: list[list[str]], width: int, names: frozenset[int]
) -> None:
    lines = table_lines([HEAD, *rows], width, names)
    assert len(lines) == 1 + len(rows)
    assert max(map(cell_len, lines)) <= width
