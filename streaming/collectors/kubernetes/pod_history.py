"""Shell: the lives of pods, and what happened in them, from their objects. No I/O.

A life is the time for which a pod has its addresses. It ends when the pod's containers have all ended for good, or when
the pod is deleted. Where nobody watched as it ended, it ends when it was known last: from then on its addresses may
belong to any other pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from streaming.collectors.kubernetes.note_maker import NoteMaker
from streaming.collectors.kubernetes.objects import Condition, KubernetesEvent, Meta, Owner, Pod, Workload, time_ms
from streaming.collectors.kubernetes.pod_texts import (
    PodDeparture,
    disruption,
    ended_text,
    evicted,
    pod_text,
    probe_text,
)
from udfs.model.annotations import POD_KIND, Annotation

_TERMINAL = ("Succeeded", "Failed")
_SIGKILL_EXIT = 137
# Times of the API are in whole seconds, rounded down.
_SECOND_MS = 1_000
_REVISION = "deployment.kubernetes.io/revision"


class PodRecord(msgspec.Struct):
    """What is remembered of one pod.

    Attributes:
        hosts: The names by which others know it: its addresses first. Empty while it has none.
        began_at: When it got its addresses; ended_at: when it lost them; None while it has them.
        owner: The object that made it. said: What the last annotation of its life says.
        ends: Container -> when its last end was. departure: Whether it was written why the pod ends.
    """

    uid: str
    name: str
    namespace: str | None = None
    node: str | None = None
    image: str | None = None
    owner: Owner | None = None
    template: str | None = None
    workload: str | None = None
    revision: str | None = None
    hosts: tuple[str, ...] = ()
    began_at: int | None = None
    ended_at: int | None = None
    said: tuple[str | None, ...] = ()
    ends: dict[str, int] = {}
    departure: bool = False

    @property
    def text(self) -> str:
        """Return the pod with what it belongs to."""
        return pod_text(self.name, self.workload, self.revision, self.node)

    @property
    def about(self) -> dict[str, str | None]:
        """Return what annotations say of it."""
        return {
            "pod": self.name,
            "namespace": self.namespace,
            "workload": self.workload,
            "revision": self.revision,
            "node": self.node,
            "image": self.image,
        }


class PodHistory:
    """The pods of one cluster; bounded by the pods that exist.

    Args:
        pods: Those that were known when the last process ended; their lives are written again, if they go on.
    """

    def __init__(self, maker: NoteMaker, pods: Iterable[PodRecord] = ()) -> None:
        self._maker = maker
        self.pods = {record.uid: record for record in pods}
        for record in self.pods.values():
            record.said = ()
        self._owners: dict[str, dict[str, Workload]] = {}  # by resource and uid

    # -- owners -----------------------------------------------------------------------------------------------------

    def owner_seen(self, resource: str, owner: Workload, at_ms: int) -> Iterator[Annotation]:
        """Remember a ReplicaSet or a Job, and write again whose pods it made."""
        of_resource = self._owners.setdefault(resource, {})
        before = of_resource.get(owner.metadata.uid)
        of_resource[owner.metadata.uid] = owner
        if before is not None and _revision(before) == _revision(owner):
            return
        for record in self.pods.values():
            if record.owner is not None and record.owner.uid == owner.metadata.uid:
                yield from self._life(record, at_ms)

    def owner_gone(self, resource: str, uid: str) -> None:
        """Forget a ReplicaSet or a Job."""
        self._owners.get(resource, {}).pop(uid, None)

    def owners_listed(self, resource: str, owners: Iterable[Workload], at_ms: int) -> Iterator[Annotation]:
        """Remember these ReplicaSets or Jobs, and forget all others."""
        present = list(owners)
        uids = {owner.metadata.uid for owner in present}
        self._owners[resource] = {uid: owner for uid, owner in self._owners.get(resource, {}).items() if uid in uids}
        for owner in present:
            yield from self.owner_seen(resource, owner, at_ms)

    # -- pods -------------------------------------------------------------------------------------------------------

    def seen(self, pod: Pod, at_ms: int) -> Iterator[Annotation]:
        """Return what follows from a new version of a pod."""
        uid = pod.metadata.uid
        record = self.pods.get(uid)
        if record is None:
            record = self.pods[uid] = PodRecord(uid, pod.metadata.name, ends={})
        record.namespace, record.node = pod.metadata.namespace, pod.spec.node_name or record.node
        record.owner, record.template = pod.metadata.controller, _template(pod.metadata)
        record.image = next((container.image for container in pod.spec.containers or ()), None)
        hosts = _hosts(pod)
        if hosts and record.hosts and hosts[0] != record.hosts[0] and record.ended_at is None:
            # Its sandbox was made anew.
            record.ended_at = at_ms
            yield from self._life(record, at_ms)
            record.began_at, record.ended_at = at_ms, None
        record.hosts = hosts or record.hosts
        if record.hosts and record.began_at is None:
            record.began_at = _began(pod, at_ms)
        if pod.status.phase in _TERMINAL and record.ended_at is None:
            record.ended_at = _finished(pod) or at_ms
        yield from self._life(record, at_ms)
        yield from self._container_ends(record, pod, at_ms)
        yield from self._departure(record, pod, at_ms)

    def deleted(self, pod: Pod, at_ms: int) -> Iterator[Annotation]:
        """Return what follows from the deletion of a pod, whose last version this is."""
        yield from self.seen(pod, at_ms)
        record = self.pods.pop(pod.metadata.uid)
        if record.ended_at is None:
            record.ended_at = min(_finished(pod) or at_ms, at_ms)
            yield from self._life(record, at_ms)
        if not record.departure and record.began_at is not None:
            yield self._of(record, PodDeparture("pod_deleted", "was deleted"), record.ended_at, record.ended_at, at_ms)

    def listed(self, pods: Iterable[Pod], at_ms: int, known_ms: int) -> Iterator[Annotation]:
        """Return what follows from the list of all pods.

        Args:
            known_ms: When the pods were known last, before this list.
        """
        present = list(pods)
        uids = {pod.metadata.uid for pod in present}
        for record in [record for uid, record in self.pods.items() if uid not in uids]:
            del self.pods[record.uid]
            if record.ended_at is None and record.began_at is not None:
                record.ended_at = max(known_ms, record.began_at)
                yield from self._life(record, at_ms)
                if not record.departure:
                    gone = PodDeparture("pod_deleted", "was deleted while nobody watched")
                    yield self._of(record, gone, record.ended_at, at_ms, at_ms)
        for pod in present:
            yield from self.seen(pod, at_ms)

    def probe_failed(self, event: KubernetesEvent, at_ms: int) -> Iterator[Annotation]:
        """Return that a probe of a pod failed; nothing if the pod is not known."""
        record = self.pods.get(event.involved_object.uid or "")
        if record is None or not record.hosts:
            return
        series = event.series
        times = (series.count if series is not None else event.count) or 1
        first = time_ms(event.first_timestamp or event.event_time)
        last = time_ms(series.last_observed_time if series is not None else event.last_timestamp)
        yield self._maker.note(
            f"{event.metadata.uid}/probe_failed",
            "probe_failed",
            f"{record.text} {probe_text(event, times)}",
            at_ms,
            began=at_ms if first is None else first,
            ended=first if last is None else last,
            hosts=record.hosts,
            about=record.about,
        )

    def hosts_where(self, **fields: str | None) -> set[str]:
        """Return the first address of the pods that have these values and an address now."""
        return {
            record.hosts[0]
            for record in self.pods.values()
            if record.hosts
            and record.ended_at is None
            and all(getattr(record, name) == value for name, value in fields.items())
        }

    # -- what is written --------------------------------------------------------------------------------------------

    def _life(self, record: PodRecord, at_ms: int) -> Iterator[Annotation]:
        """Return the annotation of a life, if it says something new."""
        if record.began_at is None:
            return
        record.workload, record.revision = self._workload(record)
        said = (*record.hosts, *record.about.values(), str(record.began_at), str(record.ended_at))
        if said == record.said:
            return
        record.said = said
        yield self._maker.note(
            f"{record.uid}/{POD_KIND}/{record.hosts[0]}",
            POD_KIND,
            f"{record.text} has the address {record.hosts[0]}",
            at_ms,
            began=record.began_at,
            ended=record.ended_at,
            hosts=record.hosts,
            about=record.about,
        )

    def _container_ends(self, record: PodRecord, pod: Pod, at_ms: int) -> Iterator[Annotation]:
        is_asked_to_stop = pod.metadata.deletion_timestamp is not None
        for container in pod.status.container_statuses or ():
            for end in container.ends:
                finished = time_ms(end.finished_at)
                if finished is None or finished <= record.ends.get(container.name, -1) or not record.hosts:
                    continue
                record.ends[container.name] = finished
                # A container that ends because its pod is deleted is no news, unless it was killed.
                if is_asked_to_stop and end.exit_code != _SIGKILL_EXIT:
                    continue
                yield self._maker.note(
                    f"{record.uid}/container_ended/{container.name}/{finished}",
                    "container_ended",
                    f"{record.text} {ended_text(container.name, end)}",
                    at_ms,
                    began=finished,
                    ended=finished,
                    hosts=record.hosts,
                    about=record.about | {"image": container.image or record.image},
                )

    def _departure(self, record: PodRecord, pod: Pod, at_ms: int) -> Iterator[Annotation]:
        """Return why a pod ends, once that is known."""
        if record.departure or record.began_at is None:
            return
        asked = _asked_to_stop(pod.metadata)
        target = next(iter(_true(pod, "DisruptionTarget")), None)
        if target is not None:
            why, since = disruption(target.reason, target.message), time_ms(target.last_transition_time)
        elif pod.status.reason == "Evicted":
            why, since = evicted(pod.status.message), record.ended_at
        elif asked is not None:
            why, since = PodDeparture("pod_deleted", "was asked to stop, because it was deleted"), asked
        else:
            return
        record.departure = True
        began = at_ms if since is None else since
        yield self._of(record, why, began, began, at_ms)

    def _of(self, record: PodRecord, why: PodDeparture, began: int, ended: int, at_ms: int) -> Annotation:
        return self._maker.note(
            f"{record.uid}/{why.kind}",
            why.kind,
            f"{record.text} {why.text}",
            at_ms,
            began=began,
            ended=ended,
            hosts=record.hosts,
            about=record.about,
        )

    def _workload(self, record: PodRecord) -> tuple[str | None, str | None]:
        """Return the workload of a pod and its revision: the owner of its owner, as far as known."""
        if record.owner is None:
            return None, None
        made_by = next((of[record.owner.uid] for of in self._owners.values() if record.owner.uid in of), None)
        if made_by is not None and (above := made_by.metadata.controller) is not None:
            return workload_text(above.kind, above.name), _revision(made_by)
        if record.workload is not None and made_by is None:
            # Its owner was deleted first.
            return record.workload, record.revision
        return workload_text(record.owner.kind, record.owner.name), record.template


def workload_text(kind: str, name: str) -> str:
    """Return a workload as its kind and name.

    Example:
        >>> workload_text("StatefulSet", "orders")
        'statefulset orders'
    """
    return f"{kind.lower()} {name}"


def _revision(owner: Workload) -> str | None:
    return (owner.metadata.annotations or {}).get(_REVISION)


def _template(meta: Meta) -> str | None:
    """Return the revision of a pod that a StatefulSet or a DaemonSet made."""
    labels: Mapping[str, str] = meta.labels or {}
    if (generation := labels.get("pod-template-generation")) is not None:
        return generation
    revision, controller = labels.get("controller-revision-hash"), meta.controller
    return revision.removeprefix(f"{controller.name}-") if revision is not None and controller is not None else None


def _hosts(pod: Pod) -> tuple[str, ...]:
    """Return the names of a pod; one on its node's network has no address that is only its own."""
    if not pod.status.pod_ip:
        return ()
    name = pod.spec.hostname or pod.metadata.name
    if pod.spec.host_network:
        return (pod.metadata.name,)
    addresses = [pod.status.pod_ip, *(address.ip for address in pod.status.pod_ips or ())]
    return tuple(dict.fromkeys(host for host in (*addresses, name) if host))


