"""Dashboard: rebalances of one episode as one row, which unfolds to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dashboard.reading.questions import Reading
from streaming.tables.schema import Row
from streaming.views.rebalance_episodes import episodes_of

# A list is folded only in this order: in any other one, its rows are compared with each other.
BY_TIME = "event_time"


class EpisodeFold(NamedTuple):
    """An episode, and how many of its rebalances a list has."""

    episode: Row
    rows: int


def folded(reading: Reading, rows: Sequence[Row], sort: str = BY_TIME) -> list[Row]:
    """Return rebalances, those of an episode together at the place of its first one, if the list has several of it.

    Args:
        sort: The order of the list, with ``-`` before it to descend; rows of another order than by time are as before.
    Returns: rows with ``folded_in``, the id of their episode, and the first of each with ``fold``.
    """
    if sort.removeprefix("-") != BY_TIME:
        return list(rows)
    episodes = episodes_of(reading.tables, rows)
    together: dict[str, list[Row]] = {}
    for row in rows:
        episode = episodes.get(row["rebalance_id"])
        together.setdefault(row["rebalance_id"] if episode is None else episode["episode_id"], []).append(row)
    found: list[Row] = []
    for name, some in together.items():
        if len(some) == 1:
            found += some
        else:
            fold = EpisodeFold(episodes[some[0]["rebalance_id"]], len(some))
            found += [row | {"folded_in": name} | ({"fold": fold} if row is some[0] else {}) for row in some]
    return found
