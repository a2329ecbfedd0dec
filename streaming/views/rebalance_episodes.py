"""Shell: the episode that a rebalance belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streaming.tables.schema import Row
from streaming.terminal.format import count, time_text
from streaming.views.reader import Reader


def episodes_of(reader: Reader, rebalances: Sequence[Row]) -> dict[str, Row]:
    """Return the episodes of rebalances, by the id of the rebalance; most have none.

    A rebalance names its episode if that was known when it was decided; else the episode names the rebalance.
    """
    groups = {"cluster": {row["cluster"] for row in rebalances}, "group_id": {row["group_id"] for row in rebalances}}
    found = {row["episode_id"]: row for row in reader.rows("episodes", where=groups)} if rebalances else {}
    earlier = {name: row for row in found.values() for name in row["earlier_rebalance_ids"] or ()}
    of_each = {
        row["rebalance_id"]: found.get(row["episode_id"]) or earlier.get(row["rebalance_id"]) for row in rebalances
    }
    return {name: episode for name, episode in of_each.items() if episode is not None}


def with_episodes(reader: Reader, rebalances: list[Row]) -> list[Row]:
    """Return rebalances, each with the id of its episode, also where it became known later."""
    if not any("episode_id" in row for row in rebalances):
        return rebalances
    found = episodes_of(reader, rebalances)
    return [
        row | {"episode_id": found[row["rebalance_id"]]["episode_id"]} if row["rebalance_id"] in found else row
        for row in rebalances
    ]


def lines(reported: dict[str, Any]) -> list[str]:
    """Return the episode of a rebalance as lines of a report."""
    episode = reported["episode"]
    if episode is None:
        return []
    state = "open" if episode["closed_at"] is None else f"over since {time_text(episode['closed_at'])}"
    return [
        "",
        f"It is one of {count(episode['rebalances'], 'rebalance')} of an episode, {episode['kind']}, since"
        f" {time_text(episode['began_at'])}, {state}:",
        f"  {episode['text']}",
    ]
