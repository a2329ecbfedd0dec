"""Groups for which `flapping` is sent: few of the demo, which is deployed and scaled, and few in a shift change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from streaming.settings.model import load
from streaming.simulator.fleet import RECORDINGS_START_MS, Fleet
from streaming.tables.schema import Row
from streaming.views.widespread import widespread_kinds
from tests.core_config import core_config
from tests.simulation.core_run import CoreRun, rows_of, run_core
from tests.simulation.given_tables import GivenTables
from tests.simulation.recorded_day import SHIFT_EVERY_MS

WIDESPREAD = load().widespread
STEP_MS = 10_000


def sent(tables: Mapping[str, Sequence[Row]], until_ms: int) -> list[Row]:
    """Return the findings that alerts would send until a time: open for the span, and then not widespread."""
    flapping = [row for row in tables["findings"] if row["kind"] == "flapping"]
    reader: Any = GivenTables({**tables, "findings": flapping})
    found: dict[str, Row] = {}
    for at in range(min(row["opened_at"] for row in flapping), until_ms, STEP_MS):
        now = [
            row
            for row in flapping
            if row["opened_at"] + WIDESPREAD.span_ms <= at and (row["closed_at"] is None or row["closed_at"] > at)
        ]
        many = widespread_kinds(reader, WIDESPREAD, at) if now else ()
        found |= {row["finding_id"]: row for row in now if not any(spread.has(row) for spread in many)}
    return list(found.values())


def test_a_shift_change_in_many_groups_sends_few(day: CoreRun) -> None:
    tables = rows_of(day.changes)
    flapping = [row for row in tables["findings"] if row["kind"] == "flapping"]
    last_ms = max(row["opened_at"] for row in flapping) + SHIFT_EVERY_MS // 2
    open_now = {(row["cluster"], row["group_id"]) for row in flapping if row["closed_at"] is None}
    assert len(open_now) > 8, "at the end of the day it is open in many groups: not every shift is in order"
    woken = sent(tables, last_ms)
    still_open = Counter(row["cluster"] for row in woken if row["closed_at"] is None)
    assert max(still_open.values(), default=0) < WIDESPREAD.min_groups, "only groups that flap without others are sent"
    shifts = Counter((row["cluster"], row["opened_at"] // SHIFT_EVERY_MS) for row in woken)
    assert max(shifts.values()) < WIDESPREAD.min_groups, "of a cluster where many flap, only what stays longest is sent"
    assert len(woken) * 8 <= len(flapping)


def test_deploys_and_scalings_of_the_demo_do_not_flap() -> None:
    fleet = Fleet(1, start_ms=RECORDINGS_START_MS, groups=24, members=180, speed=2.0, short_sessions=True)
    deliveries = [*fleet.deliveries_until(RECORDINGS_START_MS + 600_000), *fleet.finish()]
    tables = rows_of(run_core(deliveries, core_config(), 10_000).changes)
    planned = Counter(row["kind"] for row in tables["episodes"])
    assert min(planned["rolling_deploy"], planned["scaling"]) > 10
    groups = {row["group_id"] for row in tables["findings"] if row["kind"] == "flapping"}
    assert len(groups) <= len(tables["groups"]) // 8
