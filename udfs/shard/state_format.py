"""Core: a shard's state as bytes. No I/O.

The state is one binary value: a version byte, a mark, a checksum of everything else, a header, named sections; header
and sections as characters of seven bits. A section that a batch did not change is not encoded again but copied.
Columns of integers are stored in as few bytes as most of their values need, with a list of those that need more.

Nothing is decoded before the checksum is verified, and no memory is allocated for more bytes than are present.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from udfs.model.arrays import Int64, UInt64
from udfs.model.errors import InvariantError, StateDamagedError, StateVersionError
from udfs.model.systems import System
from udfs.shard.base128 import characters_for, from_seven_bits, to_seven_bits

STATE_VERSION = 1
KEY_BYTES = 5  # length of a member's key within its group: 40 bits, the upper ones of its 64
KEY_SHIFT = np.uint64(64 - 8 * KEY_BYTES)

Buffer: TypeAlias = "bytes | memoryview"
Bytes8: TypeAlias = npt.NDArray[np.uint8]

_MARK = b"\x7f" * 8
_CHECKSUM_CHARACTERS = 8  # CRC-32, in hexadecimal digits, of the version byte and of everything after the checksum
_LEAD = 1 + len(_MARK) + _CHECKSUM_CHARACTERS
_LENGTH = struct.Struct("<I")  # length of the header, in characters
_LENGTH_CHARACTERS = characters_for(_LENGTH.size)
_COLUMN = struct.Struct("<BqII")  # width, reference, values, exceptions
_WIDTHS = (0, 1, 2, 3, 4, 5, 6)
_EXCEPTION_BYTES = 12
# A column of one repeated value takes no bytes however long it is; this limits its length if nothing else does.
_MOST_EQUAL_VALUES = 2**22


class Header(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The part read and written in every batch: the cluster's clock, counters, the table of sections."""

    system: System | None = None  # the cluster's system, from its newest packet
    clock: int | None = None
    newest: int | None = None
    batches: int = 0
    groups: int = 0
    members: int = 0
    late: int = 0  # late events so far
    late_topics: int = 0  # topic_queues older than the current queues, so far
    pushed_out: int = 0  # events applied early because too many waited
    oldest_remembered: int | None = None  # time of the oldest remembered id
    sections: list[tuple[str, int]] = msgspec.field(default_factory=list)


class StateSection:
    """A part of the state: its bytes and their stored form, each made from the other on first use."""

    def __init__(self, body: Buffer | None, characters: Buffer = b"", size: int = 0) -> None:
        self._body = body
        self._characters = characters
        self.size = size if body is None else len(body)

    @property
    def body(self) -> Buffer:
        """Return its bytes, the same object each time."""
        if self._body is None:
            self._body = from_seven_bits(self._characters, self.size)
        return self._body

    @property
    def characters(self) -> Buffer:
        """Return the stored form of its bytes."""
        if self.size and not len(self._characters):
            self._characters = to_seven_bits(self.body)
        return self._characters


_UNDECODABLE = (
    ArithmeticError,
    InvariantError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
    msgspec.MsgspecError,
)

Sections: TypeAlias = dict[str, StateSection]
Plain: TypeAlias = dict[str, object]


# version -> function from (header as plain values, sections) of that version to those of the next
UPGRADES: dict[int, Callable[[Plain, Sections], tuple[Plain, Sections]]] = {}


def pack_state(header: Header, sections: Mapping[str, StateSection]) -> bytes:
    """Join a header and its sections into one value; empty sections are left out."""
    kept = {name: section for name, section in sections.items() if section.size}
    header.sections = [(name, section.size) for name, section in kept.items()]
    head = msgspec.msgpack.encode(header)
    length = to_seven_bits(_LENGTH.pack(len(head)))
    parts: list[Buffer] = [length, to_seven_bits(head), *(section.characters for section in kept.values())]
    return b"".join([bytes([STATE_VERSION]), _MARK, _checksum(STATE_VERSION, parts), *parts])


