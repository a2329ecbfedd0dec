"""Shell: whether a history, decided again, gives what was recorded, generation by generation. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from streaming.history.group_rows import GroupRows
from streaming.tables.journal_entries import Entry
from streaming.tables.row_edits import RowEdits
from streaming.tables.schema import Row
from streaming.tables.span_projection import SPAN_KINDS, apply_to_spans
from udfs.group.replay.replay import Replayed
from udfs.model.comparability import NOT_RECOMPUTABLE
from udfs.model.first_few import first_few

# What a rebalance decides. Costs and times of outages follow from commits, which a history does not have.
_COLUMNS: Final = (
    *("generation", "event_time", "trigger", "strategy", "leader", "mode", "status", "error"),
    *("members_before", "members_after", "queues_before", "queues_after", "queues_kept", "queues_assigned"),
    *("queues_revoked", "queues_moved", "idle_members", "unassigned_queues", "spread", "settings"),
)
_OF_A_CAUSE: Final = ("kind", "member_id", "topic", "detail", "client", "host", "part_of")
_LATE: Final = "late_evidence"
_FEW: Final = 5

_Span: TypeAlias = tuple[Any, ...]


class GenerationResult(NamedTuple):
    """One recorded rebalance, compared with the replayed one.

    Attributes:
        differs: The names of what differs: columns, ``causes``, ``owners``; ``missing``: it was not decided again,
            ``extra``: it was not recorded.
        reason: Why the tables cannot give it again, where that is known: ``late_evidence`` or ``not_recomputable``;
            of what a coordinator reported, why the core assigns other queues.
    """

    rebalance_id: str
    event_time: int
    generation: int
    differs: tuple[str, ...]
    reason: str | None

    @property
    def is_same(self) -> bool:
        """Return whether it was reproduced exactly."""
        return not self.differs

    @property
    def why(self) -> str:
        """Return in a few words why it is not as recorded."""
        of_others = {"missing": "was not decided again", "extra": "was not recorded"}
        return self.reason or of_others.get("".join(self.differs)) or f"differs in {first_few(self.differs, _FEW)}"


def compared(rows: GroupRows, replayed: Replayed) -> list[GenerationResult]:
    """Return each recorded rebalance with what differs, and each replayed one that was not recorded, by time."""
    again = {rebalance.rebalance_id: _as_row(rebalance) for rebalance in replayed.rebalances}
    begins_at = -1 if rows.begins_at is None else rows.begins_at
    recorded = {row["rebalance_id"]: row for row in rows.rebalances if row["event_time"] > begins_at}
    given = _by_rebalance(rows.spans)
    given_again = _by_rebalance(_spans(rows, replayed))
    found = [
        _compared(row, again.get(name), given.get(name, set()), given_again.get(name, set()))
        for name, row in recorded.items()
    ]
    found += [
        GenerationResult(name, row["event_time"], row["generation"], ("extra",), None)
        for name, row in again.items()
        if name not in recorded
    ]
    return sorted(found, key=lambda result: (result.event_time, result.generation))


def _compared(row: Row, again: Row | None, given: set[_Span], given_again: set[_Span]) -> GenerationResult:
    is_late = any(cause["kind"] == _LATE for cause in row["triggers"])
    differs: list[str] = []
    if again is None:
        differs.append("missing")
    else:
        differs += [name for name in _COLUMNS if row.get(name) != again.get(name)]
        if _causes(row) != _causes(again):
            differs.append("causes")
        if given != given_again:
            differs.append("owners")
    reason = None
    if differs and is_late:
        reason = _LATE
    elif differs and row["error"] == NOT_RECOMPUTABLE:
        reason = NOT_RECOMPUTABLE
    return GenerationResult(row["rebalance_id"], row["event_time"], row["generation"], tuple(differs), reason)


def _as_row(rebalance: Any) -> Row:
    row: Row = msgspec.structs.asdict(rebalance)
    return row | {"triggers": [msgspec.structs.asdict(cause) for cause in rebalance.triggers]}


def _causes(row: Row) -> list[tuple[str, ...]]:
    return sorted(tuple(cause.get(name) or "" for name in _OF_A_CAUSE) for cause in row["triggers"])


def _spans(rows: GroupRows, replayed: Replayed) -> Iterable[Row]:
    entries = [
        Entry(rows.cluster, rows.group_id, change.event_time, change.body)
        for change in replayed.changes
        if change.body.__struct_config__.tag in SPAN_KINDS
    ]
    edits = RowEdits([])
    apply_to_spans(entries, edits, {})
    return [edit.now for edit in edits.edits if edit.now is not None]


def _by_rebalance(spans: Iterable[Mapping[str, Any]]) -> dict[str, set[_Span]]:
    """Return the computed owners that each rebalance gave, with the times from when until when they held."""
    found: dict[str, set[_Span]] = {}
    for span in spans:
        if span["origin"] == "computed":
            names = ("topic", "broker", "queue_id", "member_id", "valid_from", "valid_to")
            found.setdefault(span["rebalance_id"], set()).add(tuple(span.get(name) for name in names))
    return found
