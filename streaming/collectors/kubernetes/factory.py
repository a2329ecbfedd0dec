"""Shell: the collector of the Kubernetes cluster that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streaming.collectors.kubernetes.api_server import ApiServer
from streaming.collectors.kubernetes.collector import KubernetesCollector
from streaming.collectors.kubernetes.options import KubernetesOptions

if TYPE_CHECKING:
    from streaming.collectors.event_log import EventLog
    from streaming.settings.clusters import Kubernetes


def collector_of(settings: Kubernetes, log: EventLog) -> KubernetesCollector:
    """Return the collector of a cluster; it starts even while the cluster is away.

    Raises:
        SetupError: The client is not installed, or its configuration cannot be used.
    """
    options = KubernetesOptions(**dict(settings))
    return KubernetesCollector(options, ApiServer(options), log)
