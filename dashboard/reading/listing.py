"""Dashboard: a set of rows that can be browsed: its filters, orders and times, and how its rows are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import pyarrow as pa

from dashboard.reading.listed_advice import RESULTS
from dashboard.reading.questions import Reading
from dashboard.reading.window import last_day
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.columns import Column
from streaming.tables.schema import TABLES, Row
from streaming.views.group_health import HEALTH, SEVERITIES
from streaming.views.group_state_texts import STATES
from streaming.views.reader import Within
from udfs.model.audits import Verdict
from udfs.model.episode_changed import EpisodeKind
from udfs.model.events import Mode
from udfs.model.journal import TRIGGER_ORDER
from udfs.model.spans import Origin
from udfs.model.systems import SYSTEMS

# Parameters that do not filter by equality: a part of a name, a span of time, and a time; in epoch ms.
SEARCH, SINCE, UNTIL, AT = "q", "since", "until", "at"
_SKIPPING = ("cluster", "group_id", "member_id", "rebalance_id")
Chosen = Mapping[str, str]
# Filters that take one of a few values, and synonyms of these values.
VALUES: Mapping[str, Sequence[str]] = {
    "health": HEALTH,
    "severity": SEVERITIES,
    "system": tuple(SYSTEMS),
    "state": STATES,
    "mode": get_args(Mode),
    "strategy_verdict": ("proven", "contradicted", "not_recomputable"),
    "status": ("completed", "failed"),
    "trigger": TRIGGER_ORDER,
    "agrees": ("true", "false", "unknown"),
    "origin": get_args(Origin),
    "verdict": get_args(Verdict),
    "open": ("yes", "no"),
    "episode_kind": get_args(EpisodeKind),
    "result": RESULTS,
    "sure": ("good", "fair", "weak"),
}
SYNONYMS: Mapping[str, str] = {"yes": "true", "true": "yes", "no": "false", "false": "no"}


@dataclass(frozen=True)
class Listing:
    """A set of rows that can be browsed.

    Attributes:
        name: The name in addresses.
        table: The table of the rows; empty if ``made`` makes them.
        columns: Names of the columns of these rows, in order; other columns are internal.
        filters: Parameter -> condition with one ``?``.
        searched: Columns that the parameter ``q`` searches.
        orders: Name of an order -> expression that is never null; ``-name`` descends.
        default: The order when none is requested.
        key: Expressions that are never null; rows that are equal in all of them are equal.
        times: The columns compared with ``since`` and ``until``: the time of an event, or begin and end of a span,
            whose end is null while it is open. If empty, rows show the present, and have no such parameters. For spans,
            ``at`` selects those that are open at a time.
        is_recent: Only rows of the last day, unless a time, a group or a rebalance is requested.
        made: Makes the rows if they belong to no table. unwritten: Returns rows in addition to the table's.
        skipping: If these columns are required to have a value, files without such rows are skipped.
        added: Columns that ``complete`` adds to the rows of an answer, at a time or now; they cannot be filters or
            orders.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    filters: Mapping[str, str]
    searched: tuple[str, ...]
    orders: Mapping[str, str]
    default: str
    key: tuple[str, ...]
    times: tuple[str, ...] = ()
    is_recent: bool = False
    made: Callable[[Reading], pa.Table] | None = None
    unwritten: Callable[[Reading], Sequence[Row]] = lambda _: ()
    skipping: tuple[str, ...] = _SKIPPING
    added: tuple[Column, ...] = ()
    complete: Callable[[Reading, list[Row], int | None], list[Row]] = lambda _reading, rows, _at_ms: rows

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all columns of an answer, in order."""
        return (*self.columns, *(column.name for column in self.added))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the parameters that select rows."""
        return (*self.filters, SEARCH, *((), (SINCE, UNTIL), (SINCE, UNTIL, AT))[len(self.times)])

    @property
    def values(self) -> dict[str, Sequence[str]]:
        """Return the filters that take one of a few values, with these values."""
        return {name: VALUES[name] for name in self.filters if name in VALUES}

    def where(self, reading: Reading, chosen: Chosen) -> dict[str, object]:
        """Return the conditions by which files are skipped, in the form of ``Reader.read``."""
        found: dict[str, object] = {name: chosen[name] for name in self.skipping if name in chosen}
        since, until, at = (int(chosen[name]) if name in chosen else None for name in (SINCE, UNTIL, AT))
        if self.is_recent and not chosen.keys() & {SINCE, UNTIL, "group_id", "rebalance_id"}:
            since = last_day(reading).since_ms
        if len(self.times) == 1:
            found[self.times[0]] = Within(since, until)
        elif self.times:
            begin, end = self.times
            # A span includes its begin, and not its end: a span that ended at a time was over by then.
            if at is not None:
                since, until = max(at, since or 0), min(at + 1, at + 1 if until is None else until)
            found[begin] = None if until is None else Within(until_ms=until)
            found[end] = None if since is None else Within(since + 1, or_null=True)
        return found

    def rows(
        self,
        reading: Reading,
        chosen: Chosen,
        *,
        columns: Sequence[str] | None = None,
        bounds: Mapping[str, object] | None = None,
    ) -> pa.Table:
        """Read the rows that contain the requested ones.

        Args:
            columns: Only these; None for all.
            bounds: Further conditions, on columns for which ``where`` has none.
        """
        if self.made is not None:
            return self.made(reading)
        where = self.where(reading, chosen)
        found = reading.tables.read(self.table, columns=columns, where=where | dict(bounds or {}))
        spans = [(name, within) for name in self.times if isinstance(within := where.get(name), Within)]
        more = [row for row in self.unwritten(reading) if all(within.holds(row[name]) for name, within in spans)]
        if not more:
            return found
        return pa.concat_tables([found, to_arrow(TABLES[self.table], more).select(found.column_names)])
