"""Annotations beside the small story: of THIRD, at 70 s, in which a of host h1 expired."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.schema import ANNOTATIONS, Row
from streaming.tables.writer import Mark
from tests.streaming.tables.journals import T0
from udfs.model.annotations import PLATFORM_FIELDS

MINUTE = 60_000


def annotation(name: str, began: int, ended: int | None = None, **more: Any) -> Row:
    """Return a row; times are in ms of the story."""
    return {
        "annotation_id": name,
        "kind": "deploy",
        "text": f"text of {name}",
        "url": None,
        "cluster": None,
        "groups": [],
        "client_ids": [],
        "hosts": [],
        "began_at": T0 + began,
        "ended_at": None if ended is None else T0 + ended,
        "written_at": T0 + began,
        "first_written_at": T0 + began,
        "began_inferred": False,
        **dict.fromkeys(PLATFORM_FIELDS),
        **more,
    }


def annotate(root: Path, *rows: Row) -> None:
    """Add annotations to tables."""
    DeltaRsTable(root, ANNOTATIONS).append(to_arrow(ANNOTATIONS, rows), Mark("annotations", len(rows)))
