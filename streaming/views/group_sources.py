"""Shell: where the groups of each cluster come from, and why, as the job noted it in the journal's commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streaming.tables.commit_notes import USER_METADATA, batch_times_of
from streaming.views.reader import Reader

# Each batch with decisions makes one, and most of them have a note.
_COMMITS: Final = 50


def group_sources(reader: Reader) -> dict[str, str]:
    """Return for each cluster ``records`` or ``admin``, and why, e.g. ``admin: missing: Read on topic …``.

    Returns:
        Nothing of clusters without a choice, or of which another process collects.
    """
    return _newest(reader.history("changes", _COMMITS))


def _newest(commits: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    notes = (batch_times_of(commit.get(USER_METADATA)) for commit in commits)
    return next((dict(note.sources) for note in notes if note is not None and note.sources), {})
