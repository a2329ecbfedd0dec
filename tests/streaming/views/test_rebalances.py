"""Rebalances, chosen and in their order."""

from __future__ import annotations

from pathlib import Path

from tests.streaming.views.story import FIRST, SECOND, THIRD, json_of, run, seconds


def test_rebalances_come_newest_first_and_can_be_chosen(tables: Path) -> None:
    def ids(*options: str) -> list[object]:
        return [row["rebalance_id"] for row in json_of(tables, "show", "rebalances", *options)]

    assert ids() == [THIRD, SECOND, FIRST]
    assert ids("-n", "1") == [THIRD]
    assert ids("--trigger", "member_joined") == [SECOND]
    assert ids("--since", seconds(10), "--until", seconds(70)) == [SECOND]
    assert ids("--status", "failed") == []
    assert ids("--cluster", "c2") == []


def test_the_beginning_of_an_id_is_enough_if_only_one_begins_so(tables: Path) -> None:
    assert json_of(tables, "explain", "bb")[0]["rebalance"]["rebalance_id"] == THIRD
    several = run(tables, "explain", "aa")
    assert several.exit_code == 2
    assert FIRST in several.stderr
    assert SECOND in several.stderr
    assert run(tables, "explain", "zz").exit_code == 2
    assert run(tables, "explain", "").exit_code == 2
