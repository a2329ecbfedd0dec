"""Nodes in memory that answer as a ZooKeeper client does, and fire their watches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import EventType, KazooState, WatchedEvent

Watch = Callable[[WatchedEvent], None]
START_MS = 1_772_334_720_000


@dataclass
class _Node:
    data: bytes
    czxid: int
    ctime: int
    mtime: int
    cversion: int = 0
    pzxid: int = 0
    ephemeralOwner: int = 7  # noqa: N815 - as kazoo names it
    children: set[str] = field(default_factory=set)


class NodeTree:
    """The nodes. Each write is a transaction of its own, a millisecond after the one before.

    Attributes:
        requests: The path of every request, in order. on_request: Called before each is answered.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, _Node] = {"": _Node(b"", 0, 0, 0)}
        self.now_ms, self.zxid = START_MS, 100
        self.requests: list[str] = []
        self.on_request: Callable[[str], None] = lambda _: None
        self._watches: dict[tuple[str, str], list[Watch]] = {}

    # ---- changed by the test

    def write(self, path: str, data: bytes = b"") -> None:
        """Make a node and all above it, or write it again."""
        if path in self.nodes:
            self._next()
            node = self.nodes[path]
            node.data, node.mtime = data, self.now_ms
            self._fire(path, EventType.CHANGED, "data", "exists")
            return
        parent, _, name = path.rpartition("/")
        if parent not in self.nodes:
            self.write(parent)
        self._next()
        self.nodes[path] = _Node(data, self.zxid, self.now_ms, self.now_ms)
        self._touch(parent).children.add(name)
        self._fire(path, EventType.CREATED, "exists")
        self._fire(parent, EventType.CHILD, "children")

    def delete(self, path: str) -> None:
        """Delete a node and all below it."""
        for name in list(self.nodes[path].children):
            self.delete(f"{path}/{name}")
        parent, _, name = path.rpartition("/")
        self._next()
        del self.nodes[path]
        self._touch(parent).children.discard(name)
        self._fire(path, EventType.DELETED, "data", "exists", "children")
        self._fire(parent, EventType.CHILD, "children")

    def _next(self) -> None:
        self.zxid += 1
        self.now_ms += 1

    def _touch(self, path: str) -> _Node:
        node = self.nodes[path]
        node.cversion, node.pzxid = node.cversion + 1, self.zxid
        return node

    def _fire(self, path: str, kind: str, *watched: str) -> None:
        for watch_kind in watched:
            for watch in self._watches.pop((watch_kind, path), []):
                watch(WatchedEvent(kind, KazooState.CONNECTED, path))

    # ---- asked for by the reader

    def get_children_async(self, path: str, watch: Watch | None, include_data: bool) -> _Answer:
        assert include_data
        return self._answer("children", path, watch, lambda node: (sorted(node.children), node))

    def get_async(self, path: str, watch: Watch | None) -> _Answer:
        return self._answer("data", path, watch, lambda node: (node.data, node))

    def exists_async(self, path: str, watch: Watch | None) -> _Answer:
        self.requests.append(path)
        if watch is not None:
            self._watches.setdefault(("exists", path), []).append(watch)
        return _Answer(self.nodes.get(path))

    def _answer(self, kind: str, path: str, watch: Watch | None, value: Callable[[_Node], Any]) -> _Answer:
        self.requests.append(path)
        self.on_request(path)
        node = self.nodes.get(path)
        if node is None:
            return _Answer(NoNodeError())
        if watch is not None:
            self._watches.setdefault((kind, path), []).append(watch)
        names, found = value(node)
        return _Answer((names, SimpleNamespace(**vars(found))))


@dataclass
class _Answer:
    value: Any

    def get(self, timeout: float) -> Any:
        assert timeout > 0
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def group_of_two(tree: NodeTree, group: str = "g") -> None:
    """Write a topic of two partitions and a group whose members own one each."""
    share = b'{"broker":"0-m","numParts":2}'
    for folder in ("topics-pub", "topics-sub"):
        tree.write(f"/meta/brokers/{folder}/t/0-m", share)
    for number, name in enumerate("ab"):
        tree.write(f"/meta/consumers/{group}/ids/{group}_{name}", b"t")
        tree.write(f"/meta/consumers/{group}/owners/t/0-{number}", f"{group}_{name}".encode())
        tree.write(f"/meta/consumers/{group}/offsets/t/0-{number}", b"17-100")
