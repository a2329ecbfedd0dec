"""Core: what is known of queues' logs, in columns: the last three starts, and when a message was written. No I/O.

Of each queue the last three offsets at which its log began are kept, each with the time at which it was first observed:
two deletions by retention, and the state before, show how fast the start moves. A smaller start is that of a new log.
Of one message near the commit it is kept when it was written, and when that was observed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from udfs.model.arrays import Int64
from udfs.model.observations import UNKNOWN, Observation, log_start
from udfs.model.stall_rule import NEVER
from udfs.packets.progress_columns import Booleans
from udfs.shard.state_format import Buffer, must_hold, pack_column, pack_parts, unpack_column, unpack_parts

# Pairs of offset and time, newest first.
_PAIRS: Final = (
    ("starts", "start_times"),
    ("former_starts", "former_start_times"),
    ("earlier_starts", "earlier_start_times"),
)
STARTS: Final = tuple(name for pair in _PAIRS for name in pair)
WRITTEN: Final = ("written_offsets", "written_times", "written_seen")


class NearSpans(NamedTuple):
    """Rows of the table, some of them more than once, with the times between which they may be near."""

    rows: Int64
    since: Int64
    until: Int64


NOT_NEAR = NearSpans(*[np.empty(0, np.int64)] * 3)


def encode_starts(columns: Mapping[str, Int64]) -> bytes:
    """Encode the starts, each as a distance from a newer one; nothing if none is known."""
    known = np.sum([columns[time] != UNKNOWN for _, time in _PAIRS], axis=0)
    is_written = columns[WRITTEN[0]] != UNKNOWN
    if not known.any() and not is_written.any():
        return b""
    parts, newer = [pack_column(known)], [np.zeros(len(known), np.int64)] * 2
    for number, pair in enumerate(_PAIRS):
        values = [columns[name] for name in pair]
        gaps = (value - base for value, base in zip(values, newer, strict=True))
        parts += [pack_column(_filled(known > number, gap)) for gap in gaps]
        newer = values
    if is_written.any():
        parts += [pack_column(columns[name] + 1) for name in WRITTEN]
    return pack_parts(*parts)


def decode_starts(data: Buffer, count: int) -> dict[str, Int64]:
    """Decode what ``encode_starts`` wrote; state of release 0.2.0 lacks it."""
    if not len(data):
        return {name: np.full(count, UNKNOWN, np.int64) for name in (*STARTS, *WRITTEN)}
    known, *parts = (unpack_column(part, count) for part in unpack_parts(data, data[0]))
    must_hold(len(parts) in (len(STARTS), len(STARTS) + len(WRITTEN)), "starts of logs are incomplete")
    written = [part - 1 for part in parts[len(STARTS) :]] or [np.full(count, UNKNOWN, np.int64) for _ in WRITTEN]
    columns: dict[str, Int64] = {}
    for number, name in enumerate(STARTS):
        base = columns[STARTS[number - 2]] if number > 1 else 0
        columns[name] = np.where(known > number // 2, parts[number] + base, UNKNOWN)
    return columns | dict(zip(WRITTEN, written, strict=True))


def remember_starts(columns: Mapping[str, Int64], rows: Int64, times: Int64, starts: Int64) -> None:
    """Add observed starts to the rows of a table; each is newer than what the table has.

    Args:
        rows, times, starts: By row, then by time.
    """
    # Of several starts with one timestamp the greatest counts.
    order = np.lexsort((starts, times, rows))
    rows, times, starts = rows[order], times[order], starts[order]
    last = np.append((rows[1:] != rows[:-1]) | (times[1:] != times[:-1]), True)[: len(rows)]
    rows, times, starts = rows[last], times[last], starts[last]
    differs = np.append(True, (rows[1:] != rows[:-1]) | (starts[1:] != starts[:-1]))[: len(rows)]
    rows, times, starts = rows[differs], times[differs], starts[differs]
    begins = np.append(True, rows[1:] != rows[:-1])[: len(rows)]
    ranks = np.arange(len(rows)) - np.maximum.accumulate(np.where(begins, np.arange(len(rows)), 0))
    for rank in range(int(ranks.max(initial=-1)) + 1):
        some = np.flatnonzero(ranks == rank)
        some = some[columns["starts"][rows[some]] != starts[some]]
        at, is_new = rows[some], columns["starts"][rows[some]] > starts[some]
        for older, newer in ((2, 1), (1, 0)):
            for name, source in zip(_PAIRS[older], _PAIRS[newer], strict=True):
                columns[name][at] = np.where(is_new, UNKNOWN, columns[source][at])
        columns["starts"][at], columns["start_times"][at] = starts[some], times[some]


def observations_of_starts(columns: Mapping[str, int]) -> Sequence[Observation]:
    """Return the starts of one row as observations, oldest first."""
    pairs = ((columns[start], columns[time]) for start, time in reversed(_PAIRS))
    return [(time, UNKNOWN, UNKNOWN, log_start(start)) for start, time in pairs if time != UNKNOWN]


def is_near(starts: Int64, offsets: Int64, ends: Int64, moves: Booleans, share: float) -> Booleans:
    """Return where a log begins beyond the commit, or where it moves and less than a share of it precedes the commit.

    Args:
        share: Of all messages that are kept.
    """
    is_close = moves & (ends > offsets) & (offsets - starts < share * (ends - starts))
    near: Booleans = (starts != UNKNOWN) & (offsets != UNKNOWN) & ((starts > offsets) | is_close)
    return near


def near_rows(columns: Mapping[str, Int64], rows: Int64, share: float) -> NearSpans:
    """Return which rows of a table, of which nothing new was observed, are near the start of their log."""
    rows = rows[columns["start_times"][rows] != UNKNOWN]
    moves = columns["former_start_times"][rows] != UNKNOWN
    starts, offsets, ends = (columns[name][rows] for name in ("starts", "offsets", "ends"))
    rows = rows[is_near(starts, offsets, ends, moves, share)]
    return NearSpans(rows, np.zeros(len(rows), np.int64), np.full(len(rows), NEVER))


def near_spans(rows: Int64, times: Int64, near: Booleans) -> NearSpans:
    """Return the spans of rows that were near the start of their log at some observation.

    Args:
        rows, times: Of the observations, by row, then by time. near: Whether the row is so since then.
    """
    places = np.flatnonzero(near)
    firsts = np.flatnonzero(np.append(True, np.diff(rows[places]) > 0)[: len(places)])
    lasts = np.append(firsts[1:] - 1, len(places) - 1)[: len(firsts)]
    after = places[lasts] + 1
    next_rows, next_times = np.append(rows, -1)[after], np.append(times, NEVER)[after]
    until = np.where(next_rows == rows[places[lasts]], next_times, NEVER)
    return NearSpans(rows[places[firsts]], np.maximum(times[places[firsts]], 0), until)


def _filled(valid: Booleans, values: Int64) -> Int64:
    """Fill gaps with a value that takes no more bytes than the others do."""
    return np.where(valid, values, values[valid].max() if valid.any() else 0)
