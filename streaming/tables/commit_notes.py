"""Shell: what a commit to the journal records of the batches before it: the commit's ``userMetadata``.

The parts are named as in Spark's own ``durationMs`` of a batch, whose ``addBatch`` computes the batch, keeps the state
and writes; ``writing`` is how much of that the tables took.
"""

from __future__ import annotations

from typing import Final

import msgspec

# Delta keeps a commit's note here: ``DESCRIBE HISTORY`` shows it.
USER_METADATA: Final = "userMetadata"
WRITING: Final = "writing"


class BatchTimes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Some batches: how many, how many events they read, and the ms that they took together, by part.

    Attributes:
        sources: By cluster: where its groups come from, and why, where there is a choice.
    """

    batches: int
    events: int
    ms: dict[str, int]
    sources: dict[str, str] = msgspec.field(default_factory=dict)


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(BatchTimes)


def note_of(times: BatchTimes) -> str:
    """Return it as a note."""
    return _encoder.encode(times).decode()


def batch_times_of(note: object) -> BatchTimes | None:
    """Read a note; None where it has no batches."""
    if not isinstance(note, str):
        return None
    try:
        times = _decoder.decode(note)
    except msgspec.MsgspecError:
        return None
    return times if times.batches > 0 else None
