"""Shell: which platforms' pods are not known now, as the annotations of their collectors say."""

from __future__ import annotations

from streaming.tables.schema import Row
from streaming.terminal.format import time_text
from streaming.views.reader import Reader
from udfs.model.annotations import FOLLOWED_KIND

# A collector writes every 15 s until when it knows the pods, and a job takes some seconds to show it.
_SILENT_AFTER_MS = 90_000
# A collector that was given up is mentioned for so long.
_FORGOTTEN_AFTER_MS = 7 * 86_400_000


def unknown_platforms(reader: Reader, now_ms: int) -> list[str]:
    """Return a sentence for each platform whose pods, or a part of what happens to them, are not known now."""
    rows = reader.rows("annotations", where={"kind": FOLLOWED_KIND})
    rows.sort(key=lambda row: row["annotation_id"])
    texts = (_unknown(row, now_ms) for row in rows if now_ms - row["written_at"] < _FORGOTTEN_AFTER_MS)
    return [text for text in texts if text]


def _unknown(row: Row, now_ms: int) -> str:
    """Return what is not known of a platform; empty if all is."""
    about, known_until = f"kubernetes cluster {row['platform']}", row["ended_at"]
    _, _, problem = row["text"].partition("; ")
    if known_until is not None and now_ms - known_until < _SILENT_AFTER_MS:
        return f"{about} is partly known: {problem}" if problem else ""
    since = "never were" if known_until is None else f"are not known since {time_text(known_until)}"
    if now_ms - row["written_at"] >= _SILENT_AFTER_MS:
        problem = "its collector has written nothing since"
    return f"the pods of {about} {since}{' known' if known_until is None else ''}{f': {problem}' if problem else ''}"
