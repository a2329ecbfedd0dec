"""Core: heartbeat lines that differ only in a few values, parsed as blocks of bytes, many at once. No I/O.

Among lines of the same length, the first is parsed normally. Lines that have the same bytes outside its time, group,
member id and event id are parsed like it; inside those values, digits and plain characters stand for themselves. All
other lines are left to be parsed one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from udfs.ingest.parser import BareHeartbeat, decode_lines
from udfs.model.arrays import Int64, UInt64

Bools = npt.NDArray[np.bool_]

_FEWEST = 64  # a block pays off from this many lines of one length
_LONGEST = 2048
_MISSES = 4  # after this many shapes that few lines share, the other lines of that length are left
_SHARE = 16  # fewer than one line in this many counts as few
_AT_ONCE = 8192  # the bytes of this many lines fit a core's cache
_UINT64_BYTES = 8
_VALUE = rb' *"([a-z_]+)" *: *(?:"([^"]*)"|([1-9][0-9]{0,14})) *'
_OBJECT = re.compile(rb"\{" + _VALUE + rb"(?:," + _VALUE + rb")*\}")
_VALUES = re.compile(_VALUE)
_TEXTS = ("group", "member_id", "event_id")
# Characters that JSON writes unescaped, in one byte.
_IS_PLAIN = np.zeros(256, np.bool_)
_IS_PLAIN[0x20:0x7F] = True
_IS_PLAIN[list(b'"\\')] = False


class UniformHeartbeats(NamedTuple):
    """Heartbeats without a description, of one system and cluster; only their types have been checked.

    Attributes:
        rows: The positions of the lines.
    """

    rows: Int64
    system: str
    cluster: str
    groups: pa.StringArray
    member_ids: pa.StringArray
    times: Int64


class _Template(NamedTuple):
    """The common part of uniform lines.

    Attributes:
        first: One of them, parsed. content: Its bytes, padded to a multiple of 8. fixed: A mask of the bytes in which
            lines are equal. spans: The positions of the differing values, by name of the field.
    """

    first: BareHeartbeat
    content: UInt64
    fixed: UInt64
    spans: dict[str, slice]


def parse_uniform_lines(lines: pa.BinaryArray, longest_bytes: int = _LONGEST) -> tuple[list[UniformHeartbeats], Int64]:
    """Parse the uniform lines; return them, and the rows of the others, ascending.

    Args:
        longest_bytes: Longer lines are left.
    """
    _, ends, content = lines.buffers()
    if content is None or not len(lines):
        return [], np.arange(len(lines))
    bounds = np.frombuffer(ends, np.int32)[lines.offset : lines.offset + len(lines) + 1]
    data = np.frombuffer(content, np.uint8)
    lengths = np.diff(bounds)
    if lines.null_count:  # Arrow leaves the bytes of null slots undefined
        lengths[np.asarray(lines.is_null())] = 0
    longest = min(longest_bytes, _LONGEST)
    counts = np.bincount(np.minimum(lengths, longest + 1))
    found = []
    is_read = np.zeros(len(lines), np.bool_)
    for length in np.flatnonzero(counts[: longest + 1] >= _FEWEST).tolist():
        rows = np.flatnonzero(lengths == length)
        for part in _of_one_length(data, bounds, rows, length):
            is_read[part.rows] = True
            found.append(part)
    return found, np.flatnonzero(~is_read)


def _of_one_length(
    data: npt.NDArray[np.uint8], bounds: npt.NDArray[np.int32], rows: Int64, length: int
) -> Iterator[UniformHeartbeats]:
    size = -(-length // _UINT64_BYTES) * _UINT64_BYTES
    # Eight bytes are read at once; the last lines may be too near the end for that.
    rows = rows[bounds[rows] <= len(data) - size]
    everywhere = np.ndarray((max(0, len(data) - size + 1),), f"V{size}", data, strides=(1,))
    misses = 0
    while len(rows) >= _FEWEST and misses < _MISSES:
        start = int(bounds[rows[0]])
        shape = _shape_of(data[start : start + length].tobytes())
        if shape is None:
            rows, misses = rows[1:], misses + 1
            continue
        like = np.zeros(len(rows), np.bool_)
        parts = []
        for first in range(0, len(rows), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            block = everywhere[bounds[rows[some]]].view("<u8").reshape(-1, size // _UINT64_BYTES)
            like[some], values = _read(shape, block)
            parts.append(values)
        found = rows[like]
        yield _joined(shape, found, parts)
        misses += len(found) < len(rows) // _SHARE
        rows = rows[~like]


def _shape_of(line: bytes) -> _Template | None:
    """Return the template of lines like this one; None if it is not a plain heartbeat line."""
    if b'"heartbeat"' not in line or not _IS_PLAIN[np.frombuffer(line.replace(b'"', b""), np.uint8)].all():
        return None
    if _OBJECT.fullmatch(line) is None:
        return None
    (first,) = decode_lines([line])
    if not isinstance(first, BareHeartbeat) or not isinstance(first.event_time, int):
        return None
    found = list(_VALUES.finditer(line, 1))
    spans: dict[str, slice] = {}
    for value in found:
        name = value[1].decode()
        if name in _TEXTS and value[2] is not None:
            spans[name] = slice(*value.span(2))
        elif name == "event_time":
            spans[name] = slice(*value.span(3))
    if len({value[1] for value in found}) < len(found):
        return None
    filled = np.zeros(-(-len(line) // _UINT64_BYTES) * _UINT64_BYTES, np.uint8)
    filled[: len(line)] = np.frombuffer(line, np.uint8)
    fixed = np.zeros_like(filled)
    fixed[: len(line)] = 0xFF
    for span in spans.values():
        fixed[span] = 0
    return _Template(first, filled.view("<u8"), fixed.view("<u8"), spans)


class _Values(NamedTuple):
    """Values of the uniform lines of a block: their bytes, one after another, and the times."""

    groups: bytes
    member_ids: bytes
    times: Int64


def _read(shape: _Template, block: UInt64) -> tuple[Bools, _Values]:
    """Return which lines of a block have this shape, and their values."""
    differs = np.zeros(len(block), np.uint64)
    for place in np.flatnonzero(shape.fixed).tolist():
        differs |= (block[:, place] ^ shape.content[place]) & shape.fixed[place]
    like = differs == 0
    characters = block.view(np.uint8).reshape(len(block), -1)
    columns = {name: np.ascontiguousarray(characters[:, span]) for name, span in shape.spans.items()}
    for name in columns.keys() - {"event_time"}:
        if not _all_plain(columns[name]):
            like &= _IS_PLAIN[columns[name]].all(axis=1)
    digits = columns["event_time"] - np.uint8(ord("0"))
    if digits.max() > 9 or not digits[:, 0].all():
        like &= (digits <= 9).all(axis=1) & (digits[:, 0] != 0)
    if not like.all():
        columns, digits = {name: column[like] for name, column in columns.items()}, digits[like]
    times = np.zeros(len(digits), np.int64)
    for digit in digits.T:
        times = times * 10 + digit
    return like, _Values(columns["group"].tobytes(), columns["member_id"].tobytes(), times)


def _all_plain(characters: npt.NDArray[np.uint8]) -> bool:
    """Return whether all are in ``_IS_PLAIN``, in a quarter of the time."""
    if not 0x20 <= characters.min() <= characters.max() <= 0x7E:
        return False
    return not ((characters == ord('"')).any() or (characters == ord("\\")).any())


def _joined(shape: _Template, rows: Int64, parts: list[_Values]) -> UniformHeartbeats:
    return UniformHeartbeats(
        rows,
        shape.first.system,
        shape.first.cluster,
        _texts([part.groups for part in parts], shape.spans["group"], len(rows)),
        _texts([part.member_ids for part in parts], shape.spans["member_id"], len(rows)),
        np.concatenate([part.times for part in parts]),
    )


def _texts(parts: list[bytes], span: slice, count: int) -> pa.StringArray:
    width = span.stop - span.start
    ends = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(b"".join(parts)))
