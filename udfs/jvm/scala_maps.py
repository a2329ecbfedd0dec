"""Core: the order of Scala 2.12's maps, on which votes of Kafka 1.0 depend. No I/O.

Source: scala-library 2.12 ``mutable.HashTable``, ``immutable.HashMap``, ``TraversableLike#groupBy``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from udfs.jvm.collections import string_hashes

_MASK: Final = 0xFFFFFFFF
_TABLE: Final = 16  # HashTable.initialSize
# HashTable's load factor is 750 of 1000; an immutable map of up to four entries is not a tree, but a plain row.
_LOAD_PERMILLE: Final = 750
_ROW_ENTRIES: Final = 4


def group_by_order(texts: Sequence[str]) -> list[str]:
    """Return the distinct texts in the order of ``texts.groupBy(identity)``.

    Args:
        texts: Strings in the order in which they occur.

    Example:
        >>> group_by_order(["sticky", "roundrobin", "range"])
        ['range', 'sticky', 'roundrobin']
    """
    distinct = list(dict.fromkeys(texts))
    hashes = _hashes(distinct)
    order = _mutable_order(distinct, hashes)
    if len(order) <= _ROW_ENTRIES:
        return order
    # A tree of 5 bits a level, lowest bits first; the same hash twice stays in the order of insertion.
    places = {text: number for number, text in enumerate(order)}
    return sorted(order, key=lambda text: (_trie_path(hashes[text]), places[text]))


def mutable_map_order(texts: Sequence[str]) -> list[str]:
    """Return the distinct texts in the order of a ``mutable.HashMap`` into which they were put in this order."""
    distinct = list(dict.fromkeys(texts))
    return _mutable_order(distinct, _hashes(distinct))


def _hashes(texts: Sequence[str]) -> dict[str, int]:
    return dict(zip(texts, (value & _MASK for value in string_hashes(texts)), strict=True))


def _mutable_order(texts: Sequence[str], hashes: dict[str, int]) -> list[str]:
    """Return the order of a table of chains that take new entries at their heads, read from the last slot to the first.

    A larger table is filled in the order of the smaller one.
    """
    put: list[str] = []
    size = _TABLE
    for text in texts:
        put.append(text)
        if len(put) > size * _LOAD_PERMILLE // 1000:
            put = _read(put, size, hashes)
            size *= 2
    return _read(put, size, hashes)


def _read(put: Sequence[str], size: int, hashes: dict[str, int]) -> list[str]:
    return sorted(put, key=lambda text: _slot(hashes[text], size))[::-1]


def _slot(hash_: int, size: int) -> int:
    # HashTable#index; its seed is fixed when the table is made: bitCount(16 - 1).
    improved = (hash_ * 0x9E3775CD) & _MASK
    improved = int.from_bytes(improved.to_bytes(4, "little"), "big")
    improved = (improved * 0x9E3775CD) & _MASK
    seed = (_TABLE - 1).bit_count()
    improved = ((improved >> seed) | (improved << (32 - seed))) & _MASK
    return (improved >> (32 - seed)) & (size - 1)


def _trie_path(hash_: int) -> tuple[int, ...]:
    improved = (hash_ + (~(hash_ << 9) & _MASK)) & _MASK
    improved ^= improved >> 14
    improved = (improved + (improved << 4)) & _MASK
    improved ^= improved >> 10
    return tuple((improved >> level) & 0x1F for level in range(0, 35, 5))
