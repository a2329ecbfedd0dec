"""JSON for programs, CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
import json

import pytest

from dashboard.api.answers import FORMULA_STARTS, cell, csv_answer, json_answer
from tests.dashboard.hostile import HOSTILE


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_cell_is_a_formula_and_every_id_is_one_cell(name: str) -> None:
    text = bytes(csv_answer([{"group_id": name, "members": 1}], ["group_id", "members"], "groups").body).decode()
    heading, row = list(csv.reader(io.StringIO(text, newline="")))
    assert heading == ["group_id", "members"]
    assert row[0].removeprefix("'") in (name, name.removeprefix("'"))
    assert not row[0].lstrip(" ").startswith(FORMULA_STARTS)
    assert row[1] == "1"


def test_numbers_stay_numbers_and_lists_are_json() -> None:
    assert [cell(value) for value in (-5, 1.5, True, ["=1"], {"a": None})] == [-5, 1.5, True, '["=1"]', '{"a": null}']


def test_times_are_rfc_3339_in_both() -> None:
    row = {"event_time": 1_767_225_600_007, "pause_ms": 7}
    assert json.loads(bytes(json_answer({"rows": [row]}).body))["rows"] == [
        {"event_time": "2026-01-01T00:00:00.007Z", "pause_ms": 7}
    ]
    assert b"2026-01-01T00:00:00.007Z,7" in bytes(csv_answer([row], row, "x").body)
