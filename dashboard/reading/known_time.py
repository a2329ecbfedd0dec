"""Dashboard: the existing clusters, and how far each is known according to ``Freshness``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal, TypeAlias

import msgspec

from dashboard.reading.questions import Reading
from streaming.stores.failure import is_unreadable
from streaming.tables.schema import Row
from streaming.terminal.format import count
from streaming.views.freshness import ClusterFreshness
from streaming.views.known_clusters import known_clusters
from streaming.views.known_clusters import newest_by_cluster as newest_in_tables
from streaming.views.unwritten_findings import platform_findings, unwritten_rows
from udfs.shard.source_gaps import KIND

Headline: TypeAlias = Literal["live", "blind", "recording"]


class UnknownError(Exception):
    """The present is not known."""


def newest_by_cluster(reading: Reading) -> dict[str, int | None]:
    """Return each cluster of the tables with the event time of its newest rebalance or finding, or None."""

    def compute() -> bytes:
        return msgspec.json.encode(newest_in_tables(reading.tables))

    kept = reading.kept("newest", ["groups", "topics", "findings"], compute)
    return msgspec.json.decode(kept, type=dict[str, int | None])


def cluster_names(reading: Reading) -> list[str]:
    """Return the clusters that the tables or a job know, by name."""
    known = reading.freshness.clusters

    def compute() -> bytes:
        return msgspec.json.encode(sorted(known_clusters(reading.tables)))

    try:
        named = msgspec.json.decode(reading.kept("clusters", ["groups", "topics", "findings"], compute), type=list[str])
        return sorted({*named, *known})
    except Exception as error:
        # A command ends with the first table that cannot be read, so that an unresponsive store is waited for only
        # once.
        if not (reading.tables.is_followed and is_unreadable(error)):
            raise
        # The tables cannot be read, but the jobs' liveness was.
        return sorted(known)


def blind_clusters(reading: Reading) -> list[ClusterFreshness]:
    """Return the clusters whose present is not, or not wholly, known; if there is no cluster yet, say so and why."""
    names = cluster_names(reading)
    return reading.freshness.blind(names) if names else [reading.freshness.nothing()]


def nothing_to_list(reading: Reading, cluster: str | None = None) -> str:
    """Return why no group is listed: none matches, or none is known yet, for which clusters, and what to do next.

    Args:
        cluster: Only its groups were to be listed.
    """
    if number := reading.columns("groups", ["cluster"], {"cluster": cluster}).num_rows:
        unknown = unknown_clusters(reading) if cluster is None else ()
        of_unknown = f"; the present of {', '.join(unknown[:3])} is unknown, --health unknown lists their groups"
        return f"none of {count(number, 'group')} fits these filters{of_unknown if unknown else ''}"
    clusters = cluster_names(reading)
    if not clusters:
        return "no group yet: no cluster has been read; start `run` with --kafka, --rocketmq, --metaq or --events"
    return (
        f"no group yet: {', '.join(clusters)} {'is' if len(clusters) == 1 else 'are'} followed, and no group was"
        " observed there; groups appear once a consumer joins or commits, unless --include-group or --exclude-group"
        " leave them out"
    )


def unknown_clusters(reading: Reading) -> tuple[str, ...]:
    """Return the clusters whose state is unknown, by name."""
    return tuple(name for name in cluster_names(reading) if reading.freshness.of(name).state == "unknown")


def known_end(reading: Reading, cluster: str, now_ms: int) -> int | None:
    """Return how far a cluster is known: now, its last knowledge, or a recording's end; None if nothing is known."""
    found = reading.freshness.of(cluster)
    if found.state in ("known", "partly_known"):
        return now_ms
    if found.state == "unknown" and found.known_until is not None:
        return found.known_until
    newest = newest_by_cluster(reading).get(cluster)
    return max((at for at in (found.known_until, newest) if at is not None), default=None)


def headline(reading: Reading) -> Headline:
    """Return in one word whether pages show the present."""
    if blind_clusters(reading):
        return "blind"
    states = {reading.freshness.of(name).state for name in cluster_names(reading)}
    return "recording" if states == {"recording"} else "live"


def unwritten_findings(reading: Reading) -> list[Row]:
    """Return findings that no job can write, as open rows of ``findings``: that none is alive, or learns nothing."""
    of_pods = platform_findings(reading.tables.platforms)
    names = cluster_names(reading)
    if not reading.freshness.blind(names):
        return of_pods
    rows = reading.tables.rows("findings", where={"kind": KIND}, keep=lambda found: found["closed_at"].is_null())
    return [*unwritten_rows(reading.freshness, rows, newest_by_cluster(reading)), *of_pods]


def job_rows(reading: Reading) -> list[Row]:
    """Return what is known of each job, the one that last reported first."""
    return [asdict(job) for job in reading.freshness.jobs]


def present_rows(reading: Reading) -> list[Row]:
    """Return what is known of the present of each cluster, by name."""
    return [reading.freshness.of(name).row for name in cluster_names(reading)]
