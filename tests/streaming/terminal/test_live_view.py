"""The live view of a running job on a terminal."""

from __future__ import annotations

import io
import logging
import re
from typing import Any

import pytest
from rich.console import Console

from streaming.terminal.causes import describe_cause
from streaming.terminal.escape import printable
from streaming.terminal.live_view import (
    FIRST_REBALANCE_S,
    STARTS,
    ClusterStatus,
    LiveStatus,
    LiveView,
    render,
)

NOW = 1_767_225_661_000  # 2026-01-01T00:01:01Z


def row(number: int, *kinds: str, **more: Any) -> dict[str, Any]:
    return {
        "event_time": NOW - 1_000 * (100 - number),
        "cluster": "kafka-main",
        "group_id": f"payments-billing-{number}",
        "trigger": kinds[0],
        "triggers": [
            {"kind": kind, "member_id": f"consumer-payments-billing-{number}-0123456789ab", "topic": "orders"}
            for kind in kinds
        ],
        "members_after": 1_234,
        "queues_moved": 12,
        "status": "completed",
        **more,
    }


def status(rebalances: int = 90) -> LiveStatus:
    made = LiveStatus(state="running", started_at_ms=NOW - 61_000, tables="demo/tables")
    made.clusters = tuple(
        ClusterStatus(name, system, 1_000, 123_456, NOW - age)
        for name, system, age in (
            ("kafka-main", "kafka", 900),
            ("rocketmq-orders-of-the-whole-company", "rocketmq", 61_000),
            ("metaq-legacy", "metaq", 0),
        )
    )
    made.events_per_second, made.delay_ms = 1_234.5, 3_456
    made.batch, made.batch_ms, made.findings = 57, 1_234, 2
    made.add_rebalances(row(number, "member_joined") for number in range(rebalances))
    return made


def shown(what: LiveStatus, width: int, height: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None, legacy_windows=False)
    with console.capture() as capture:
        console.print(render(what, NOW, width, height, "Ctrl-C stops"))
    return capture.get().splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (200, 50), (60, 16), (59, 12), (40, 11), (30, 6)])
def test_it_fits_the_screen_however_much_there_is_to_show(width: int, height: int) -> None:
    full = status()
    full.notes.extend(f"warning: broker {number} is away " + "and away " * 40 for number in range(20))
    lines = shown(full, width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert lines[-1].startswith("tables: demo/tables")


@pytest.mark.parametrize(("width", "height"), [(20, 5), (10, 4), (200, 3), (5, 2), (1, 1)])
def test_a_screen_for_nothing_but_figures_gets_those(width: int, height: int) -> None:
    lines = shown(status(), width, height)
    assert len(lines) <= max(2, height)
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("rebalance monitor"[: max(1, width - 1)].rstrip()) or width == 1


@pytest.mark.parametrize("width", [40, 50, 59])
def test_a_narrow_screen_keeps_the_causes(width: int) -> None:
    lines = shown(status(), width, 20)
    assert any("joined" in line for line in lines)
    assert any("kafka-main" in line for line in lines)


@pytest.mark.parametrize("name", ["a[/b]", "[red]a", "a\x1b[2J", "a\nb", "a\tb\r", "日本語グループ"])
def test_names_are_shown_as_they_are_and_cannot_touch_the_terminal(name: str) -> None:
    hostile = status(0)
    hostile.clusters = (ClusterStatus(name, "kafka", 1, 1, NOW, note=name),)
    hostile.notes.append(name)
    triggers = [{"kind": "member_joined", "member_id": name, "topic": name}]
    hostile.add_rebalances([row(1, "member_joined", cluster=name, group_id=name, triggers=triggers)])
    screen = "\n".join(shown(hostile, 120, 24))
    assert screen.count(printable(name)) >= 5
    assert all(character.isprintable() or character == "\n" for character in re.sub(r"\x1b\[[\d;]*m", "", screen))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50)])
def test_it_uses_the_screen_it_has(width: int, height: int) -> None:
    assert len(shown(status(), width, height)) >= height - 2


def test_the_figures_are_all_there_at_80_columns() -> None:
    head = "\n".join(shown(status(), 80, 24)[:2])
    for figure in ("3,000 groups", "370k members", "1,234 events/s", "3.5 s delay", "90 rebalances", "2 findings"):
        assert figure in head


def test_the_newest_rebalance_comes_first_with_its_cause() -> None:
    text = "\n".join(shown(status(), 80, 24))
    assert text.index("payments-billing-89") < text.index("payments-billing-88")
    assert "0123456789ab joined" in text


