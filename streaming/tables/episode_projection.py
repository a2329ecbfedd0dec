"""Shell: the effect of a piece of the journal on the table of episodes. No I/O.

The newest entry of an episode is its row.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from streaming.tables.journal_entries import Entry, Present, RowFilter, kinds_of
from streaming.tables.row_edits import RowEdits
from udfs.model.episode_changed import EpisodeChanged

EPISODE_KINDS = kinds_of(EpisodeChanged)


def episode_filter(entries: Sequence[Entry]) -> RowFilter:
    """Return the episodes that a piece may touch."""
    ids = {entry.body.episode_id for entry in entries if isinstance(entry.body, EpisodeChanged)}
    return RowFilter({"episode_id": sorted(ids)})


def apply_to_episodes(entries: Sequence[Entry], rows: RowEdits, _present: Present) -> None:
    """Apply a piece to the episodes."""
    episodes = rows.by("episode_id")
    for cluster, group_id, _, body in entries:
        if not isinstance(body, EpisodeChanged):
            continue
        row = msgspec.structs.asdict(body)
        row["kind"] = row.pop("episode")
        row |= {name: list(row[name]) for name in ("period_of", "earlier_rebalance_ids")}
        if body.episode_id not in episodes:
            episodes[body.episode_id] = rows.add({})
        episodes[body.episode_id].now = {"cluster": cluster, "group_id": group_id, **row}