def unpack_state(state: bytes) -> tuple[Header, Sections]:
    """Split a value into header and sections, upgraded to the current version.

    Returns: the header, and the sections, not decoded yet.
    Raises:
        StateVersionError: The value was written by a newer version.
        StateDamagedError: The value differs from the one that was written.
    """
    if not state:
        raise StateDamagedError("the state has 0 bytes: it is damaged or not a state of this monitor")
    version = state[0]
    is_whole = _is_whole(state)
    if version > STATE_VERSION:
        raise (StateVersionError if is_whole else StateDamagedError)(
            f"the state was written in encoding {version}, this version of the monitor reads up to {STATE_VERSION}: "
            + "run the version that wrote it, or a newer one"
            + ("" if is_whole else "; if there is no such version, the state is damaged")
        )
    if version != STATE_VERSION and version not in UPGRADES:
        raise StateDamagedError(f"the state claims encoding {version}, which does not exist: it is damaged")
    if not is_whole:
        raise StateDamagedError("the state does not match its checksum: it is damaged")
    plain, sections = _split(state)
    while version < STATE_VERSION:
        plain, sections = UPGRADES[version](plain, sections)
        version += 1
    try:
        return msgspec.convert(plain, Header), sections
    except msgspec.ValidationError as error:
        raise StateDamagedError(f"the state's header cannot be read: it is damaged ({error})") from error


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Convert errors of decoding into ``StateDamagedError``."""
    try:
        yield
    except _UNDECODABLE as error:
        raise StateDamagedError(f"{what} cannot be read: it is damaged ({error})") from error


def must_hold(holds: object, what: str) -> None:
    """Raise ``StateDamagedError`` unless a condition holds that every valid state meets."""
    if not holds:
        raise StateDamagedError(f"{what}: the state is damaged")


def _checksum(version: int, parts: Iterable[Buffer]) -> bytes:
    checksum = zlib.crc32(bytes([version]))
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"%08x" % checksum


def _is_whole(state: bytes) -> bool:
    """Return whether a value matches its checksum."""
    view = memoryview(state)
    return view[1:_LEAD] == _MARK + _checksum(state[0], [view[_LEAD:]])


def _split(state: bytes) -> tuple[Plain, Sections]:
    view = memoryview(state)
    behind = _LEAD + _LENGTH_CHARACTERS
    if len(state) < behind or not state.isascii():
        raise StateDamagedError("the state is cut short or has invalid characters: it is damaged")
    (length,) = _LENGTH.unpack(from_seven_bits(view[_LEAD:behind], _LENGTH.size))
    end = behind + characters_for(length)
    if end > len(state):
        raise StateDamagedError(f"the state should have at least {end} bytes and has {len(state)}: it is damaged")
    plain, table = _header(from_seven_bits(view[behind:end], length))
    parts = _parts(view, end, table, [characters_for(size) for _, size in table])
    return plain, {
        name: StateSection(None, characters, size) for (name, size), characters in zip(table, parts, strict=True)
    }


def _header(head: Buffer) -> tuple[Plain, list[tuple[str, int]]]:
    try:
        plain: Plain = msgspec.msgpack.decode(head, type=dict)
        return plain, msgspec.convert(plain.get("sections"), list[tuple[str, int]])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StateDamagedError(f"the state's header cannot be read: it is damaged ({error})") from error


def _parts(view: memoryview, start: int, table: list[tuple[str, int]], lengths: list[int]) -> list[memoryview]:
    parts = []
    for length in lengths:
        parts.append(view[start : start + length])
        start += length
    if start != len(view) or any(size < 0 for _, size in table):
        raise StateDamagedError(f"the state should have {start} bytes and has {len(view)}: it is damaged")
    return parts


def narrow(values: UInt64, width: int) -> bytes:
    """Write the lowest ``width`` bytes of each value."""
    if width in (1, 2, 4, 8):
        return values.astype(f"<u{width}").tobytes()
    return np.ascontiguousarray(values, dtype="<u8").view(np.uint8).reshape(-1, 8)[:, :width].tobytes()


def widen(data: Buffer, width: int) -> UInt64:
    """Decode what ``narrow`` wrote."""
    if width in (1, 2, 4, 8):
        return np.frombuffer(data, dtype=f"<u{width}").astype(np.uint64)
    raw: Bytes8 = np.frombuffer(data, dtype=np.uint8).reshape(-1, width)
    wide = np.zeros((len(raw), 8), dtype=np.uint8)
    wide[:, :width] = raw
    return wide.reshape(-1).view("<u8").astype(np.uint64, copy=False)


def pack_keys(keys: UInt64) -> bytes:
    """Write the upper 40 bits of each key."""
    return narrow(keys >> KEY_SHIFT, KEY_BYTES)


def unpack_keys(data: Buffer) -> UInt64:
    """Decode keys; the lower 24 bits are zero."""
    return np.asarray(widen(data, KEY_BYTES) << KEY_SHIFT)


def pack_column(values: Int64) -> bytes:
    """Encode integers as distances below their greatest, in the width that needs the fewest bytes.

    A distance that does not fit is in a list of exceptions of 12 bytes each.
    """
    count = len(values)
    if not count:
        return b""
    reference = int(values.max())
    distances = np.asarray(reference - values).astype(np.uint64)
    width, cost = 8, 8 * count
    for narrower in _WIDTHS:
        beyond = int(np.count_nonzero(distances >> np.uint64(8 * narrower)))
        if narrower * count + _EXCEPTION_BYTES * beyond < cost:
            width, cost = narrower, narrower * count + _EXCEPTION_BYTES * beyond
        if not beyond:
            break
    where = np.flatnonzero(distances >> np.uint64(8 * width)) if width < 8 else np.empty(0, dtype=np.int64)
    body = narrow(distances, width) if width else b""
    return b"".join(
        [
            _COLUMN.pack(width, reference, count, len(where)),
            body,
            where.astype("<u4").tobytes(),
            values[where].astype("<i8").tobytes(),
        ]
    )


def unpack_column(data: Buffer, count: int | None = None) -> Int64:
    """Decode what ``pack_column`` wrote; the result is writable.

    Args:
        count: The required number of values, if known.
    """
    values, size = 0, len(data)
    if size:
        must_hold(size >= _COLUMN.size, "a column is cut short")
        width, reference, values, exceptions = _COLUMN.unpack_from(data)
        start = _COLUMN.size
        must_hold(width in (*_WIDTHS, 8), "a column has an invalid width")
        must_hold(
            size == start + width * values + _EXCEPTION_BYTES * exceptions, "a column has another length than it claims"
        )
    must_hold(values == count if count is not None else values <= max(size, _MOST_EQUAL_VALUES), "a column is too long")
    if not values:
        return np.empty(0, dtype=np.int64)
    if width:
        distances = widen(data[start : start + width * values], width)
        column = np.asarray(reference - distances.astype(np.int64))
    else:
        column = np.full(values, reference, dtype=np.int64)
    start += width * values
    if exceptions:
        where = np.frombuffer(data, dtype="<u4", count=exceptions, offset=start)
        must_hold(int(where.max()) < values, "a column has values beyond its end")
        column[where] = np.frombuffer(data, dtype="<i8", count=exceptions, offset=start + 4 * exceptions)
    return column


def pack_parts(*parts: Buffer) -> bytes:
    """Join several byte strings for ``unpack_parts``."""
    return b"".join([struct.pack(f"<B{len(parts)}I", len(parts), *(len(part) for part in parts)), *parts])


def unpack_parts(data: Buffer, count: int) -> list[Buffer]:
    """Split a section into its parts, as views; an empty section gives ``count`` empty parts."""
    if not len(data):
        return [b""] * count
    start = 1 + 4 * count
    must_hold(data[0] == count and len(data) >= start, "a section has a wrong number of parts")
    lengths = struct.unpack_from(f"<{count}I", data, 1)
    must_hold(start + sum(lengths) == len(data), "a section has another length than its parts")
    parts: list[Buffer] = []
    for length in lengths:
        parts.append(data[start : start + length])
        start += length
    return parts