def test_groups_of_one_name_show_their_clusters_on_80_columns() -> None:
    live_status = LiveStatus()
    live_status.add_rebalances([row(number, "member_joined") | {"cluster": name} for number, name in enumerate("xyz")])
    lines = shown(live_status, 80, 24)
    assert [any(f"  {name}  " in line for line in lines) for name in "xyz"] == [True] * 3


@pytest.mark.parametrize(("number", "text"), [(1, "1 clusters 1 groups"), (2, "2 clusters")])
def test_a_count_of_one_has_no_plural(number: int, text: str) -> None:
    clusters = tuple(ClusterStatus(f"c{cluster_number}", "kafka", 1, 1) for cluster_number in range(number))
    head = " ".join(" ".join(shown(LiveStatus(clusters=clusters), 100, 24)).split())
    assert (text in head) == (number == 2)
    assert ("1 cluster 1 group 1 member" in head) == (number == 1)


def test_each_cluster_shows_when_something_changed_last() -> None:
    lines = shown(status(), 100, 30)
    assert any("rocketmq-orders" in text and text.rstrip().endswith("1 min 1 s ago") for text in lines)


def test_a_note_about_a_cluster_precedes_its_last_change() -> None:
    live_status = LiveStatus(clusters=(ClusterStatus("kafka-main", "kafka", 1, 2, NOW, note="away"),))
    (text,) = [line for line in shown(live_status, 100, 30) if "kafka-main" in line]
    assert "away" in text
    assert "ago" not in text


def test_a_failed_rebalance_is_marked() -> None:
    live_status = LiveStatus()
    live_status.add_rebalances([row(1, "strategy_changed", status="failed")])
    assert any("failed: strategy changed" in text for text in shown(live_status, 80, 24))


def test_before_the_first_rebalance_it_shows_that_there_was_none() -> None:
    assert "no rebalance yet" in "\n".join(shown(LiveStatus(started_at_ms=NOW, batch=3), 80, 24))
    assert "no rebalance yet" in "\n".join(shown(LiveStatus(started_at_ms=NOW, state="reconnecting"), 80, 24))


@pytest.mark.parametrize("state", STARTS)
def test_a_blank_start_names_what_it_waits_for_and_how_long_as_a_rule(state: str) -> None:
    text = "\n".join(shown(LiveStatus(started_at_ms=NOW, state=state, pages="http://127.0.0.1:1/"), 100, 24))
    assert STARTS[state] in text
    assert all(f"{seconds} s" in text for seconds in FIRST_REBALANCE_S)
    assert "http://127.0.0.1:1/" in text


def test_the_first_line_shows_how_far_the_tables_have_applied_a_large_batch() -> None:
    first, *_ = shown(LiveStatus(started_at_ms=NOW, following="120,000 of 390,000 changes"), 100, 24)
    assert "the tables have 120,000 of 390,000 changes" in first


def test_several_causes_are_all_shown_and_those_of_a_kind_are_counted() -> None:
    triggers = [
        {"kind": "session_expired", "member_id": "a"},
        {"kind": "member_joined", "member_id": "b"},
        {"kind": "member_joined", "member_id": "c"},
        {"kind": "queue_count_changed", "topic": "orders"},
    ]
    assert describe_cause(triggers) == "a expired, 2 joined, queues of orders changed"


def test_a_kind_that_is_new_is_shown_by_its_name() -> None:
    assert describe_cause([{"kind": "moon_changed"}]) == "moon changed"


def test_nothing_is_written_without_a_terminal() -> None:
    written = io.StringIO()
    view = LiveView(status(), console=Console(file=written))
    with view:
        assert not view.is_shown
    assert written.getvalue() == ""


def test_without_colour_it_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    written = io.StringIO()
    console = Console(file=written, width=80, force_terminal=True)
    console.print(render(status(), NOW, 80, 24))
    assert "\x1b[3" not in written.getvalue()
    monkeypatch.delenv("NO_COLOR")
    coloured = io.StringIO()
    Console(file=coloured, width=80, force_terminal=True, color_system="standard").print(render(status(), NOW, 80, 24))
    assert "\x1b[3" in coloured.getvalue()


def test_warnings_of_the_log_are_shown_in_the_view_and_are_read_after_it(caplog: pytest.LogCaptureFixture) -> None:
    before = logging.getLogger().handlers[:]
    what = status()
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True)
    with LiveView(what, console=console):
        logging.getLogger("sink").warning("the disk is nearly full")
        logging.getLogger("sink").info("a batch ended")
        assert caplog.messages == []
    assert list(what.notes) == ["warning: the disk is nearly full"]
    assert logging.getLogger().handlers == before
    assert caplog.messages == ["the disk is nearly full"]
