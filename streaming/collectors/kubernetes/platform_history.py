"""Shell: what happened on one Kubernetes cluster, from lists and changes of its objects. No I/O, no clock.

What it writes is a function of the objects, so that a repeated list writes nothing new; and an annotation that is
written again after a restart has the same identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from streaming.collectors.kubernetes.node_history import CordonedNode, NodeHistory
from streaming.collectors.kubernetes.note_maker import NoteMaker
from streaming.collectors.kubernetes.objects import (
    KubernetesEvent,
    KubernetesObject,
    Node,
    Pod,
    Resource,
    Workload,
    time_ms,
)
from streaming.collectors.kubernetes.pod_history import PodHistory, PodRecord
from streaming.collectors.kubernetes.workload_history import WORKLOADS, WorkloadHistory, WorkloadRecord
from udfs.model.annotations import FOLLOWED_KIND, Annotation

_FAILED_PROBE = "Unhealthy"
# Failed probes of so many pods are remembered, to write none twice; the oldest are forgotten. Kubernetes keeps its own
# events for an hour.
_MAX_EVENTS = 10_000


class _Memory(msgspec.Struct):
    last_ms: int
    known_ms: dict[str, int]
    pods: list[PodRecord]
    workloads: list[WorkloadRecord]
    nodes: list[CordonedNode]


class PlatformHistory:
    """Everything that is remembered of one cluster.

    Args:
        name: The cluster's own name. members_of: The monitored cluster whose members may run there; None for any.
        memory: What ``memory`` returned in an earlier process; None if there was none.
    """

    def __init__(self, name: str, members_of: str | None = None, memory: bytes | None = None) -> None:
        kept = msgspec.json.decode(memory, type=_Memory) if memory else _Memory(0, {}, [], [], [])
        self._name = name
        self._maker = NoteMaker(name, members_of, kept.last_ms)
        self._pods = PodHistory(self._maker, kept.pods)
        self._workloads = WorkloadHistory(
            self._maker, lambda space, text: self._pods.hosts_where(namespace=space, workload=text), kept.workloads
        )
        self._nodes = NodeHistory(self._maker, lambda node: self._pods.hosts_where(node=node), kept.nodes)
        self._known_ms = kept.known_ms
        self._since_ms: int | None = None  # when this process listed pods first
        self._probes: dict[str, int] = {}

    def memory(self) -> bytes:
        """Return what a later process needs."""
        return msgspec.json.encode(
            _Memory(
                self._maker.last_ms,
                self._known_ms,
                [*self._pods.pods.values()],
                [*self._workloads.workloads.values()],
                [*self._nodes.nodes.values()],
            )
        )

    @property
    def pods(self) -> int:
        """Return how many pods are known."""
        return len(self._pods.pods)

    def listed(self, resource: Resource, objects: Sequence[KubernetesObject], at_ms: int) -> list[Annotation]:
        """Return what follows from the list of all objects of a resource."""
        known_ms = self._known_ms.get(resource.name, at_ms)
        written = list(self._listed(resource.name, objects, at_ms, known_ms))
        self.confirmed(resource, at_ms)
        return written

    def changed(self, resource: Resource, found: KubernetesObject, at_ms: int) -> list[Annotation]:
        """Return what follows from a new or changed object."""
        written = list(self._changed(resource.name, found, at_ms))
        self.confirmed(resource, at_ms)
        return written

    def deleted(self, resource: Resource, found: KubernetesObject, at_ms: int) -> list[Annotation]:
        """Return what follows from the deletion of an object."""
        written: list[Annotation] = []
        if isinstance(found, Pod):
            written += self._with_drains(self._pods.deleted(found, at_ms), at_ms)
        elif isinstance(found, Node):
            written += self._nodes.gone(found.metadata.name, at_ms)
        elif resource.name in WORKLOADS:
            self._workloads.gone(found.metadata.uid)
        else:
            self._pods.owner_gone(resource.name, found.metadata.uid)
        self.confirmed(resource, at_ms)
        return written

    def confirmed(self, resource: Resource, at_ms: int) -> None:
        """Remember that all changes of a resource until now have been seen."""
        self._known_ms[resource.name] = at_ms
        if resource.name == "pods" and self._since_ms is None:
            self._since_ms = at_ms

    def followed(self, problem: str, at_ms: int, *, has_pods: bool = True) -> list[Annotation]:
        """Return since when this process knows the pods, and until when they are known; no time if they never were.

        A life that was written by an earlier process, and not again by this one, may be over: a process that is killed
        leaves lives in the log that its memory lacks.

        Args:
            problem: What is not known; empty if all is. has_pods: Whether the pods themselves are followed now.
        """
        known_ms = self._known_ms.get("pods")
        is_known = "are known" if has_pods else "are not known" if known_ms is None else "are no longer known"
        text = f"the pods of kubernetes cluster {self._name} {is_known}" + (f"; {problem}" if problem else "")
        name = f"{FOLLOWED_KIND}/{self._name}"
        return [self._maker.note(name, FOLLOWED_KIND, text, at_ms, began=self._since_ms, ended=known_ms)]

    def _listed(
        self, resource: str, objects: Sequence[KubernetesObject], at_ms: int, known_ms: int
    ) -> Iterator[Annotation]:
        if resource == "pods":
            pods = [found for found in objects if isinstance(found, Pod)]
            yield from self._with_drains(self._pods.listed(pods, at_ms, known_ms), at_ms)
        elif resource == "nodes":
            nodes = [found for found in objects if isinstance(found, Node)]
            yield from self._nodes.listed(nodes, at_ms, known_ms)
        elif resource == "events":
            for found in objects:
                yield from self._changed(resource, found, at_ms)
        else:
            workloads = [found for found in objects if isinstance(found, Workload)]
            if resource in WORKLOADS:
                yield from self._workloads.listed(resource, workloads, at_ms, known_ms)
            else:
                yield from self._pods.owners_listed(resource, workloads, at_ms)

    def _changed(self, resource: str, found: KubernetesObject, at_ms: int) -> Iterator[Annotation]:
        if isinstance(found, Pod):
            yield from self._with_drains(self._pods.seen(found, at_ms), at_ms)
        elif isinstance(found, Node):
            yield from self._nodes.seen(found, at_ms, at_ms)
        elif isinstance(found, KubernetesEvent):
            if found.reason == _FAILED_PROBE and self._is_new(found):
                yield from self._pods.probe_failed(found, at_ms)
        elif resource in WORKLOADS:
            yield from self._workloads.seen(resource, found, at_ms, at_ms)
        else:
            yield from self._pods.owner_seen(resource, found, at_ms)

    def _is_new(self, event: KubernetesEvent) -> bool:
        series = event.series
        last = time_ms(series.last_observed_time if series is not None else event.last_timestamp) or 0
        if self._probes.get(event.metadata.uid, -1) >= last:
            return False
        self._probes.pop(event.metadata.uid, None)
        self._probes[event.metadata.uid] = last
        if len(self._probes) > _MAX_EVENTS:
            del self._probes[next(iter(self._probes))]
        return True

    def _with_drains(self, written: Iterable[Annotation], at_ms: int) -> Iterator[Annotation]:
        """Return annotations of pods; an eviction from a cordoned node shows that it is drained."""
        for annotation in written:
            yield annotation
            if annotation.kind == "pod_evicted":
                yield from self._nodes.evicted_from(annotation.node, at_ms)
