"""Small multiples: each policy beside what was recorded, all on one scale, and unknown where nothing is known."""

from __future__ import annotations

from typing import Any

from dashboard.pages.policy_panels import Measure, panels_of_group, panels_of_run
from streaming.tables.schema import Row


def figures(policy: str | None, **changed: Any) -> Row:
    known = {"rebalances": 20, "queues_moved": 100, "queues_stopped": 100, "spread": 1.0, "move_pause_ms": 50}
    return {"policy": policy, "unknown": None} | known | changed


def test_the_longest_of_each_measure_is_as_long_as_the_picture() -> None:
    rows = [
        figures(None),
        figures("more", rebalances=40, queues_moved=300, queues_stopped=200, spread=3.0),
        figures("less", rebalances=10, queues_moved=0, queues_stopped=0, spread=0.0),
    ]
    less, more = panels_of_group(rows)
    assert (less.policy, more.policy) == ("less", "more")
    assert list(more.measures) == [
        Measure("Rebalances", "40", "20", 100, 50),
        Measure("Queues moved", "300", "100", 100, 33),
        Measure("Queue-pause", "~10.0 s", "~5.0 s", 100, 50),
        Measure("Spread", "3.0", "1.0", 100, 33),
    ]
    assert [(measure.bar, measure.recorded_bar) for measure in less.measures] == [(25, 50), (0, 33), (0, 50), (0, 33)]
    assert more.measures[0].text == "Rebalances: 40, as recorded 20"


def test_what_is_not_known_has_no_bar_and_a_word() -> None:
    rows = [
        figures(None, move_pause_ms=None),
        figures("part", queues_stopped=None, spread=None, unknown="not every generation can be decided"),
        figures("refused", rebalances=None, unknown="it means nothing here"),
    ]
    part, refused = panels_of_group(rows)
    assert [(measure.value, measure.bar) for measure in part.measures[2:]] == [("unknown", None), ("unknown", None)]
    assert part.unknown == "not every generation can be decided"
    assert (refused.policy, list(refused.measures), refused.unknown) == ("refused", [], "it means nothing here")


def test_without_a_history_there_are_no_panels() -> None:
    assert panels_of_group([figures(None, rebalances=None, unknown="no rebalances"), figures("static")]) == []
    assert panels_of_group([]) == []


def test_a_run_is_compared_with_what_was_recorded_of_the_same_groups() -> None:
    nothing = {"policy": None, "groups": 3, "groups_unknown": 1}
    known = {"policy": "static", "groups": 3, "groups_unknown": 1, "queue_pause_unknown": 1}
    sums = {"rebalances": 8, "recorded_rebalances": 16, "queues_moved": 0, "recorded_queues_moved": 0}
    more = {"spread": None, "recorded_spread": 1.5, "pause": 1_000, "recorded_pause": 4_000}
    (panel,) = panels_of_run([nothing, known | sums | more, {"policy": "none", "groups": 3, "groups_unknown": 3}])
    assert (panel.policy, panel.groups) == ("static", 2)
    assert [(measure.bar, measure.recorded_bar) for measure in panel.measures] == [
        (50, 100),
        (0, 0),
        (25, 100),
        (None, 100),
    ]
    assert panel.unknown == "queue-pause is unknown, or only a part, in 1 of these groups"
