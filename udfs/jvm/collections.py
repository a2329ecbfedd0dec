"""Core: the behaviour of Java's strings and hash maps that allocations depend on. No I/O.

Source: JDK 17, documentation of ``String#compareTo`` and ``String#hashCode``, and ``java.util.HashMap`` as observed
(the same since 8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

# HashMap: DEFAULT_INITIAL_CAPACITY, the load factor as a fraction, TREEIFY_THRESHOLD, MIN_TREEIFY_CAPACITY.
INITIAL_CAPACITY: Final = 16
LOAD_NUMERATOR: Final = 3
LOAD_DENOMINATOR: Final = 4
TREEIFY_THRESHOLD: Final = 8
MAX_CAPACITY: Final = 1 << 30
_FEW: Final = 64
# Use the padded table only up to this multiple of the text size.
_TABLE_TO_TEXTS: Final = 4

# From here on UTF-16 order and code point order differ: surrogates come before U+E000.
_ORDERS_PART_AT: Final = "\ud800"


def string_order(text: str) -> bytes:
    """Return a sort key with the order of ``String.compareTo``: by UTF-16 code units.

    Example:
        >>> sorted(["10.0.0.1@1", "10.0.0.10@3"], key=string_order)
        ['10.0.0.10@3', '10.0.0.1@1']
        >>> sorted(["\\uffff", "\\U0001f600"], key=string_order) == ["\\U0001f600", "\\uffff"]
        True
    """
    return text.encode("utf-16-be", "surrogatepass")


def sorted_strings(texts: Iterable[str]) -> list[str]:
    """Return the strings in the order of ``Collections.sort``; equal ones keep their order."""
    found = list(texts)
    if all(map(str.isascii, found)):
        return sorted(found)
    return sorted(found, key=string_order)


def string_hash(text: str) -> int:
    """Return ``String.hashCode`` as a signed 32-bit number.

    Example:
        >>> string_hash("Aa"), string_hash("BB"), string_hash("polygenelubricants")
        (2112, 2112, -2147483648)
    """
    return string_hashes([text])[0]


def string_hashes(texts: Sequence[str]) -> list[int]:
    """Return ``String.hashCode`` of each text, signed."""
    found: list[int] = _hash_codes(texts).view(np.int32).tolist()
    return found


def _hash_codes(texts: Sequence[str]) -> NDArray[np.uint32]:
    joined = "".join(texts)
    if joined.isascii():
        codes = np.frombuffer(joined.encode("ascii"), dtype=np.uint8)
        lengths = np.array(list(map(len, texts)), dtype=np.int64)
    else:
        codes = np.frombuffer(joined.encode("utf-16-le", "surrogatepass"), dtype="<u2")
        lengths = np.array([len(string_order(text)) // 2 for text in texts], dtype=np.int64)
    longest = int(lengths.max(initial=0))
    powers = np.full(longest, 31, dtype=np.uint32)
    powers[:1] = 1
    powers = np.multiply.accumulate(powers, dtype=np.uint32)
    hashes = np.zeros(len(texts), dtype=np.uint32)
    if longest * len(texts) <= _TABLE_TO_TEXTS * codes.size:
        # Ids mostly have similar lengths, so a table of their characters is used, aligned right.
        table = np.zeros((len(texts), longest), dtype=np.uint32)
        table[np.arange(longest) >= longest - lengths[:, np.newaxis]] = codes
        return np.matmul(table, powers[::-1], out=hashes)
    written = lengths > 0
    ends = np.cumsum(lengths)
    from_end = np.repeat(ends, lengths) - 1 - np.arange(codes.size)
    hashes[written] = np.add.reduceat(codes * powers[from_end], (ends - lengths)[written], dtype=np.uint32)
    return hashes


def table_size_for(capacity: int) -> int:
    """Return the number of slots of ``new HashMap<>(capacity)``."""
    return min(MAX_CAPACITY, 1 << max(0, capacity - 1).bit_length())


def hash_map_order(texts: Sequence[str], table: int = INITIAL_CAPACITY) -> list[str]:
    """Return the keys in the order in which a ``HashMap<String, ?>`` iterates over them.

    Args:
        texts: In the order in which they were put; a text put again stays where it is.
        table: Number of slots at the first put.

    Example:
        >>> hash_map_order(["range", "roundrobin", "sticky", "cooperative-sticky"])
        ['sticky', 'range', 'roundrobin', 'cooperative-sticky']
    """
    distinct = list(dict.fromkeys(texts))
    if len(distinct) <= 1:
        return distinct
    if len(distinct) <= _FEW:
        order = _order_of_few(string_hashes(distinct), table, distinct)
    else:
        order = _order_of_many(_hash_codes(distinct), table, distinct)
    return list(map(distinct.__getitem__, order))


def hashed_order(hashes: Sequence[int], table: int = INITIAL_CAPACITY, texts: Sequence[str] | None = None) -> list[int]:
    """Return the iteration order of a ``HashMap`` as indexes of distinct keys, put in the order given.

    Args:
        hashes: The keys' ``hashCode``.
        texts: The texts for ``compareTo``, needed only if more than eight keys share a slot.
    """
    if len(hashes) <= _FEW:
        return _order_of_few(hashes, table, texts)
    return _order_of_many(np.asarray(hashes, dtype=np.int64).astype(np.uint32), table, texts)


def _order_of_many(hashes: NDArray[np.uint32], table: int, texts: Sequence[str] | None) -> list[int]:
    spread = hashes ^ hashes >> np.uint32(16)
    size = table
    count = len(hashes)
    while True:
        # A slot holds the most when its table is fullest: just before the table doubles.
        put = min(count, size * LOAD_NUMERATOR // LOAD_DENOMINATOR + 1)
        slots = spread[:put] & np.uint32(size - 1)
        if put > TREEIFY_THRESHOLD and int(np.bincount(slots).max()) > TREEIFY_THRESHOLD:
            return _ordered_with_trees([int(h) for h in spread], table, texts)
        if count <= size * LOAD_NUMERATOR // LOAD_DENOMINATOR or size == MAX_CAPACITY:
            order: list[int] = np.argsort(slots[:count], kind="stable").tolist()
            return order
        size *= 2


def _order_of_few(hashes: Sequence[int], table: int, texts: Sequence[str] | None) -> list[int]:
    """Return the same without NumPy, whose calls cost more than they save for few values."""
    if len(hashes) <= 1:
        return list(range(len(hashes)))
    spread = [(hash_ & 0xFFFFFFFF) ^ (hash_ >> 16 & 0xFFFF) for hash_ in hashes]
    size = table
    while True:
        fullest = size * LOAD_NUMERATOR // LOAD_DENOMINATOR
        slots = [hash_ & (size - 1) for hash_ in spread[: fullest + 1]]
        if len(slots) > TREEIFY_THRESHOLD and max(Counter(slots).values()) > TREEIFY_THRESHOLD:
            return _ordered_with_trees(spread, table, texts)
        if len(hashes) <= fullest:
            return sorted(range(len(slots)), key=slots.__getitem__)
        size *= 2


def _ordered_with_trees(spread: list[int], table: int, texts: Sequence[str] | None) -> list[int]:
    from udfs.jvm.tree_bins import order_with_trees

    return order_with_trees(spread, table, [string_order(text) for text in texts or [""] * len(spread)])
