"""The queues of members: of now, of a time, of sessions that are over."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.reading import member_queues
from dashboard.reading.group_detail import current_members
from dashboard.reading.listing_query import piece
from dashboard.reading.listings import MEMBERS
from dashboard.reading.questions import Reading
from streaming.terminal.format import time_text
from tests.streaming.tables.journals import T0, Journal, assigned, joined
from tests.streaming.views.story import store
from udfs.model import journal


def test_nothing_is_compared_for_a_group_without_a_computed_assignment(tmp_path: Path) -> None:
    bodies: list[journal.Body] = [joined("a", 0), assigned(0, "a", 0, origin="reported")]
    store(tmp_path, [], [Journal().change(0, body, group="orders") for body in bodies])
    (row,) = current_members(Reading.once(tmp_path), "c1", "orders")
    assert ([queue["queue_id"] for queue in row["reported"]], row["computed"], row["agrees"]) == ([0], [], None)


@pytest.mark.parametrize("named", [0, 500])
def test_a_closed_session_shows_no_queues_and_one_at_a_time_those_it_held_then(
    reading: Reading, monkeypatch: pytest.MonkeyPatch, named: int
) -> None:
    monkeypatch.setattr(member_queues, "_GROUPS_NAMED", named)

    def held(**chosen: str) -> dict[str, tuple[object, ...]]:
        rows = piece(reading, MEMBERS, chosen, limit=10, is_whole=True).rows
        numbers = {
            row["member_id"]: [
                None if row[name] is None else [queue["queue_id"] for queue in row[name]]
                for name in ("computed", "reported")
            ]
            for row in rows
        }
        return {row["member_id"]: (*numbers[row["member_id"]], row["agrees"]) for row in rows}

    assert held() == {"a": (None, None, None), "b": ([0, 1], [1], False)}
    assert held(at=time_text(T0)) == {"a": ([0, 1], None, None)}
    assert held(at=time_text(T0 + 10_000)) == {"a": ([0], [], False), "b": ([1], [1], True)}
    assert held(at=time_text(T0 - 1)) == {}
