"""Shell: which platforms' pods are not known now, as the annotations of their collectors say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from streaming.tables.schema import Row
from streaming.terminal.format import time_text
from streaming.views.reader import Reader
from udfs.model.annotations import FOLLOWED_KIND

# A collector writes every 15 s until when it knows the pods, and a job takes some seconds to show it.
_SILENT_AFTER_MS = 90_000
# A collector that was given up is mentioned for so long.
_FORGOTTEN_AFTER_MS = 7 * 86_400_000
# Anyone may write annotations: beyond this many platforms the last by name are left out.
_MOST = 100


class PlatformState(NamedTuple):
    """Whether the pods of one platform, and what happens to them, are known now.

    Attributes:
        cluster: The cluster whose members run there; None for any.
        known_until: Until when its pods are known, epoch ms; None if they never were.
        since: From when on they are not known, epoch ms, or since when somebody tries to follow them.
        text: What is not known, as a sentence; empty if all is.
    """

    platform: str
    cluster: str | None
    state: Literal["known", "partly_known", "unknown"]
    known_until: int | None
    since: int
    text: str


def followed_rows(reader: Reader) -> list[Row]:
    """Return the annotations that say until when the pods of each platform are known."""
    rows = [row for row in reader.rows("annotations", where={"kind": FOLLOWED_KIND}) if row["platform"]]
    return sorted(rows, key=lambda row: (row["platform"], row["annotation_id"]))


def platform_states(followed: Iterable[Row], now_ms: int) -> list[PlatformState]:
    """Return how far each platform is known at a time, by name.

    Args:
        followed: As ``followed_rows`` returns them.
    """
    recent = {row["platform"]: row for row in followed if now_ms - row["written_at"] < _FORGOTTEN_AFTER_MS}
    return [_state(row, now_ms) for row in list(recent.values())[:_MOST]]


def unknown_texts(platforms: Sequence[PlatformState]) -> list[str]:
    """Return a sentence for each platform whose pods, or a part of what happens to them, are not known."""
    return [found.text for found in platforms if found.text]


def _state(row: Row, now_ms: int) -> PlatformState:
    known_until = row["ended_at"]
    since = row["began_at"] if known_until is None else known_until
    about = f"kubernetes cluster {row['platform']}"
    _, _, problem = row["text"].partition("; ")
    if known_until is not None and now_ms - known_until < _SILENT_AFTER_MS:
        partly = f"{about} is partly known: {problem}" if problem else ""
        state: Literal["known", "partly_known"] = "partly_known" if problem else "known"
        return PlatformState(row["platform"], row["cluster"], state, known_until, since, partly)
    when = "never were known" if known_until is None else f"are not known since {time_text(known_until)}"
    if now_ms - row["written_at"] >= _SILENT_AFTER_MS:
        problem = "its collector has written nothing since"
    text = f"the pods of {about} {when}{f': {problem}' if problem else ''}"
    return PlatformState(row["platform"], row["cluster"], "unknown", known_until, since, text)
