"""Shell: the phases of a rebalance as text, and the parts of a logical one."""

from __future__ import annotations

from typing import Final, NamedTuple

from streaming.tables.schema import Row
from streaming.terminal.format import span_of_time, time_text
from streaming.views.reader import Reader
from udfs.model.systems import is_server_side

_CLASSIC: Final = ("join", "sync")
# In Kafka's newer protocols the coordinator computes a target, and members reconcile with it.
_NEWER: Final = ("target", "reconciliation")
_TIMES: Final = {
    _CLASSIC: ("began", "members had joined", "complete"),
    _NEWER: ("epoch began", "target computed", "members had converged"),
}


class Phase(NamedTuple):
    """One phase of a rebalance, in milliseconds."""

    name: str
    ms: int


class Part(NamedTuple):
    """One generation of a logical rebalance."""

    rebalance_id: str
    generation: int
    event_time: int


def phases(rebalance: Row) -> list[Phase]:
    """Return the phases of a rebalance as far as they were observed.

    Returns:
        ``join`` and ``sync`` for a classic group; ``target`` and ``reconciliation`` for a newer protocol; ``whole`` if
        the time between the two is unknown.

    Example:
        >>> phases({"began_at": 1_000, "joined_at": 2_200, "completed_at": 2_500, "strategy": "kafka.range"})
        [Phase(name='join', ms=1200), Phase(name='sync', ms=300)]
    """
    began, joined, completed = (rebalance.get(name) for name in ("began_at", "joined_at", "completed_at"))
    first, second = _names(rebalance)
    if joined is None:
        return [] if began is None or completed is None else [Phase("whole", completed - began)]
    # Records contain the end of the join phase; if nothing was observed before it, ``began_at`` equals it.
    found = [] if began is None or began == joined else [Phase(first, joined - began)]
    return found if completed is None else [*found, Phase(second, completed - joined)]


def phases_text(rebalance: Row) -> str | None:
    """Return how long each phase took; None if no phase was observed.

    Example:
        >>> phases_text({"began_at": 1_000, "joined_at": 2_200, "completed_at": 2_500})
        'join 1.2 s, sync 300 ms'
    """
    return ", ".join(f"{phase.name} {span_of_time(phase.ms)}" for phase in phases(rebalance)) or None


def times_text(rebalance: Row) -> str | None:
    """Return when a rebalance began, ended its first phase and was complete; None if nothing of this was observed."""
    labels = _TIMES[_names(rebalance)]
    found = [
        f"{what} {time_text(rebalance[name])}"
        for what, name in zip(labels, ("began_at", "joined_at", "completed_at"), strict=True)
        if rebalance.get(name) is not None
    ]
    return ", ".join(found) or None


def has_reconciliation(rebalance: Row) -> bool:
    """Return whether members take over the assignment one by one, as in Kafka's newer protocols."""
    return is_server_side(rebalance.get("strategy"))


def _names(rebalance: Row) -> tuple[str, str]:
    return _NEWER if has_reconciliation(rebalance) else _CLASSIC


def continued(rebalance: Row) -> str | None:
    """Return the id of the rebalance of which this one is a later part; None if it begins one."""
    logical_id: str | None = rebalance.get("logical_id")
    return None if logical_id == rebalance["rebalance_id"] else logical_id


def parts(reader: Reader, rebalance: Row) -> list[Part]:
    """Return the generations of the logical rebalance that a rebalance belongs to, in order.

    Returns:
        Empty if it is the only one.
    """
    logical_id = rebalance.get("logical_id")
    if logical_id is None:
        return []
    where = {name: rebalance[name] for name in ("cluster", "group_id")} | {"logical_id": logical_id}
    rows = reader.rows("rebalances", where=where)
    found = [Part(row["rebalance_id"], row["generation"], row["event_time"]) for row in rows]
    return sorted(found, key=lambda part: (part.event_time, part.generation)) if len(found) > 1 else []


def part_text(rebalance: Row, found: list[Part]) -> str | None:
    """Return which part of its logical rebalance a rebalance is; None if it is the only one."""
    logical_id = rebalance.get("logical_id")
    if found:
        place = 1 + [part.rebalance_id for part in found].index(rebalance["rebalance_id"])
        return f"part {place} of {len(found)} of logical rebalance {logical_id}"
    return None if continued(rebalance) is None else f"a later part of logical rebalance {logical_id}"
