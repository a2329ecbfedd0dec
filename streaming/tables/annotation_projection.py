"""Shell: the effect of a piece of the journal on the table of annotations. No I/O.

The newest version of an annotation is its row, in whatever order versions are written and read, and however often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from streaming.tables.journal_entries import Entry, Present, RowFilter, kinds_of
from streaming.tables.row_edits import RowEdits
from streaming.tables.schema import Row
from udfs.model.journal import AnnotationWritten

ANNOTATION_KINDS = kinds_of(AnnotationWritten)
_LISTS = ("groups", "client_ids", "hosts")


def annotation_filter(entries: Sequence[Entry]) -> RowFilter:
    """Return the annotations that a piece may touch."""
    ids = {entry.body.annotation_id for entry in entries if isinstance(entry.body, AnnotationWritten)}
    return RowFilter({"annotation_id": sorted(ids)})


def apply_to_annotations(entries: Sequence[Entry], rows: RowEdits, _present: Present) -> None:
    """Apply a piece to the annotations."""
    annotations = {edit.now["annotation_id"]: edit for edit in rows.edits if edit.now is not None}
    for _, _, _, body in entries:
        if not isinstance(body, AnnotationWritten):
            continue
        row = _row(body)
        edit = annotations.get(body.annotation_id)
        if edit is None:
            annotations[body.annotation_id] = rows.add(row)
        elif edit.now is None or _version(edit.now) < _version(row):
            edit.now = row


def _row(body: AnnotationWritten) -> Row:
    row = msgspec.structs.asdict(body)
    row["kind"] = row.pop("annotation")
    return row | {name: list(row[name]) for name in _LISTS}


def _version(row: Mapping[str, Any]) -> tuple[int, bytes]:
    """Return what orders the versions of an annotation: their times; their contents if these are the same."""
    content = {name: list(row[name] or ()) if name in _LISTS else row[name] for name in row}
    return row["written_at"], msgspec.json.encode(content, order="sorted")
