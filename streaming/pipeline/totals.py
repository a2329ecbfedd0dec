"""Shell: the numbers of groups, members and open findings in the tables, updated by each commit's changes.

A few numbers for each cluster are kept, whatever the number of groups: the rows that a commit removes and adds show by
how much they change.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streaming.settings.locations import Location
from streaming.tables.schema import FINDINGS, GROUPS, Table
from streaming.views.reader import JobReader

# Columns that are read. Findings need no id, because only the number of open ones matters.
_COLUMNS = {GROUPS.name: ("cluster", "system", "members"), FINDINGS.name: ("closed_at",)}


class ClusterTotal(NamedTuple):
    """The groups of one cluster, and the members in them."""

    system: str
    groups: int
    members: int


class Totals:
    """The current numbers. Updated by the thread that writes the tables, read by others."""

    def __init__(self) -> None:
        self._clusters: dict[str, ClusterTotal] = {}
        self._open_findings = 0
        self._lock = threading.Lock()

    def count(self, root: Location) -> None:
        """Count everything again, one block of rows at a time."""
        reader = JobReader(root)
        with self._lock:
            self._clusters, self._open_findings = {}, 0
            for table in (GROUPS, FINDINGS):
                for block in reader.blocks(table.name, columns=_COLUMNS[table.name]):
                    self._add(table, block, 1)

    def replaced(self, table: Table, removed: pa.Table, added: pa.Table) -> None:
        """Update with a commit that replaced some rows by others."""
        if table.name in _COLUMNS:
            with self._lock:
                self._add(table, removed, -1)
                self._add(table, added, 1)

    @property
    def clusters(self) -> dict[str, ClusterTotal]:
        """Return the clusters that have groups, by name."""
        with self._lock:
            return {name: self._clusters[name] for name in sorted(self._clusters)}

    @property
    def open_findings(self) -> int:
        return self._open_findings

    def _add(self, table: Table, rows: pa.Table, sign: int) -> None:
        if table is FINDINGS:
            self._open_findings += sign * rows["closed_at"].null_count
            return
        for cluster, system, groups, members in _by_cluster(rows):
            before = self._clusters.get(cluster, ClusterTotal(system, 0, 0))
            total = ClusterTotal(before.system, before.groups + sign * groups, before.members + sign * members)
            if total.groups:
                self._clusters[cluster] = total
            else:
                self._clusters.pop(cluster, None)


def _by_cluster(groups: pa.Table) -> Iterable[tuple[str, str, int, int]]:
    names = ["cluster", "system"]
    members = pc.fill_null(groups["members"].cast(pa.int64()), 0)
    counted = pa.table({**{name: groups[name] for name in names}, "members": members}).group_by(names)
    totals = counted.aggregate([([], "count_all"), ("members", "sum")])
    columns = ("cluster", "system", "count_all", "members_sum")
    return zip(*(totals[name].to_pylist() for name in columns), strict=True)
