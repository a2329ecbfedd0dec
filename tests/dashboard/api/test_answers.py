"""JSON for programs, CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
import json

import pytest

from dashboard.api.answers import FORMULA_STARTS, cell, csv_answer, json_answer
from streaming.terminal.escape import printable
from tests.dashboard.hostile import HOSTILE


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_cell_is_a_formula_and_every_id_is_one_cell(name: str) -> None:
    text = bytes(csv_answer([{"group_id": name, "members": 1}], ["group_id", "members"], "groups").body).decode()
    heading, row = list(csv.reader(io.StringIO(text, newline="")))
    assert heading == ["group_id", "members"]
    assert row[0].replace("'", "") == printable(name).replace("'", "")
    assert not row[0].lstrip(" ").startswith(FORMULA_STARTS)
    assert row[1] == "1"
    assert text.replace("\r\n", "").isprintable()


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_json_has_no_character_that_a_terminal_acts_on_and_is_the_same_text(name: str) -> None:
    body = bytes(json_answer({"group_id": name}).body).decode()
    assert body.isprintable()
    assert json.loads(body) == {"group_id": name}


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a;=HYPERLINK(1)", '"a;\'=HYPERLINK(1)"'),
        ("a; +1;b;@c", "\"a; '+1;b;'@c\""),
        ('a;"=1', '"a;""\'=1"'),
        ("x\t=1", "x\\t=1"),
        ("x;y", '"x;y"'),
        ("a\n=1", "a\\n=1"),
        ("\x1b[2J\x9b2J\u202e", "\\x1b[2J\\x9b2J\\u202e"),
        (" lead", '" lead"'),
    ],
)
def test_cells_are_one_cell_where_a_semicolon_separates_too(name: str, written: str) -> None:
    text = bytes(csv_answer([{"a": name, "b": 1}], ["a", "b"], "x").body).decode()
    assert text.splitlines()[1] == f"{written},1"


def test_a_lone_surrogate_is_written_out() -> None:
    assert bytes(json_answer({"a": "\ud800"}).body) == b'{"a":"\\ud800"}'
    assert cell("\ud800") == "\\ud800"


def test_a_file_names_how_many_rows_there_are_and_where_they_go_on() -> None:
    whole = csv_answer([{"a": 1}], ["a"], "x")
    assert (whole.headers["x-total-count"], "link" in whole.headers) == ("1", False)
    cut = csv_answer([{"a": 1}], ["a"], "x", total=7, following="/api/v1/x?cursor=y")
    assert (cut.headers["x-total-count"], cut.headers["link"]) == ("7", '</api/v1/x?cursor=y>; rel="next"')


def test_numbers_stay_numbers_and_lists_are_json() -> None:
    assert [cell(value) for value in (-5, 1.5, True, ["=1"], {"a": None})] == [-5, 1.5, True, '["=1"]', '{"a": null}']


def test_times_are_rfc_3339_in_both() -> None:
    row = {"event_time": 1_767_225_600_007, "pause_ms": 7}
    assert json.loads(bytes(json_answer({"rows": [row]}).body))["rows"] == [
        {"event_time": "2026-01-01T00:00:00.007Z", "pause_ms": 7}
    ]
    assert b"2026-01-01T00:00:00.007Z,7" in bytes(csv_answer([row], row, "x").body)
