"""Shell: the rollouts and the scaling of workloads, from their objects. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from streaming.collectors.kubernetes.note_maker import NoteMaker
from streaming.collectors.kubernetes.objects import Workload
from streaming.collectors.kubernetes.pod_history import workload_text
from udfs.model.annotations import Annotation

# The resources whose changes are written -> the kind of their objects.
WORKLOADS = {"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}
_REVISIONS = {
    "deployments": "deployment.kubernetes.io/revision",
    "daemonsets": "deprecated.daemonset.template.generation",
}


class WorkloadRecord(msgspec.Struct):
    """What is remembered of one workload.

    Attributes:
        former: The revision before this known. rollout: The annotation of the rollout that is under way, or empty.
        began_at: When it began. hosts: The addresses of its pods since then.
    """

    uid: str
    resource: str
    text: str
    namespace: str | None
    revision: str | None
    replicas: int | None
    former: str | None = None
    rollout: str = ""
    began_at: int = 0
    hosts: list[str] = []


class WorkloadHistory:
    """The workloads of one cluster; bounded by those that exist.

    Args:
        hosts_of: Returns the addresses of the pods of a workload, given its namespace and its text.
        workloads: Those that were known when the last process ended.
    """

    def __init__(
        self,
        maker: NoteMaker,
        hosts_of: Callable[[str | None, str], Iterable[str]],
        workloads: Iterable[WorkloadRecord] = (),
    ) -> None:
        self._maker = maker
        self._hosts_of = hosts_of
        self.workloads = {record.uid: record for record in workloads}

    def listed(self, resource: str, found: Iterable[Workload], at_ms: int, known_ms: int) -> Iterator[Annotation]:
        """Return what follows from the list of all workloads of a resource.

        Args:
            known_ms: When they were known last; what changed did so since then.
        """
        present = list(found)
        uids = {workload.metadata.uid for workload in present}
        for uid in [uid for uid, known in self.workloads.items() if known.resource == resource and uid not in uids]:
            del self.workloads[uid]
        for workload in present:
            yield from self.seen(resource, workload, at_ms, known_ms)

    def seen(self, resource: str, workload: Workload, at_ms: int, since_ms: int) -> Iterator[Annotation]:
        """Return what follows from a new version of a workload; nothing if it is the first."""
        meta = workload.metadata
        revision, replicas = _revision(resource, workload), workload.spec.replicas
        record = self.workloads.get(meta.uid)
        if record is None:
            text = workload_text(WORKLOADS[resource], meta.name)
            self.workloads[meta.uid] = WorkloadRecord(meta.uid, resource, text, meta.namespace, revision, replicas)
            return
        if replicas is not None and record.replicas is not None and replicas != record.replicas:
            text = f"{record.text} was scaled from {record.replicas} to {replicas}"
            name = f"{meta.uid}/scaling/{meta.generation}"
            yield from self._notes(record, name, "scaling", text, at_ms, began=since_ms, ended=at_ms)
        record.replicas = replicas
        if revision is not None and record.revision is not None and revision != record.revision:
            record.former, record.revision = record.revision, revision
            record.rollout, record.began_at = f"{meta.uid}/deploy/{revision}/{meta.generation}", since_ms
            record.hosts = []
            yield from self._rollout(record, at_ms, None)
        record.revision = revision or record.revision
        if record.rollout and _is_rolled_out(resource, workload):
            yield from self._rollout(record, at_ms, at_ms)
            record.rollout = ""

    def gone(self, uid: str) -> None:
        """Forget a workload."""
        self.workloads.pop(uid, None)

    def _rollout(self, record: WorkloadRecord, at_ms: int, ended: int | None) -> Iterator[Annotation]:
        record.hosts = sorted({*record.hosts, *self._hosts_of(record.namespace, record.text)})
        text = f"{record.text} {'began' if ended is None else 'rolled out'} revision {record.revision}, after revision"
        yield from self._notes(
            record,
            record.rollout,
            "deploy",
            f"{text} {record.former}",
            at_ms,
            began=record.began_at,
            ended=ended,
            hosts=record.hosts,
        )

    def _notes(
        self,
        record: WorkloadRecord,
        name: str,
        kind: str,
        text: str,
        at_ms: int,
        *,
        began: int,
        ended: int | None,
        hosts: Iterable[str] | None = None,
    ) -> Iterator[Annotation]:
        concerned = list(self._hosts_of(record.namespace, record.text) if hosts is None else hosts)
        about = {"namespace": record.namespace, "workload": record.text, "revision": record.revision}
        yield from self._maker.notes(name, kind, text, at_ms, began=began, ended=ended, hosts=concerned, about=about)


def _revision(resource: str, workload: Workload) -> str | None:
    if resource == "statefulsets":
        revision = workload.status.update_revision
        return None if revision is None else revision.removeprefix(f"{workload.metadata.name}-")
    return (workload.metadata.annotations or {}).get(_REVISIONS[resource])


def _is_rolled_out(resource: str, workload: Workload) -> bool:
    """Return whether all pods are of the newest revision and available, as ``kubectl rollout status`` decides it."""
    status = workload.status
    if (status.observed_generation or 0) < (workload.metadata.generation or 0):
        return False
    if resource == "daemonsets":
        wanted = status.desired_number_scheduled or 0
        return (status.updated_number_scheduled or 0) >= wanted and (status.number_available or 0) >= wanted
    wanted = 1 if workload.spec.replicas is None else workload.spec.replicas
    updated = status.updated_replicas or 0
    return updated >= wanted and (status.replicas or 0) <= updated and (status.available_replicas or 0) >= wanted
