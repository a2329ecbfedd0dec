"""Objects of Kubernetes as its API server writes them, for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]
T0 = 1_772_330_400_000


def at(second: float) -> str:
    """Return a time as Kubernetes writes it."""
    return datetime.fromtimestamp(int(T0 / 1_000 + second), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ms(second: float) -> int:
    """Return the same time in epoch ms."""
    return T0 + int(second * 1_000)


def pod(
    uid: str,
    ip: str | None,
    began: float,
    *,
    name: str = "",
    owner: tuple[str, str, str] | None = ("ReplicaSet", "orders-7d9f", "rs"),
    node: str = "worker-3",
    phase: str = "Running",
    containers: list[Object] | None = None,
    conditions: list[Object] | None = None,
    labels: dict[str, str] | None = None,
    spec: Object | None = None,
    **status: Any,
) -> Object:
    """Return a pod that got its address at a second."""
    metadata: Object = {"uid": uid, "name": name or f"orders-{uid}", "namespace": "shop", "labels": labels or {}}
    if owner is not None:
        kind, owner_name, owner_uid = owner
        metadata["ownerReferences"] = [{"kind": kind, "name": owner_name, "uid": owner_uid, "controller": True}]
    ready = {"type": "PodReadyToStartContainers", "status": "True", "lastTransitionTime": at(began)}
    address = {"podIP": ip, "podIPs": [{"ip": ip}]} if ip else {}
    return {
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [{"name": "app", "image": "shop/orders:2.4.1"}], **(spec or {})},
        "status": {
            "phase": phase,
            **address,
            "startTime": at(began - 1),
            "conditions": [*([ready] if ip else []), *(conditions or [])],
            "containerStatuses": containers or [running(began)],
            **status,
        },
    }


def running(began: float, restarts: int = 0, last: Object | None = None) -> Object:
    """Return the status of a container that runs."""
    state: Object = {"running": {"startedAt": at(began)}}
    more = {"lastState": {"terminated": last}} if last else {}
    return {"name": "app", "image": "shop/orders:2.4.1", "restartCount": restarts, "state": state, **more}


def ended(second: float, code: int = 137, reason: str = "OOMKilled") -> Object:
    """Return how a container ended."""
    return {"exitCode": code, "reason": reason, "finishedAt": at(second)}


def stopped(second: float, code: int = 137, reason: str = "OOMKilled") -> Object:
    """Return the status of a container that has ended."""
    return {"name": "app", "restartCount": 0, "state": {"terminated": ended(second, code, reason)}}


def replica_set(uid: str = "rs", name: str = "orders-7d9f", deployment: str = "orders", revision: str = "42") -> Object:
    """Return the ReplicaSet of a deployment's revision."""
    owner = {"kind": "Deployment", "name": deployment, "uid": f"of-{uid}", "controller": True}
    annotations = {"deployment.kubernetes.io/revision": revision}
    metadata = {"uid": uid, "name": name, "namespace": "shop", "annotations": annotations, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {"replicas": 1}}


def deployment(replicas: int, revision: str, generation: int, available: int | None = None) -> Object:
    """Return a deployment of which so many pods are available; None for all."""
    annotations = {"deployment.kubernetes.io/revision": revision}
    metadata = {"uid": "d", "name": "orders", "namespace": "shop", "generation": generation, "annotations": annotations}
    number = replicas if available is None else available
    counts = {"replicas": replicas, "updatedReplicas": replicas, "availableReplicas": number}
    status = {"observedGeneration": generation, **counts}
    return {"metadata": metadata, "spec": {"replicas": replicas}, "status": status}


def node(name: str = "worker-3", cordoned: float | None = None) -> Object:
    """Return a node, cordoned since a second if that is given."""
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": at(cordoned or 0)}
    spec = {} if cordoned is None else {"unschedulable": True, "taints": [taint]}
    return {"metadata": {"uid": f"uid-of-{name}", "name": name}, "spec": spec}


def unhealthy(uid: str, of: str, first: float, last: float, count: int) -> Object:
    """Return the event of a failed probe."""
    return {
        "metadata": {"uid": uid, "name": uid, "namespace": "shop"},
        "involvedObject": {"kind": "Pod", "uid": of},
        "reason": "Unhealthy",
        "message": "Liveness probe failed: HTTP probe failed with statuscode: 500",
        "firstTimestamp": at(first),
        "lastTimestamp": at(last),
        "count": count,
    }
