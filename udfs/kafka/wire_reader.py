"""Core: a reader for the primitive types of Kafka's wire format, plain and flexible (KIP-482). No I/O."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import TypeVar

from udfs.model.errors import MonitorError

T = TypeVar("T")

_INT8 = struct.Struct(">b")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_INT32_BYTES = 4
_MAX_UVARINT_BYTES = 5  # 32 bits, seven in each byte


class WireError(MonitorError):
    """Bytes that do not match their type."""


class WireReader:
    """Reads one field after another.

    Every length is checked against the remaining bytes before it is used.

    Args:
        flexible: Lengths are unsigned varints and structs end with tagged fields (KIP-482).

    Example:
        >>> reader = WireReader(bytes.fromhex("0002 6869 00000001 0000002a"))
        >>> reader.string(), reader.int32_array()
        ('hi', (42,))
    """

    __slots__ = ("_data", "_end", "_place", "flexible")

    def __init__(self, data: bytes, *, flexible: bool = False) -> None:
        self._data = data
        self._place = 0
        self._end = len(data)
        self.flexible = flexible

    @property
    def left(self) -> int:
        """Return the number of unread bytes."""
        return self._end - self._place

    def int8(self) -> int:
        """Read a signed byte."""
        return self._number(_INT8)

    def int16(self) -> int:
        """Read a signed 16-bit number."""
        return self._number(_INT16)

    def int32(self) -> int:
        """Read a signed 32-bit number."""
        return self._number(_INT32)

    def int64(self) -> int:
        """Read a signed 64-bit number."""
        return self._number(_INT64)

    def uvarint(self) -> int:
        """Read an unsigned varint of at most 32 bits."""
        number = 0
        for index in range(_MAX_UVARINT_BYTES):
            byte = self._take(1)[0]
            number |= (byte & 0x7F) << (7 * index)
            if not byte & 0x80:
                return number
        raise WireError(f"a varint at byte {self._place} is longer than {_MAX_UVARINT_BYTES} bytes")

    def string(self) -> str:
        """Read a text that is not null."""
        text = self.nullable_string()
        if text is None:
            raise WireError(f"a text before byte {self._place} is null")
        return text

    def nullable_string(self) -> str | None:
        """Read a text or null."""
        text = self._text()
        try:
            return None if text is None else text.decode()
        except UnicodeDecodeError as error:
            raise WireError(f"a text before byte {self._place} is not UTF-8") from error

    def skip_string(self) -> None:
        """Skip a text or null, whatever its bytes."""
        self._text()

    def _text(self) -> bytes | None:
        length = self.uvarint() - 1 if self.flexible else self.int16()
        return None if length == -1 else self._take(length)

    def data(self) -> bytes:
        """Read bytes that are not null."""
        data = self.nullable_data()
        if data is None:
            raise WireError(f"bytes before byte {self._place} are null")
        return data

    def nullable_data(self) -> bytes | None:
        """Read bytes or null."""
        length = self.uvarint() - 1 if self.flexible else self.int32()
        return None if length == -1 else self._take(length)

    def array(self, element: Callable[[], T]) -> list[T]:
        """Read an array; an element has at least one byte."""
        return [element() for _ in range(self._count(1))]

    def int32_array(self) -> tuple[int, ...]:
        """Read an array of 32-bit numbers."""
        count = self._count(_INT32_BYTES)
        return struct.unpack(f">{count}i", self._take(count * _INT32_BYTES))

    def raw(self, length: int) -> bytes:
        """Read this many bytes, which have no length prefix."""
        return self._take(length)

    def skip_tagged_fields(self) -> None:
        """Skip the tagged fields at the end of a flexible struct; a plain one has none."""
        self.tagged_fields({})

    def tagged_fields(self, readers: Mapping[int, Callable[[], object]]) -> None:
        """Read the tagged fields at the end of a flexible struct, and skip those without a reader."""
        if not self.flexible:
            return
        for _ in range(self.uvarint()):
            read = readers.get(self.uvarint())
            size = self.uvarint()
            if read is None:
                self._take(size)
                continue
            left = self.left
            read()
            if left - self.left != size:
                raise WireError(f"a tagged field before byte {self._place} has {left - self.left} bytes, not {size}")

    def _count(self, element_bytes: int) -> int:
        count = self.uvarint() - 1 if self.flexible else self.int32()
        if count < 0 or count * element_bytes > self.left:
            raise WireError(f"an array of {count} elements before byte {self._place}, {self.left} bytes are left")
        return count

    def _number(self, kind: struct.Struct) -> int:
        place = self._place
        if place + kind.size > self._end:
            raise WireError(f"{kind.size} bytes are needed at byte {place}, {self.left} are left")
        self._place = place + kind.size
        number: int = kind.unpack_from(self._data, place)[0]
        return number

    def _take(self, length: int) -> bytes:
        if length < 0 or length > self.left:
            raise WireError(f"{length} bytes are needed at byte {self._place}, {self.left} are left")
        self._place += length
        return self._data[self._place - length : self._place]
