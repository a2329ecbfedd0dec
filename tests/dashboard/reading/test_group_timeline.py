"""Swimlanes of the story: who owned which queue when."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.reading import group_timeline as shown
from dashboard.reading.group_timeline import timeline
from dashboard.reading.questions import Reading
from streaming.settings.model import Dashboard
from tests.browser.day_tables import MINUTE_MS, rebalance, write_rows
from tests.browser.day_tables import T0 as PAST
from tests.streaming.tables.journals import T0
from tests.streaming.views.story import FIRST, SECOND, THIRD


def test_spans_name_their_queues_and_owners(reading: Reading) -> None:
    found = timeline(reading, "c1", "orders", origin="computed")
    spans = {
        (found["queues"][queue], found["members"][member], begins - T0, ends and ends - T0)
        for queue, member, begins, ends in found["spans"]
    }
    assert spans == {
        ("orders-0", "a", 0, 70_000),
        ("orders-0", "b", 70_000, None),
        ("orders-1", "a", 0, 10_000),
        ("orders-1", "b", 10_000, None),
    }
    assert not found["is_cut"]


def test_a_group_that_reports_is_shown_as_it_reports(reading: Reading) -> None:
    found = timeline(reading, "c1", "orders")
    assert (found["origin"], found["origins"]) == ("reported", ["computed", "reported"])
    assert len(found["spans"]) == 1


def test_rebalances_are_marks_with_their_causes(reading: Reading) -> None:
    marks = timeline(reading, "c1", "orders", origin="computed")["marks"]
    assert [mark["id"] for mark in marks] == [FIRST, SECOND, THIRD]
    assert [mark["cause"] for mark in marks] == ["group created", "b joined", "a expired"]


def test_a_window_leaves_out_what_is_outside(reading: Reading) -> None:
    found = timeline(reading, "c1", "orders", origin="computed", since_ms=T0 + 20_000, until_ms=T0 + 30_000)
    assert len(found["spans"]) == 2
    assert found["marks"] == []


def test_numbers_follow_the_order_of_names_and_the_newest_span_comes_first(reading: Reading) -> None:
    found = timeline(reading, "c1", "orders", origin="computed")
    assert (found["queues"], found["members"]) == (["orders-0", "orders-1"], ["a", "b"])
    begins = [span[2] for span in found["spans"]]
    assert begins == sorted(begins, reverse=True)


def test_beyond_its_limit_the_newest_spans_stay(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "MAX_SPANS", 2)
    found = timeline(reading, "c1", "orders", origin="computed")
    assert found["is_cut"]
    assert [(found["queues"][span[0]], span[2] - T0) for span in found["spans"]] == [
        ("orders-0", 70_000),
        ("orders-1", 10_000),
    ]


def recording(root: Path, settings: Dashboard, rebalances: list[int], owned_since: int) -> Reading:
    """Return tables of one group with one span, and rebalances at these times."""
    group = {"cluster": "c", "group_id": "g"}
    state = {"system": "kafka", "state": "stable", "last_rebalance_at": max(rebalances)}
    write_rows(root, "groups", [group | state])
    span = {"topic": "t", "queue_id": 0, "member_id": "m", "origin": "computed", "generation": 1, "rebalance_id": "r0"}
    write_rows(root, "assignments", [group | span | {"valid_from": owned_since, "inferred": False}])
    rows = [rebalance("c", "g", f"r{number}", at, "m") for number, at in enumerate(rebalances)]
    write_rows(root, "rebalances", rows)
    return Reading.of(root, settings)


def test_a_recording_ends_with_its_last_rebalance(tmp_path: Path, settings: Dashboard) -> None:
    # Twelve rebalances that moved nothing, and two before anybody owned anything.
    times = [PAST + number * 10 * MINUTE_MS for number in range(-2, 13)]
    found = timeline(recording(tmp_path, settings, times, PAST), "c", "g")
    assert [mark["at"] for mark in found["marks"]] == times
    assert found["since"] < times[0]
    assert found["until"] > times[-1]
    assert (found["mark_count"], found["marks_cut"]) == (15, False)


def test_beyond_its_limit_the_newest_marks_stay(
    tmp_path: Path, settings: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "MAX_MARKS", 3)
    times = [PAST + number * 1_000 for number in range(5)]
    found = timeline(recording(tmp_path, settings, times, PAST), "c", "g")
    assert [mark["at"] for mark in found["marks"]] == times[2:]
    assert (found["mark_count"], found["marks_cut"], found["is_cut"]) == (5, True, False)
