"""The health of a group: one rule for commands, pages and API."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.reading.listing_query import plain_rows
from dashboard.reading.overview import overview
from dashboard.reading.questions import Reading
from streaming.settings.model import load
from streaming.views.freshness import Now, evaluate_liveness
from streaming.views.group_health import health, shown_until, with_health, worst_severity
from streaming.views.groups import groups
from streaming.views.liveness_reader import read_freshness
from streaming.views.reader import Reader
from streaming.views.widespread import WidespreadKind
from tests.streaming.tables.journals import T0
from tests.streaming.tables.signs import known, sign


@pytest.mark.parametrize(
    ("state", "worst", "unassigned", "expected"),
    [
        ("stable", None, 0, "ok"),
        ("stable", None, None, "ok"),
        ("stable", None, 1, "warning"),
        ("stable", "info", 0, "info"),
        ("stable", "info", 1, "warning"),
        ("stable", "warning", 0, "warning"),
        ("stable", "critical", 0, "critical"),
        ("failed", None, 0, "critical"),
        ("failed", "info", 1, "critical"),
        ("not_followed", None, 0, "unknown"),
        ("not_followed", "warning", 0, "warning"),
        ("empty", None, 0, "ok"),
    ],
)
def test_the_worst_counts(state: str, worst: str | None, unassigned: int | None, expected: str) -> None:
    assert health(state=state, worst=worst, unassigned_queues=unassigned) == expected


def test_what_is_widespread_counts_as_info() -> None:
    row = {"cluster": "c", "kind": "flapping", "group_id": "g", "severity": "warning"}
    many = [WidespreadKind("c", "flapping", 9, 10)]
    assert worst_severity([row], []) == "warning"
    assert worst_severity([row], many) == "info"
    assert worst_severity([row, row | {"kind": "x", "severity": "critical"}], many) == "critical"
    assert worst_severity([], many) is None


def test_commands_and_pages_have_the_same(tables: Path) -> None:
    settings = load()
    names = ("cluster", "group_id", "health", "open_findings", "finding_kinds")
    reading = Reading.of(tables, settings.dashboard)
    pages = sorted(tuple(row[name] for name in names) for row in plain_rows(overview(reading)))
    reader = Reader(tables)
    rows = with_health(reader, groups(reader), settings.widespread, 1_800_000_000_000, read_freshness(tables))
    assert sorted(tuple(row[name] for name in names) for row in rows) == pages


def test_what_is_not_known_is_shown_up_to_where_the_knowledge_of_it_ends() -> None:
    recorded = evaluate_liveness([sign(known("c1"), known("c2", known_until=T0 + 5))], Now(T0 + 10**9, 0, "boot"))
    assert shown_until(recorded, ["c1", "c2"], T0 + 10**9) == T0 + 5
    live = evaluate_liveness([sign(known("c1", is_live=True), state="running")], Now(T0 + 100, 0, "boot"))
    assert shown_until(live, ["c1"], T0 + 100) == T0 + 100
    assert shown_until(live, ["c9"], T0 + 100) == T0 + 100


def test_the_health_of_a_group_is_unknown_with_its_cluster(tables: Path) -> None:
    gone = evaluate_liveness([sign(known("c1", is_live=True), state="running")], Now(T0 + 10**9, 0, "boot"))
    reader = Reader(tables)
    rows = with_health(reader, groups(reader, cluster="c1"), load().widespread, T0 + 10**9, gone)
    assert {row["health"] for row in rows} == {"unknown"}
