"""Shell: which nodes take no new pods, and which are drained, from their objects. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from streaming.collectors.kubernetes.note_maker import NoteMaker
from streaming.collectors.kubernetes.objects import Node, time_ms
from udfs.model.annotations import Annotation

_CORDONED = "node.kubernetes.io/unschedulable"


class CordonedNode(msgspec.Struct):
    """A node that takes no new pods.

    Attributes:
        since_ms: Since when; hosts: the addresses of its pods then. drained: Whether pods were evicted from it since.
    """

    uid: str
    name: str
    since_ms: int
    hosts: list[str]
    drained: bool = False


class NodeHistory:
    """The cordoned nodes of one cluster.

    Args:
        hosts_of: Returns the addresses of the pods of a node.
        nodes: Those that were known when the last process ended.
    """

    def __init__(
        self, maker: NoteMaker, hosts_of: Callable[[str], Iterable[str]], nodes: Iterable[CordonedNode] = ()
    ) -> None:
        self._maker = maker
        self._hosts_of = hosts_of
        self.nodes = {node.name: node for node in nodes}

    def listed(self, nodes: Iterable[Node], at_ms: int, known_ms: int) -> Iterator[Annotation]:
        """Return what follows from the list of all nodes; what changed did so since ``known_ms``."""
        present = list(nodes)
        names = {node.metadata.name for node in present}
        for name in [name for name in self.nodes if name not in names]:
            yield from self.gone(name, at_ms)
        for node in present:
            yield from self.seen(node, at_ms, known_ms)

    def seen(self, node: Node, at_ms: int, since_ms: int) -> Iterator[Annotation]:
        """Return what follows from a new version of a node."""
        name, cordoned = node.metadata.name, self.nodes.get(node.metadata.name)
        if node.spec.unschedulable and cordoned is None:
            times = [time_ms(taint.time_added) for taint in node.spec.taints or () if taint.key == _CORDONED]
            since = next((time for time in times if time is not None), since_ms)
            cordoned = CordonedNode(node.metadata.uid, name, since, sorted(self._hosts_of(name)))
            self.nodes[name] = cordoned
            yield from self._notes(cordoned, at_ms, None)
        elif cordoned is not None and not node.spec.unschedulable:
            yield from self.gone(name, at_ms)

    def gone(self, name: str, at_ms: int) -> Iterator[Annotation]:
        """Return that a node takes pods again, or is no more."""
        if (cordoned := self.nodes.pop(name, None)) is not None:
            yield from self._notes(cordoned, at_ms, at_ms)

    def evicted_from(self, name: str | None, at_ms: int) -> Iterator[Annotation]:
        """Return that a node is drained, if it is cordoned: a pod was evicted from it."""
        cordoned = self.nodes.get(name or "")
        if cordoned is not None and not cordoned.drained:
            cordoned.drained = True
            yield from self._notes(cordoned, at_ms, None)

    def _notes(self, node: CordonedNode, at_ms: int, ended: int | None) -> Iterator[Annotation]:
        done = "was cordoned and drained" if node.drained else "was cordoned"
        again = "" if ended is None else "; that is over"
        yield from self._maker.notes(
            f"{node.uid}/drain/{node.since_ms}",
            "drain",
            f"node {node.name} {done}{again}",
            at_ms,
            began=node.since_ms,
            ended=ended,
            hosts=node.hosts,
            about={"node": node.name},
        )
