"""Shell: the objects of Kubernetes' API, as far as they are read. No I/O.

Source: Kubernetes API reference, core/v1, apps/v1. Fields without a value are left out by the server, or null.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import msgspec


class _Part(msgspec.Struct, rename="camel", kw_only=True):
    """A part of an object; what it has beside these fields is ignored."""


class Owner(_Part):
    kind: str
    name: str
    uid: str
    controller: bool | None = None


class Meta(_Part):
    uid: str
    name: str
    namespace: str | None = None
    generation: int | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[Owner] | None = None

    @property
    def controller(self) -> Owner | None:
        """Return the object that made this one."""
        return next((owner for owner in self.owner_references or () if owner.controller), None)


class Condition(_Part):
    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: datetime | None = None


class Ended(_Part):
    exit_code: int = 0
    reason: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


class Running(_Part):
    started_at: datetime | None = None


class ContainerState(_Part):
    running: Running | None = None
    terminated: Ended | None = None


class ContainerStatus(_Part):
    name: str
    image: str | None = None
    restart_count: int = 0
    state: ContainerState | None = None
    last_state: ContainerState | None = None

    @property
    def ends(self) -> list[Ended]:
        """Return how it ended last, and before that, as far as Kubernetes remembers: the last two times."""
        states = (self.last_state, self.state)
        return [state.terminated for state in states if state is not None and state.terminated is not None]


class Container(_Part):
    name: str
    image: str | None = None


class PodSpec(_Part):
    node_name: str | None = None
    hostname: str | None = None
    host_network: bool | None = None
    containers: list[Container] | None = None


class PodAddress(_Part):
    ip: str | None = None


class PodStatus(_Part):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    pod_ip: str | None = msgspec.field(name="podIP", default=None)
    pod_ips: list[PodAddress] | None = msgspec.field(name="podIPs", default=None)
    start_time: datetime | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None


class Pod(_Part):
    metadata: Meta
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class Taint(_Part):
    key: str
    time_added: datetime | None = None


class NodeSpec(_Part):
    unschedulable: bool | None = None
    taints: list[Taint] | None = None


class Node(_Part):
    metadata: Meta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)


class WorkloadSpec(_Part):
    replicas: int | None = None


class WorkloadStatus(_Part):
    observed_generation: int | None = None
    replicas: int | None = None
    updated_replicas: int | None = None
    available_replicas: int | None = None
    update_revision: str | None = None
    desired_number_scheduled: int | None = None
    updated_number_scheduled: int | None = None
    number_available: int | None = None


class Workload(_Part):
    """A Deployment, ReplicaSet, StatefulSet, DaemonSet or Job."""

    metadata: Meta
    spec: WorkloadSpec = msgspec.field(default_factory=WorkloadSpec)
    status: WorkloadStatus = msgspec.field(default_factory=WorkloadStatus)


class Involved(_Part):
    kind: str | None = None
    uid: str | None = None


class Series(_Part):
    count: int | None = None
    last_observed_time: datetime | None = None


class KubernetesEvent(_Part):
    metadata: Meta
    involved_object: Involved = msgspec.field(default_factory=Involved)
    reason: str | None = None
    message: str | None = None
    count: int | None = None
    event_time: datetime | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    series: Series | None = None


KubernetesObject = Pod | Node | Workload | KubernetesEvent


class Resource(NamedTuple):
    """A kind of objects that is followed.

    Attributes:
        name: As in a role. group: Its API group; empty for the core. read_as: The type of its objects.
    """

    name: str
    group: str
    read_as: type[KubernetesObject]

    def path(self, namespace: str) -> str:
        """Return the path of its collection in a namespace; empty for all of them."""
        prefix = f"/apis/{self.group}/v1" if self.group else "/api/v1"
        within = f"/namespaces/{namespace}" if namespace and self.name != "nodes" else ""
        return f"{prefix}{within}/{self.name}"


# In the order in which they are first read: what owns pods comes before them, and what speaks of them after.
RESOURCES = (
    Resource("replicasets", "apps", Workload),
    Resource("jobs", "batch", Workload),
    Resource("deployments", "apps", Workload),
    Resource("statefulsets", "apps", Workload),
    Resource("daemonsets", "apps", Workload),
    Resource("nodes", "", Node),
    Resource("pods", "", Pod),
    Resource("events", "", KubernetesEvent),
)


def time_ms(time: datetime | None) -> int | None:
    """Return a time of the API in epoch ms."""
    return None if time is None else round(time.timestamp() * 1_000)
