"""Shell: the rebalances caused by clients, whatever their member ids were."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa

from streaming.tables.arrow_rows import from_arrow_columns
from streaming.tables.schema import Row
from streaming.views.reader import Reader, Within

HOUR_MS = 3_600_000
CREATED = "group_created"
_COLUMNS = ("rebalance_id", "event_time", "triggers")


def recent_texts(reader: Reader, rebalance: Row) -> dict[str | None, str]:
    """Return, for each client that caused a rebalance, how many of its group's it caused in the hour up to it.

    A client that caused no other is left out.
    """
    clients = {trigger["client"] for trigger in rebalance["triggers"] or [] if trigger.get("client")}
    if not clients:
        return {}
    at = rebalance["event_time"]
    where = {name: rebalance[name] for name in ("cluster", "group_id")} | {"event_time": Within(at - HOUR_MS, at + 1)}
    rows = reader.read("rebalances", columns=_COLUMNS, where=where)
    caused = caused_by(rows, clients)
    return {
        client: f"the same client caused {len(ids)} of the {rows.num_rows} rebalances within the hour up to it"
        for client, ids in sorted(caused.items())
        if len(ids) > 1
    }


def caused_by(rebalances: pa.Table, clients: Collection[str]) -> dict[str, set[str]]:
    """Return the ids of the rebalances that each of these clients took part in causing.

    Args:
        rebalances: With the columns ``rebalance_id`` and ``triggers``. A group's first members cause nothing.
    """
    found: dict[str, set[str]] = defaultdict(set)
    names, causes = from_arrow_columns(rebalances, ("rebalance_id", "triggers"))
    for rebalance_id, triggers in zip(names, causes, strict=True):
        for client in _named(triggers or []):
            if client in clients:
                found[client].add(rebalance_id)
    return found


def _named(triggers: Iterable[Row]) -> Iterator[str]:
    triggers = list(triggers)
    if not any(trigger["kind"] == CREATED for trigger in triggers):
        yield from {trigger["client"] for trigger in triggers if trigger.get("client")}
