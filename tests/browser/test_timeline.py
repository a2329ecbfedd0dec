"""The timeline of a group with very many spans draws no more than its screen can show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from dashboard.server import DashboardServer
from tests.browser.day_tables import T0, write_rows

QUEUES, SPANS = 1_000, 20
STEP_MS = 500
PAINTED = """() => {
  const lanes = document.querySelector("[data-lanes]").lanes;
  lanes.paint();
  return { rects: lanes.rects, lane: lanes.lane, rows: lanes.room, columns: lanes.width };
}"""


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A group with a thousand queues, each with twenty owners within ten seconds, and one for a day before."""
    root = tmp_path_factory.mktemp("crowded")
    group = {"cluster": "c", "group_id": "crowded"}
    counts = {"members": 2, "queues": QUEUES, "idle_members": 0, "unassigned_queues": 0, "spread": 0}
    state = {"system": "kafka", "state": "stable", "last_rebalance_at": T0}
    write_rows(root, "groups", [group | counts | state])
    spans = []
    for queue in range(QUEUES):
        begins = [T0 - 80_000_000, *(T0 + number * STEP_MS for number in range(SPANS))]
        for number, (begin, end) in enumerate(zip(begins, [*begins[1:], None], strict=True)):
            owner = "rare" if (queue, number) == (501, 3) else f"m{number % 2}"
            spans.append(
                group
                | {"topic": "t", "queue_id": queue, "member_id": owner, "origin": "computed", "generation": number}
                | {"rebalance_id": f"r{number}", "valid_from": begin, "valid_to": end, "inferred": False}
            )
    write_rows(root, "assignments", spans)
    return root


@pytest.fixture
def lanes(page: Page, crowded: Path, serve: Callable[..., DashboardServer]) -> Page:
    page.goto(serve(crowded).url + "group?cluster=c&group=crowded")
    page.locator("[data-lanes][data-drawn]").wait_for()
    return page


def test_spans_that_share_a_pixel_are_drawn_once(lanes: Page) -> None:
    assert lanes.locator("[data-lanes]").get_attribute("data-drawn") == str(QUEUES * (SPANS + 1))
    painted = lanes.evaluate(PAINTED)
    visible = painted["rows"] / painted["lane"] + 2
    # Each lane draws its long span, and at most a few pixels at the end.
    assert visible - 3 < painted["rects"] < 6 * visible
    lanes.evaluate(f"document.querySelector('[data-lanes]').lanes.show({T0}, {SPANS * STEP_MS})")
    near = lanes.evaluate(PAINTED)
    assert near["rects"] > 2 * painted["rects"]


def test_lanes_that_share_a_pixel_are_drawn_once_and_a_chosen_owner_always(lanes: Page) -> None:
    lanes.evaluate("document.querySelector('[data-lanes]').lanes.fit()")
    painted = lanes.evaluate(PAINTED)
    assert painted["lane"] < 1
    assert painted["rows"] - 2 < painted["rects"] < 6 * painted["rows"]
    # This owner's only span shares its pixel with lanes and spans of others, and those are the ones drawn.
    lanes.locator("[data-lane-legend] button", has_text="rare").click()
    shown = lanes.evaluate(
        """() => {
          const lanes = document.querySelector("[data-lanes]").lanes;
          lanes.paint();
          lanes.pen.fillStyle = lanes.colour(lanes.chosen);
          const wanted = lanes.pen.fillStyle, found = new Set();
          const { data } = lanes.pen.getImageData(0, 0, lanes.canvas.width, lanes.canvas.height);
          for (let at = 0; at < data.length; at += 4) {
            found.add("#" + [0, 1, 2].map((part) => data[at + part].toString(16).padStart(2, "0")).join(""));
          }
          return found.has(wanted);
        }"""
    )
    assert shown is True
