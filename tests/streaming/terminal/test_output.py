"""Outputs of commands: tables for people, one JSON object a line for programs, sentences if nothing is there."""

from __future__ import annotations

import json
import re

import pytest
import typer

from streaming.tables.errors import AmbiguousError, NoTablesError, NotFoundError
from streaming.terminal.output import (
    answering,
    field,
    name_field,
    show_rows,
    time_field,
    with_times,
    write_json_lines,
    yes_no,
)


def test_columns_are_aligned_and_null_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"name": "a", "at": 1_767_225_600_000, "ok": True}, {"name": "longer", "at": None, "ok": False}, {}]
    columns = [field("NAME", "name"), time_field("AT", "at"), field("OK", "ok", yes_no)]
    show_rows(rows, columns, title="Members", is_wide=True)
    assert capsys.readouterr().out.splitlines() == [
        "Members",
        "NAME    AT                        OK",
        "a       2026-01-01T00:00:00.000Z  yes",
        "longer  -                         no",
        "-       -                         -",
    ]


def test_without_wide_times_are_brief_and_some_columns_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"name": "a", "at": 1_767_225_600_000, "more": "x"}
    begin = name_field("BEGIN", "name")._replace(is_brief=True)
    columns = [
        begin,
        name_field("NAME", "name", str.upper),
        time_field("AT", "at"),
        field("MORE", "more", is_wide=True),
    ]
    show_rows([row], columns)
    show_rows([row], columns, is_wide=True)
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["BEGIN", "NAME", "AT"],
        ["a", "A", "01-01", "00:00:00"],
        ["NAME", "AT", "MORE"],
        ["a", "2026-01-01T00:00:00.000Z", "x"],
    ]


def test_on_a_terminal_each_row_is_one_line_that_fits_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("streaming.terminal.output.is_terminal", lambda: True)
    columns = [name_field("GROUP", "group"), field("STATE", "state"), field("MESSAGE", "message")]
    row = {"group": "a-very-long-name-of-a-group-1", "state": "stable", "message": "word " * 40}
    show_rows([row], columns)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in capsys.readouterr().out.splitlines()]
    assert lines == ["GROUP         STATE   MESSAGE", "a-very…oup-1  stable  word word word wo…"]
    show_rows([row], columns, is_wide=True)
    assert "a-very-long-name-of-a-group-1" in capsys.readouterr().out


def test_names_from_outside_cannot_touch_the_terminal_and_long_ones_are_not_cut(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_rows([{"id": "[red]\x1b[2J" + "x" * 500}], [field("ID", "id")], title="a\nb")
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert text.splitlines() == ["a\\nb", "ID", "[red]\\x1b[2J" + "x" * 500]


def test_times_are_written_out_however_deep_and_only_those(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"at": 0, "count": 0, "rows": [{"at": None}, ({"at": 1},)], "name": "日本"}
    write_json_lines([value], frozenset({"at"}))
    line = capsys.readouterr().out
    assert json.loads(line) == {
        "at": "1970-01-01T00:00:00.000Z",
        "count": 0,
        "rows": [{"at": None}, [{"at": "1970-01-01T00:00:00.001Z"}]],
        "name": "日本",
    }
    assert "日本" in line
    assert with_times(5, frozenset({"at"})) == 5


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [(NotFoundError("no group g"), 2), (NoTablesError("no tables"), 2), (AmbiguousError("two"), 2)],
)
def test_missing_items_give_a_sentence_and_an_exit_code(
    error: Exception, exit_code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as end, answering():
        raise error
    assert end.value.exit_code == exit_code
    assert capsys.readouterr().err == f"error: {error}\n"


def test_other_errors_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError), answering():
        _ = 1 / 0
