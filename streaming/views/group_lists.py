"""Shell: which of the groups are listed, and what is there to be said where none is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from streaming.tables.schema import Row
from streaming.terminal.format import count
from streaming.views.group_sources import group_sources
from streaming.views.group_state_texts import coordinator_state
from streaming.views.reader import Reader


class Filters(NamedTuple):
    """Which groups are wanted; what is empty or None holds for all.

    Attributes:
        states: Of the group, or of its coordinator where it is not followed.
        finding: A kind that is open.
        search: A part of its name, its cluster's or its strategy's, in any case.
    """

    states: frozenset[str] = frozenset()
    healths: frozenset[str] = frozenset()
    system: str | None = None
    finding: str | None = None
    search: str | None = None


def fitting(rows: Iterable[Row], filters: Filters) -> list[Row]:
    """Return the groups that all filters fit.

    Args:
        rows: Of ``groups``, with their health.
    """
    return [row for row in rows if _fits(row, filters)]


def _fits(row: Row, filters: Filters) -> bool:
    names = " ".join(row[name] or "" for name in ("group_id", "cluster", "strategy")).casefold()
    return (
        (not filters.states or not filters.states.isdisjoint({row["state"], coordinator_state(row)}))
        and (not filters.healths or row["health"] in filters.healths)
        and filters.system in (None, row["system"])
        and (filters.finding is None or filters.finding in (row["finding_kinds"] or "").split())
        and (filters.search or "").casefold() in names
    )


def nothing_to_list(reader: Reader, every: Sequence[Row]) -> str:
    """Return why no group is listed: none fits, or none is known yet, of which clusters.

    Args:
        every: The groups before filters.
    """
    if every:
        return f"none of {count(len(every), 'group')} fits these filters"
    return f"no group yet: {connected_text(reader)}"


def connected_text(reader: Reader) -> str:
    """Return which clusters are followed although no group of theirs is known, and what to do next."""
    clusters = connected_clusters(reader)
    if not clusters:
        return "no cluster has been read; start `run` with --kafka, --rocketmq, --metaq or --events"
    return (
        f"{', '.join(clusters)} {'is' if len(clusters) == 1 else 'are'} followed, and no group was observed there;"
        " groups appear once a consumer joins or commits, unless --include-group or --exclude-group leave them out"
    )


def connected_clusters(reader: Reader) -> list[str]:
    """Return the clusters that sources follow, whether or not they have groups; sorted."""
    found = set(group_sources(reader))
    for table in ("topics", "findings"):
        found.update(reader.read(table, columns=["cluster"])["cluster"].unique().to_pylist())
    return sorted(name for name in found if name)
