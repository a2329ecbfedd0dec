"""Tables of groups with what a run of `advise --all` would write of them, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streaming.history.advice import asked_of
from streaming.history.replay_figures import replay_figures
from streaming.replays.replay_run import sums_of
from streaming.settings.locations import location_of
from streaming.settings.model import load
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.replay_tables import REPLAY_GROUPS, REPLAYS
from streaming.tables.schema import Row
from streaming.tables.writer import Mark
from streaming.views.reader import Reader

STARTED_AT = 1_790_000_000_000


def write_run(root: Path, replay_id: str = "run-1", *, started_at: int = STARTED_AT, **changed: Any) -> Row:
    """Decide all groups again as advice does, and write the rows; return that of ``replays``.

    Args:
        changed: Other values of that row; of a cluster, only its groups are decided.
    """
    reader, asked, core = Reader(location_of(str(root))), asked_of(0), load().core_config()
    of_run = {"replay_id": replay_id, "started_at": started_at}
    found: list[Row] = []
    for group in reader.rows("groups", where={"cluster": changed.get("cluster")}):
        figures = replay_figures(reader, group["cluster"], group["group_id"], asked, core, group["system"])
        found += [row | of_run for row in figures]
    run = dict.fromkeys(REPLAYS.names) | of_run
    run |= {"policies": list(asked.policies), "all_strategies": True, "groups_asked": [], "covers_from": 0}
    run |= {"finished_at": started_at + 1, "groups": len({row["group_id"] for row in found}), "sums": sums_of(found)}
    run |= changed
    for table, rows in ((REPLAY_GROUPS, found), (REPLAYS, [run])):
        DeltaRsTable(root, table).append(to_arrow(table, rows), Mark(replay_id, 1))
    return run
