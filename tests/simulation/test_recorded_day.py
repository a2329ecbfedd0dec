"""The same events give the same rows, whatever the code looks like."""

from __future__ import annotations

import json

from tests.simulation.core_run import CoreRun
from tests.simulation.recorded_day import ROWS, digests, tables_of
from udfs.model.journal import TRIGGER_ORDER


def test_the_rows_of_each_table_are_those_that_were_reviewed(day: CoreRun) -> None:
    expected, found = json.loads(ROWS.read_text()), digests(tables_of(day))
    differing = sorted(
        f"{name}: {place}: {expected.get(name, {}).get(place)} -> {found.get(name, {}).get(place)}"
        for name in expected.keys() | found.keys()
        for place in expected.get(name, {}).keys() | found.get(name, {}).keys()
        if expected.get(name, {}).get(place) != found.get(name, {}).get(place)
    )
    assert differing == [], "rows and digest; compare them with `python -m tests.simulation.recorded_day FOLDER`"


def test_the_day_has_all_that_a_rebalance_is_made_of(day: CoreRun) -> None:
    rows = day.rebalances
    assert {row.system for row in rows} == {"kafka", "rocketmq", "metaq"}
    assert {row.generation_source for row in rows} == {"reported", "counted"}
    # The leaders of the day know all topics of their groups.
    assert {cause.kind for row in rows for cause in row.triggers} == set(TRIGGER_ORDER) - {"topic_learned"}
    assert {row.agrees for row in rows} == {True, False, None}
    assert [rejected.reason for rejected in day.rejected].count("late") > 1
