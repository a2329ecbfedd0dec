"""Rebalances of one episode are one row of a list, and only in a list by time."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.pages.cells import table_rows
from dashboard.pages.folded_episodes import folded
from dashboard.pages.page_columns import REBALANCES
from dashboard.reading.questions import Reading
from streaming.settings.locations import location_of
from tests.browser.day_tables import MINUTE_MS, T0, rebalance, write_rows

EPISODE = {
    "cluster": "c",
    "group_id": "g",
    "episode_id": "e",
    "kind": "same_client_again",
    "began_at": T0,
    "last_at": T0,
}
EPISODE |= {"client": "m@h", "host": "h", "rebalances": 9, "queues_moved": 4, "text": "m came back <9> times."}


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    rows = [rebalance("c", "g", f"r{number}", T0 + number * MINUTE_MS, "m") for number in range(4)]
    write_rows(tmp_path, "rebalances", rows)
    write_rows(tmp_path, "episodes", [EPISODE | {"earlier_rebalance_ids": ["r0", "r2"]}])
    return Reading.once(location_of(str(tmp_path)))


def newest(reading: Reading) -> list[dict[str, object]]:
    """Return the four rebalances, of which the first and the third are of the episode."""
    return sorted(reading.tables.rows("rebalances"), key=lambda row: -row["event_time"])


def test_rebalances_of_an_episode_come_together_at_its_newest(reading: Reading) -> None:
    rows = folded(reading, newest(reading), "-event_time")
    assert [(row["rebalance_id"], row.get("folded_in")) for row in rows] == [
        *(("r3", None), ("r2", "e"), ("r0", "e"), ("r1", None))
    ]
    assert [row["fold"].rows for row in rows if "fold" in row] == [2]


def test_a_single_rebalance_of_an_episode_is_not_folded(reading: Reading) -> None:
    rows = newest(reading)[:2]
    assert folded(reading, rows) == rows


def test_another_order_is_left_alone(reading: Reading) -> None:
    rows = newest(reading)
    assert folded(reading, rows, "-queues_moved") == rows


def test_the_row_of_an_episode_says_what_whom_and_how_many_and_hides_its_rebalances(reading: Reading) -> None:
    text = table_rows(REBALANCES, folded(reading, newest(reading)))
    assert text.count('<tr hidden data-folded="e">') == 2
    assert text.count("<tr>") == 2
    for part in (
        "2 of 9 rebalances",
        "same client again and again",
        "m came back &lt;9&gt; times.",
        "/group?cluster=c&amp;group=g",
        "/client?client=m%40h",
    ):
        assert part in text
