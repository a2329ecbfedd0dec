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
from udfs.model.annotations import PLATFORM_FIELDS
from udfs.model.journal import AnnotationWritten

ANNOTATION_KINDS = kinds_of(AnnotationWritten)
_LISTS = ("groups", "client_ids", "hosts")
_CONTENT = ("kind", "text", "url", "cluster", "ended_at", *PLATFORM_FIELDS)


def annotation_filter(entries: Sequence[Entry]) -> RowFilter:
    """Return the annotations that a piece may touch."""
    ids = {entry.body.annotation_id for entry in entries if isinstance(entry.body, AnnotationWritten)}
    return RowFilter({"annotation_id": sorted(ids)})


def apply_to_annotations(entries: Sequence[Entry], rows: RowEdits, _present: Present) -> None:
    """Apply a piece to the annotations."""
    annotations = rows.by("annotation_id")
    for _, _, _, body in entries:
        if not isinstance(body, AnnotationWritten):
            continue
        row = _row(body)
        edit = annotations.get(body.annotation_id)
        if edit is None or edit.now is None:
            edit = annotations[body.annotation_id] = rows.add(row)
            edit.now = _begun(row)
        else:
            newest = max(edit.now, row, key=_version)
            first = min(edit.now["first_written_at"], body.written_at)
            edit.now = _begun({**newest, "first_written_at": first})


def _row(body: AnnotationWritten) -> Row:
    row = msgspec.structs.asdict(body)
    row["kind"] = row.pop("annotation")
    row |= {name: list(row[name]) for name in _LISTS}
    return row | {"first_written_at": body.written_at, "began_inferred": body.began_at is None}


def _begun(row: Row) -> Row:
    """Return a row with the beginning that follows from its first version, if its newest names none."""
    if not row["began_inferred"]:
        return row
    first, ended = row["first_written_at"], row["ended_at"]
    return {**row, "began_at": first if ended is None else min(first, ended)}


def _version(row: Mapping[str, Any]) -> tuple[int, bytes]:
    """Return what orders the versions of an annotation: their times; their contents if these are the same."""
    # What follows from the first version is no part of any.
    content = [row["began_inferred"] or row["began_at"], *(row[name] for name in _CONTENT)]
    content += [list(row[name] or ()) for name in _LISTS]
    return row["written_at"], msgspec.json.encode(content)
