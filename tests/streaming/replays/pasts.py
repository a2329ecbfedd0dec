"""Tables with the pasts of many groups, from random histories, with costs that are made up by hand."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from streaming.tables.schema import Row
from tests.model.check import one_batch
from tests.model.core_tables import run_core
from tests.model.histories import FEATURES, history
from tests.simulation.core_run import rows_of
from tests.simulation.given_tables import GivenTables

# Histories of each system, of counted and reported groups, in six clusters.
SEEDS = (3, 6, 9)
WITHOUT_PAST = "never-rebalanced"


def pasts(seeds: Iterable[int]) -> GivenTables:
    """Return the tables of histories, each in clusters of its own, with one group that has no rebalance."""
    rows: dict[str, list[Row]] = {}
    for seed in seeds:
        made = history(seed, frozenset(FEATURES))
        run = run_core(one_batch(made), made.how)
        for name, of_table in ({**rows_of(run.changes), "rebalances": run.rows()}).items():
            rows.setdefault(name, []).extend(
                row | {"cluster": f"{seed:03}-{row['cluster']}"} if row.get("cluster") else row for row in of_table
            )
    for place, row in enumerate(rows["rebalances"]):
        # Of every third rebalance nothing was measured, and only the estimate is known of every fifth.
        if row["queues_moved"] and place % 3:
            row["queue_pause_ms"] = 700 * row["queues_moved"] + place % 400
            row["queue_outage_max_ms"] = 900 + place
            row["repeated_messages"] = 10 + place if place % 5 else None
            row["repeated_estimated_messages"] = None if place % 5 else 40
    rows["groups"].append(rows["groups"][0] | {"group_id": WITHOUT_PAST})
    return GivenTables(rows)


def written_pasts(root: Path, seeds: Iterable[int]) -> GivenTables:
    """Write them as tables of a recording, and return them."""
    tables = pasts(seeds)
    tables.write(root)
    return tables
