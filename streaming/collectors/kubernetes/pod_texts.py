"""Shell: what happened to pods, as a person would say it. No I/O."""

from __future__ import annotations

from typing import NamedTuple

from streaming.collectors.kubernetes.objects import Ended, KubernetesEvent

_LONGEST_MESSAGE = 300
# Reasons of the condition DisruptionTarget -> the kind of the annotation, and what happened. Source: Kubernetes,
# "Disruptions", pod disruption conditions.
_DISRUPTIONS = {
    "PreemptionByScheduler": ("pod_preempted", "was preempted by a pod of higher priority"),
    "EvictionByEvictionAPI": ("pod_evicted", "was evicted through the API"),
    "DeletionByTaintManager": ("pod_evicted", "was evicted, because its node has a taint that it does not tolerate"),
    "DeletionByPodGC": ("pod_deleted", "was deleted, because its node is gone"),
    "TerminationByKubelet": ("pod_evicted", "was ended by its node"),
}


class PodDeparture(NamedTuple):
    """Why a pod ends: the kind of the annotation, and what happened."""

    kind: str
    text: str


def pod_text(name: str, workload: str | None, revision: str | None, node: str | None) -> str:
    """Return the name of a pod with what it belongs to.

    Example:
        >>> pod_text("orders-7d9f", "deployment orders", "42", "worker-3")
        'pod orders-7d9f (deployment orders, revision 42, node worker-3)'
    """
    parts = [workload, revision and f"revision {revision}", node and f"node {node}"]
    about = ", ".join(part for part in parts if part)
    return f"pod {name} ({about})" if about else f"pod {name}"


def ended_text(container: str, ended: Ended) -> str:
    """Return how a container ended.

    Example:
        >>> ended_text("app", Ended(exit_code=137, reason="OOMKilled")), ended_text("app", Ended(exit_code=1))
        ('was OOMKilled (container app, exit code 137)', 'ended (container app, exit code 1)')
    """
    where = f"(container {container}, exit code {ended.exit_code})"
    if ended.reason == "OOMKilled":
        return f"was OOMKilled {where}"
    reason = "" if ended.reason in (None, "Error", "Completed") else f" with {ended.reason}"
    return f"ended{reason} {where}"


def disruption(reason: str | None, message: str | None) -> PodDeparture:
    """Return why a pod is disrupted."""
    kind, text = _DISRUPTIONS.get(reason or "", ("pod_evicted", f"was disrupted ({reason})"))
    return PodDeparture(kind, f"{text}{_after_colon(message)}")


def evicted(message: str | None) -> PodDeparture:
    """Return that a node evicted a pod, because a resource is short."""
    return PodDeparture("pod_evicted", f"was evicted by its node{_after_colon(message)}")


def probe_text(event: KubernetesEvent, times: int) -> str:
    """Return that a probe failed.

    Example:
        >>> from streaming.collectors.kubernetes.objects import Meta
        >>> event = KubernetesEvent(metadata=Meta(uid="u", name="n"), message="Liveness probe failed: HTTP status 500")
        >>> probe_text(event, 3)
        'failed a probe 3 times: Liveness probe failed: HTTP status 500'
    """
    often = "" if times == 1 else f" {times} times"
    return f"failed a probe{often}{_after_colon(event.message)}"


def _after_colon(message: str | None) -> str:
    text = " ".join((message or "").split())
    return f": {text[:_LONGEST_MESSAGE]}" if text else ""
