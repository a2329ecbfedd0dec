"""Findings, the gravest first."""

from __future__ import annotations

from pathlib import Path

from streaming.views.finding_lists import findings
from tests.streaming.views.story import json_of


def test_open_findings_come_with_advice(tables: Path) -> None:
    (finding,) = json_of(tables, "show", "findings")
    assert (finding["severity"], finding["advice"]) == ("warning", "compare the strategies of the clients")
    assert json_of(tables, "show", "findings", "--cluster", "c2") == []


class Given:
    """A reader of these rows: an open one has no end."""

    def __init__(self, *rows: dict[str, object]) -> None:
        self._rows = rows

    def rows(self, _table: str, *, where: dict[str, object], keep: object) -> list[dict[str, object]]:
        assert where == {"cluster": None, "group_id": None, "kind": None}
        return [dict(row) for row in self._rows if keep is None or row["closed_at"] is None]


def test_open_ones_come_first_then_the_gravest_then_the_newest() -> None:
    severities = ("info", "critical", "warning", "critical", "critical", "critical")
    opened, closed = (9, 1, 9, 2, 2, 9), (None, None, None, None, None, 10)
    columns = zip("abcedf", severities, opened, closed, strict=True)
    rows = [dict(zip(("finding_id", "severity", "opened_at", "closed_at"), row, strict=True)) for row in columns]
    assert [row["finding_id"] for row in findings(Given(*rows))] == ["d", "e", "b", "c", "a"]
    assert [row["finding_id"] for row in findings(Given(*rows), closed=True)] == ["d", "e", "b", "c", "a", "f"]
