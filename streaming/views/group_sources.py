"""Shell: the source of each cluster's groups, and the reason, as the job recorded it in the journal's commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streaming.tables.commit_notes import USER_METADATA, batch_times_of
from streaming.views.reader import Reader

# Each batch with decisions makes one commit, and most of them have a note.
_COMMITS: Final = 50


def group_sources(reader: Reader) -> dict[str, str]:
    """Return for each cluster ``records`` or ``admin``, and why, e.g. ``admin: missing: Read on topic …``.

    Returns:
        Clusters without a choice, or collected by another process, are left out.
    """
    return _newest(reader.history("changes", _COMMITS))


def _newest(commits: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    notes = (batch_times_of(commit.get(USER_METADATA)) for commit in commits)
    return next((dict(note.sources) for note in notes if note is not None and note.sources), {})
