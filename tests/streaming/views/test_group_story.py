"""What happened to a group in a span of time, as one story."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from streaming.views import group_story
from streaming.views.reader import Reader
from streaming.views.related_annotations import DEFAULT_SPANS
from tests.streaming.tables.journals import T0, Journal, an_episode, stable
from tests.streaming.tables.signs import leave_silent_sign
from tests.streaming.views.story import json_of, rebalance, run, store

_SPAN = ("--since", "2026-01-01T00:00", "--until", "2026-01-01T01:00")


def test_a_story_has_what_why_at_what_cost_in_the_order_of_time(tables: Path) -> None:
    shown = run(tables, "explain", "-g", "orders", *_SPAN)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert shown.stdout.splitlines() == [
        "Group orders of cluster c1, from 2026-01-01T00:00:00Z to 2026-01-01T01:00:00Z",
        "",
        "Nothing is known after 2026-01-01T00:00:00Z.",
        "3 rebalances: nobody read queues for 30.0 s to 45.0 s added up.",
        "Of 1 rebalance that moved queues it is not known how long at most.",
        "Main causes: group_created (1), member_joined (1), session_expired (1).",
        "",
        "What happened:",
        "  01-01 00:00:00  rebalance aa11: group created; 0 queues moved",
        "  01-01 00:00:10  rebalance aa22: b joined; 1 queue moved",
        "  01-01 00:01:10  rebalance bb33: a expired; 1 queue moved, nobody read for 30.0",
        "                  s to 45.0 s",
        "  01-01 00:01:10  finding opened, expected_differs (warning): orders: b reports",
        "                  1 queue, the strategy gives it 2",
    ]


def test_a_story_in_json_has_the_rows(tables: Path) -> None:
    (found,) = json_of(tables, "explain", "-g", "orders", *_SPAN)
    assert [row["rebalance_id"] for row in found["rebalances"]] == ["aa11", "aa22", "bb33"]
    assert [row["kind"] for row in found["findings"]] == ["expected_differs"]
    assert (found["since"], found["until"]) == ("2026-01-01T00:00:00.000Z", "2026-01-01T01:00:00.000Z")


def test_what_is_before_the_first_row_or_unseen_is_called_unknown(tables: Path, tmp_path: Path) -> None:
    early = run(tables, "explain", "-g", "orders", "--since", "2025-12-31", "--until", "2025-12-31T01:00").stdout
    assert "Nothing is known before 2026-01-01T00:00:00Z.\nNo rebalance was seen." in early
    blind = Path(shutil.copytree(tables, tmp_path / "tables"))
    leave_silent_sign(blind, "c1", known_until=T0 + 5_000)
    assert "c1 is blind since 2026-01-01T00:00:05Z" in run(blind, "explain", "-g", "orders", *_SPAN).stdout


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        (("-g", "orders", "--last", "--since", "1h"), "name either"),
        (("aa11", "--since", "1h"), "name either"),
        (("--since", "1h"), "name either"),
        (("-g", "orders", "--last", "--until", "1h"), "--until needs --since"),
        (("-g", "orders", "--since", "1h", "--until", "2h"), "it must be after --since"),
        (("-g", "absent", "--since", "1h"), "there is no group absent"),
        (("-g", "twin", "--since", "1h"), "is in several clusters"),
    ],
)
def test_what_names_no_single_span_of_a_group_is_refused(
    arguments: tuple[str, ...], refused: str, tables: Path
) -> None:
    done = run(tables, "explain", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert refused in done.stderr


def test_rebalances_of_an_episode_are_one_event(tmp_path: Path) -> None:
    names = ("r1", "r2", "r3", "r4")
    rows = [rebalance(name, 1_000 * int(name[1]), "member_joined", "b") for name in names]
    rows[2]["episode_id"] = "e1"
    history = Journal()
    store(
        tmp_path,
        rows,
        [history.change(3_000, stable(1), "orders"), history.change(3_000, an_episode("e1", 3), "orders")],
    )
    shown = run(tmp_path, "explain", "-g", "orders", *_SPAN).stdout
    assert "3 of 3 rebalances of an episode, same_client_again: a came back 3 times" in " ".join(shown.split())
    assert "rebalance r4: b joined" in shown
    assert "rebalance r2" not in shown


def test_of_many_events_the_newest_are_shown(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_story, "EVENTS_SHOWN", 2)
    until = T0 + 3_600_000
    found = group_story.group_story(Reader(tables), "orders", "c1", T0, until, until, DEFAULT_SPANS)
    shown = group_story.story_text(found)
    assert "… 2 earlier events; --json lists them all" in shown
    assert "aa22" not in shown
    assert "bb33" in shown
