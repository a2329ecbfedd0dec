"""Findings are found by the clients and members that they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.reading.naming_findings import naming_findings
from dashboard.reading.questions import Reading
from streaming.settings.locations import location_of
from streaming.tables.schema import Row
from tests.browser.day_tables import T0, write_rows

NAMES: list[Row] = [
    {"clients": [{"client": "a", "rebalances": 3}]},
    {"members": [{"member_id": "m1", "client": "b", "detail": None}], "closed_at": T0 + 9},
    {"queues": [{"topic": "t", "broker": None, "queue_id": 0, "member_id": "m2", "reason": None, "owners": []}]},
    {},
]


@pytest.mark.parametrize(
    ("clients", "members", "found"),
    [(["a"], [], ["f0"]), (["b"], ["m2"], ["f2", "f1"]), ([], ["m1"], ["f1"]), ([], [], []), (["x"], ["y"], [])],
)
def test_what_a_finding_names_leads_to_it(
    tmp_path: Path, clients: list[str], members: list[str], found: list[str]
) -> None:
    base = {"cluster": "c", "group_id": "g", "kind": "odd", "severity": "warning", "message": "m", "opened_at": T0}
    write_rows(tmp_path, "findings", [base | {"finding_id": f"f{n}"} | names for n, names in enumerate(NAMES)])
    reading = Reading.once(location_of(str(tmp_path)))
    assert [row["finding_id"] for row in naming_findings(reading, ["c"], clients, members)] == found
    assert naming_findings(reading, ["other"], clients, members) == []
