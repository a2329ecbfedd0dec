"""Members at a time, with what they hold."""

from __future__ import annotations

from pathlib import Path

from tests.streaming.views.story import json_of, seconds


def test_members_are_those_of_the_given_time(tables: Path) -> None:
    def names(at: float) -> list[object]:
        return [row["member_id"] for row in json_of(tables, "show", "members", "-g", "orders", "--at", seconds(at))]

    assert (names(9.999), names(10), names(69.999), names(70)) == (["a"], ["a", "b"], ["a", "b"], ["b"])
    assert [row["member_id"] for row in json_of(tables, "show", "members", "-g", "orders")] == ["b"]


def test_without_a_report_there_is_nothing_to_agree_with(tables: Path) -> None:
    before, after = (json_of(tables, "show", "members", "-g", "orders", "--at", seconds(at))[0] for at in (9.999, 10))
    assert [queue["queue_id"] for queue in before["computed"]] == [0, 1]
    assert (before["reported"], before["agrees"]) == (None, None)
    # From b's report on, the group reports, and a reports nothing.
    assert (after["member_id"], after["reported"], after["agrees"]) == ("a", [], False)