def _began(pod: Pod, at_ms: int) -> int:
    """Return from when on a pod certainly had its addresses, as far as its object says."""
    ready = _true(pod, "PodReadyToStartContainers")
    # A container that has run before does not say when its pod began.
    states = [status.state for status in pod.status.container_statuses or () if status.restart_count == 0]
    starts = [time_ms(state.running.started_at) for state in states if state is not None and state.running is not None]
    known = (
        [time_ms(condition.last_transition_time) for condition in ready] or starts or [time_ms(pod.status.start_time)]
    )
    return min([at_ms, *(second + _SECOND_MS - 1 for second in known if second is not None)])


def _true(pod: Pod, kind: str) -> list[Condition]:
    """Return a condition of a pod, if it holds."""
    conditions = pod.status.conditions or ()
    return [condition for condition in conditions if condition.type == kind and condition.status == "True"]


def _finished(pod: Pod) -> int | None:
    """Return when the last container of a pod ended; None if one runs, or that is not known."""
    states = [status.state for status in pod.status.container_statuses or ()]
    ends = [state.terminated for state in states if state is not None and state.terminated is not None]
    times = [time_ms(end.finished_at) for end in ends]
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(states) else None


def _asked_to_stop(meta: Meta) -> int | None:
    """Return when a pod was deleted; Kubernetes writes until when it may take to end."""
    until = time_ms(meta.deletion_timestamp)
    return None if until is None else until - _SECOND_MS * (meta.deletion_grace_period_seconds or 0)
