"""Shell: the effect of a piece of the journal on the table of owners of queues. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from streaming.tables.journal_entries import Entry, Group, Present, RowFilter, kinds_of, of_groups
from streaming.tables.row_edits import OpenSpans, RowEdit, RowEdits
from udfs.group.assignment.span_runs import unpack_reassignment
from udfs.model import journal
from udfs.model.spans import QueueResumed, QueuesReassigned, SpansWithdrawn

SPAN_KINDS = kinds_of(
    QueuesReassigned,
    QueueResumed,
    SpansWithdrawn,
    journal.MemberReplaced,
)


def span_filter(entries: Sequence[Entry]) -> RowFilter:
    """Return the spans that a piece may touch: open spans and, if some are withdrawn, those that ended since."""
    withdrawn = [entry.body.since for entry in entries if isinstance(entry.body, SpansWithdrawn)]
    return RowFilter(of_groups(entries), ends="valid_to", ended_since=min(withdrawn, default=None))


def apply_to_spans(entries: Sequence[Entry], rows: RowEdits, _present: Present) -> None:
    """Apply a piece to the spans."""
    open_spans: dict[Group, OpenSpans] = {}
    for edit in rows.edits:
        group = _group_of(edit)
        if group is not None and edit.now is not None and edit.now["valid_to"] is None:
            open_spans.setdefault(group, OpenSpans()).add(edit)
    for cluster, group_id, event_time, body in entries:
        spans = open_spans.setdefault((cluster, group_id), OpenSpans())
        if isinstance(body, QueuesReassigned):
            for span in unpack_reassignment(body, spans.holders(body.origin)):
                spans.apply(span, rows, cluster, group_id)
        elif isinstance(body, QueueResumed):
            spans.resume(body)
        elif isinstance(body, journal.MemberReplaced):
            spans.split(body, rows, event_time)
        elif isinstance(body, SpansWithdrawn):
            spans.withdraw([edit for edit in rows.edits if _group_of(edit) == (cluster, group_id)], body.since)


def _group_of(edit: RowEdit) -> Group | None:
    return None if edit.now is None else (edit.now["cluster"], edit.now["group_id"])
