"""Core: the order of a HashMap whose slots have grown into trees: more than eight keys with nearly one hash. No I/O.

One property of such a map is visible: the order in which it iterates, slot after slot, and in a slot along a chain
of keys. These rules give the chain:

- A new key is appended to its slot's chain.
- The ninth key of a slot makes it a search tree by (hash as a signed number, key). While the table has fewer
  than 64 slots, such a key doubles the table instead.
- In a tree a new key is inserted right after its parent in the chain; then the tree's root moves to the front.
- When the table doubles, each chain is divided in two that keep their order. A part of up to six keys is no longer a
  tree. A larger part of a tree is rebuilt as a tree, from the first key of its chain to the last; a tree whose keys all
  stay together stays unchanged.

So two things count about each tree: a new key's parent, and the root. Java balances by red and black nodes. Here the
tree is the 2-3-4 tree that a red-black tree depicts: a black node and its red children are one node of up to three
keys. Which of these keys is black follows without colours: of two keys it is the older, of three the middle one. The
root is the black key of the topmost node. A new key's parent is a key next to it in its leaf; if there is one on either
side, it is the red one, because that is below the black one.

Source: JEP 180; JDK 17 ``java.util.HashMap`` as observed by ``tests/kit/java/oracle/MapOrder.java``. L. Guibas,
R. Sedgewick: A dichromatic framework for balanced trees, 1978.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

_LONGEST_LIST: Final = 8
_SMALLEST_TREE: Final = 7
_SLOTS_WITH_TREES: Final = 64

# Hash as a signed number, bytes for ``compareTo``, index of the put.
_Key: TypeAlias = tuple[int, bytes, int]


class _Node:
    """A node of a 2-3-4 tree.

    Attributes:
        keys: One to three, ascending.
        below: The nodes between and outside the keys; none in a leaf.
        black: The uppermost of them in the red-black tree.
    """

    __slots__ = ("below", "black", "keys")

    def __init__(self, key: _Key, below: Sequence[_Node]) -> None:
        self.keys, self.below, self.black = [key], list(below), key

    def add(self, place: int, key: _Key, halves: Sequence[_Node]) -> tuple[_Key, Sequence[_Node]] | None:
        """Add a key, and the two halves that replace the node below; return what a full node passes upwards instead."""
        if len(self.keys) < 3:
            self.keys.insert(place, key)
            self.below[place : place + 1] = halves
            if len(self.keys) == 3:
                self.black = self.keys[1]
            return None
        low, middle, high = self.keys
        left, right = _Node(low, self.below[:2]), _Node(high, self.below[2:])
        half, offset = (left, 0) if place < 2 else (right, 2)
        half.add(place - offset, key, halves)
        return middle, (left, right)


class _Tree:
    """A slot's tree as far as the chain depends on it."""

    def __init__(self, keys: Iterable[_Key]) -> None:
        keys = iter(keys)
        self._top = _Node(next(keys), ())
        for key in keys:
            self.add(key)

    @property
    def root(self) -> int:
        """The root's index."""
        return self._top.black[2]

    def add(self, key: _Key) -> int:
        """Add a key and return its parent's index."""
        path = []
        node = self._top
        while node.below:
            place = bisect(node.keys, key)
            path.append((node, place))
            node = node.below[place]
        place = bisect(node.keys, key)
        beside = node.keys[max(0, place - 1) : place + 1]
        parent = beside[0] if len(beside) == 1 or beside[0] is not node.black else beside[1]
        handed = node.add(place, key, ())
        while handed is not None and path:
            node, place = path.pop()
            handed = node.add(place, *handed)
        if handed is not None:
            self._top = _Node(*handed)
        return parent[2]


class _Slot:
    """One slot: the chain of its keys' indexes, and the tree once it is one."""

    __slots__ = ("chain", "tree")

    def __init__(self, chain: list[int]) -> None:
        self.chain = chain
        self.tree: _Tree | None = None

    def make_tree(self, keys: Sequence[_Key]) -> None:
        self.tree = _Tree(keys[index] for index in self.chain)
        self._root_to_front(self.tree.root)

    def put_in_tree(self, tree: _Tree, key: _Key) -> None:
        parent = tree.add(key)
        self.chain.insert(self.chain.index(parent) + 1, key[2])
        self._root_to_front(tree.root)

    def _root_to_front(self, root: int) -> None:
        if self.chain[0] != root:
            self.chain.remove(root)
            self.chain.insert(0, root)


def order_with_trees(spread: Sequence[int], table: int, texts: Sequence[bytes]) -> list[int]:
    """Return the iteration order of distinct keys as indexes.

    Args:
        spread: ``hash ^ hash >>> 16`` of each key, unsigned, in the order of the puts.
        table: Number of slots at the first put.
        texts: The texts for ``compareTo``, needed only if hashes are equal.
    """
    keys = [
        (hash_ - (1 << 32) if hash_ >> 31 else hash_, text, index)
        for index, (hash_, text) in enumerate(zip(spread, texts, strict=True))
    ]
    slots: dict[int, _Slot] = {}
    for index, hash_ in enumerate(spread):
        slot = slots.get(hash_ & (table - 1))
        if slot is None:
            slots[hash_ & (table - 1)] = _Slot([index])
        elif slot.tree is not None:
            slot.put_in_tree(slot.tree, keys[index])
        else:
            slot.chain.append(index)
            if len(slot.chain) > _LONGEST_LIST:
                if table >= _SLOTS_WITH_TREES:
                    slot.make_tree(keys)
                else:
                    slots, table = _doubled(slots, table, keys), 2 * table
        if index + 1 > table * 3 // 4:
            slots, table = _doubled(slots, table, keys), 2 * table
    return [index for place in sorted(slots) for index in slots[place].chain]


def _doubled(slots: dict[int, _Slot], table: int, keys: Sequence[_Key]) -> dict[int, _Slot]:
    larger: dict[int, _Slot] = {}
    for slot in slots.values():
        parts: dict[int, list[int]] = {}
        for index in slot.chain:
            parts.setdefault(keys[index][0] & (2 * table - 1), []).append(index)
        if len(parts) == 1:
            larger[next(iter(parts))] = slot
            continue
        for place, chain in parts.items():
            larger[place] = _Slot(chain)
            if slot.tree is not None and len(chain) >= _SMALLEST_TREE:
                larger[place].make_tree(keys)
    return larger
