"""Dashboard: metrics of whether the present is known; other metrics leave out unknown clusters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from prometheus_client.core import GaugeMetricFamily, Metric

from dashboard.metrics.group_labels import GroupLabels, label
from streaming.views.freshness import Freshness
from streaming.views.platforms import PlatformState


def unknown_of(freshness: Freshness, clusters: Iterable[str]) -> frozenset[str]:
    """Return those of these clusters, and of the clusters known to jobs, whose present is unknown."""
    return frozenset(cluster.cluster for cluster in freshness.blind(clusters) if cluster.state == "unknown")


def known_rows(rows: pa.Table, unknown: Collection[str]) -> pa.Table:
    """Return the rows about the present, without those of unknown clusters."""
    if not unknown:
        return rows
    return rows.filter(pc.invert(pc.is_in(rows["cluster"], pa.array(sorted(unknown), rows["cluster"].type))))


def of_knowledge(freshness: Freshness, clusters: Iterable[str], groups: GroupLabels, prefix: str) -> Iterable[Metric]:
    """Yield which clusters are known, since when others are not, and how many jobs are alive.

    The sum `other` is known if all of its clusters are, and blind since the first of them was.
    """
    known: dict[str, float] = {}
    since: dict[str, float] = {}
    for name in sorted({*clusters, *freshness.clusters}):
        found, key = freshness.of(name), groups.cluster(name)
        known[key] = min(known.get(key, 1.0), float(found.state in ("known", "recording")))
        if found.state == "unknown" and found.known_until is not None:
            since[key] = min(since.get(key, float("inf")), found.known_until / 1_000)
    text = "1 while all of the cluster's present is known, or it is a recording that is complete; else 0."
    yield _by(f"{prefix}source_known", text, known)
    text = "Event time of the last knowledge of a cluster; none while it is known."
    yield _by(f"{prefix}source_blind_since_timestamp_seconds", text, since)
    alive = sum(job.is_alive for job in freshness.jobs)
    yield GaugeMetricFamily(f"{prefix}jobs_alive", "Jobs that have reported beside the tables in time.", value=alive)


def of_platforms(platforms: Sequence[PlatformState], prefix: str) -> Iterable[Metric]:
    """Yield which Kubernetes clusters' pods are known, and since when others are not; no sample if none is."""
    known = {label(found.platform): float(found.state == "known") for found in platforms}
    text = "1 while the pods of the Kubernetes cluster, and all that happens to them, are known; else 0."
    yield _by(f"{prefix}platform_known", text, known, "platform")
    since = {label(found.platform): found.since / 1_000 for found in platforms if found.state == "unknown"}
    text = "Until when the pods of the Kubernetes cluster were known; none while they are."
    yield _by(f"{prefix}platform_blind_since_timestamp_seconds", text, since, "platform")


def _by(name: str, text: str, values: dict[str, float], by: str = "cluster") -> Metric:
    family = GaugeMetricFamily(name, text, labels=(by,))
    for key in sorted(values):
        family.add_metric((key,), values[key])
    return family
