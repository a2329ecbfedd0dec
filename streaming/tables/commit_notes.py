"""Shell: statistics of earlier batches in the ``userMetadata`` of commits to the journal.

The parts are named as in Spark's own ``durationMs`` of a batch, whose ``addBatch`` computes the batch, stores the state
and writes; ``writing`` is the tables' share of that.
"""

from __future__ import annotations

from typing import Final

import msgspec

# Delta stores a commit's note under this name, and ``DESCRIBE HISTORY`` shows it.
USER_METADATA: Final = "userMetadata"
WRITING: Final = "writing"


class BatchTimes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Some batches: their number, the events that they read, and the total ms by part.

    Attributes:
        sources: By cluster: where its groups come from, and why, if there is a choice.
    """

    batches: int
    events: int
    ms: dict[str, int]
    sources: dict[str, str] = msgspec.field(default_factory=dict)


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(BatchTimes)


def note_of(times: BatchTimes) -> str:
    """Return the statistics as a note."""
    return _encoder.encode(times).decode()


def batch_times_of(note: object) -> BatchTimes | None:
    """Parse a note; return None if it has no batches."""
    if not isinstance(note, str):
        return None
    try:
        times = _decoder.decode(note)
    except msgspec.MsgspecError:
        return None
    return times if times.batches > 0 else None
