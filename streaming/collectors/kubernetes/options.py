"""Shell: the options of a Kubernetes cluster that is followed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KubernetesOptions:
    """Which cluster is followed, and how.

    Attributes:
        cluster: Its name in annotations. members_of: The monitored cluster whose members run there; empty for any.
        kubeconfig: The file that says where it is; empty for the pod's own cluster, or else the user's file.
        context: The context of that file; empty for its current one. namespace: Only this one; empty for all.
        watch_s: How long one watch lasts; then the next begins, so that a server that hangs is noticed.
        answer_s: How long an answer may take.
    """

    cluster: str
    members_of: str = ""
    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    watch_s: int = 10
    answer_s: float = 5.0
