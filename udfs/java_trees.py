"""Core: the order of a HashMap whose slots have grown into trees: more than eight keys with nearly one hash. No I/O.

Iteration follows the ``next`` links; a tree changes them in two ways only: a new node is linked in right behind
its parent, and the root is moved to the front of its slot. So the red-black tree has to be built as Java does.

Source: JDK 17 ``java.util.HashMap`` (``putVal``, ``treeifyBin``, ``resize``, ``TreeNode``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_TREEIFY_THRESHOLD: Final = 8
_UNTREEIFY_THRESHOLD: Final = 6
_MIN_TREEIFY_CAPACITY: Final = 64


class _Node:
    __slots__ = ("hash", "index", "key", "left", "parent", "red", "right")

    def __init__(self, index: int, hash_: int, key: bytes) -> None:
        self.index, self.hash, self.key = index, hash_, key
        self.parent: _Node | None = None
        self.left: _Node | None = None
        self.right: _Node | None = None
        self.red = False


class _Slot:
    """One slot: its nodes in the order of their ``next`` links, and the root once it is a tree."""

    __slots__ = ("nodes", "root")

    def __init__(self, nodes: list[_Node]) -> None:
        self.nodes = nodes
        self.root: _Node | None = None

    def treeify(self) -> None:
        root: _Node | None = None
        for node in self.nodes:
            node.left = node.right = node.parent = None
            node.red = root is not None
            root = node if root is None else _insert(root, node)[0]
        self._set_root(root)

    def put(self, node: _Node) -> None:
        if self.root is None:
            self.nodes.append(node)
            return
        node.red = True
        root, parent = _insert(self.root, node)
        self.nodes.insert(self.nodes.index(parent) + 1, node)
        self._set_root(root)

    def _set_root(self, root: _Node | None) -> None:
        self.root = root
        if root is not None and self.nodes[0] is not root:
            self.nodes.remove(root)
            self.nodes.insert(0, root)


def order_with_trees(spread: Sequence[int], table: int, keys: Sequence[bytes]) -> list[int]:
    """Answer the iteration order of distinct keys as indexes.

    Args:
        spread: ``hash ^ hash >>> 16`` of each key, unsigned, in the order of the puts.
        table: Slots at the first put.
        keys: What ``compareTo`` compares where hashes are equal.
    """
    slots: list[_Slot | None] = [None] * table
    for index, hash_ in enumerate(spread):
        node = _Node(index, hash_, keys[index])
        slot = slots[hash_ & (len(slots) - 1)]
        if slot is None:
            slots[hash_ & (len(slots) - 1)] = _Slot([node])
        else:
            was_list = slot.root is None
            slot.put(node)
            if was_list and len(slot.nodes) > _TREEIFY_THRESHOLD:
                if len(slots) < _MIN_TREEIFY_CAPACITY:
                    slots = _doubled(slots)
                else:
                    slot.treeify()
        if index + 1 > len(slots) * 3 // 4:
            slots = _doubled(slots)
    return [node.index for slot in slots if slot is not None for node in slot.nodes]


def _doubled(slots: list[_Slot | None]) -> list[_Slot | None]:
    bit = len(slots)
    larger: list[_Slot | None] = [None] * (2 * bit)
    for place, slot in enumerate(slots):
        if slot is None:
            continue
        for offset, wanted in ((0, 0), (bit, bit)):
            nodes = [node for node in slot.nodes if node.hash & bit == wanted]
            if not nodes:
                continue
            if slot.root is not None and len(nodes) == len(slot.nodes):
                larger[place + offset] = slot  # the tree stays as it is
                continue
            part = _Slot(nodes)
            if slot.root is not None and len(nodes) > _UNTREEIFY_THRESHOLD:
                part.treeify()
            larger[place + offset] = part
    return larger


def _insert(root: _Node, node: _Node) -> tuple[_Node, _Node]:
    """Insert and balance; answer the new root and the node's parent as it was before balancing."""
    place: _Node | None = root
    parent = root
    left = False
    while place is not None:
        parent = place
        # Java compares the hashes as signed numbers.
        left = _order(node) < _order(place)
        place = place.left if left else place.right
    node.parent = parent
    if left:
        parent.left = node
    else:
        parent.right = node
    return _balance_insertion(root, node), parent


def _order(node: _Node) -> tuple[int, bytes]:
    return (node.hash - (1 << 32) if node.hash >> 31 else node.hash, node.key)


def _balance_insertion(root: _Node, node: _Node) -> _Node:
    node.red = True
    while True:
        parent = node.parent
        if parent is None:
            node.red = False
            return node
        grand = parent.parent
        if not parent.red or grand is None:
            return root
        on_left = parent is grand.left
        uncle = grand.right if on_left else grand.left
        if uncle is not None and uncle.red:
            uncle.red = parent.red = False
            grand.red = True
            node = grand
            continue
        if node is (parent.right if on_left else parent.left):
            node = parent
            root = _rotate(root, node, to_left=on_left)
            parent = node.parent
            grand = None if parent is None else parent.parent
        if parent is not None:
            parent.red = False
            if grand is not None:
                grand.red = True
                root = _rotate(root, grand, to_left=not on_left)


def _rotate(root: _Node, node: _Node, *, to_left: bool) -> _Node:
    child = node.right if to_left else node.left
    if child is None:
        return root
    inner = child.left if to_left else child.right
    if to_left:
        node.right = inner
    else:
        node.left = inner
    if inner is not None:
        inner.parent = node
    above = node.parent
    child.parent = above
    if above is None:
        root = child
        root.red = False
    elif above.left is node:
        above.left = child
    else:
        above.right = child
    if to_left:
        child.left = node
    else:
        child.right = node
    node.parent = child
    return root
