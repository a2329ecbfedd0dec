"""Clusters, with whether their present is known."""

from __future__ import annotations

from dashboard.reading.cluster_rows import cluster_rows
from dashboard.reading.questions import Reading


def test_a_cluster_of_a_recording_says_so(reading: Reading) -> None:
    texts = {row["cluster"]: row["freshness"] for row in cluster_rows(reading)}
    assert texts == dict.fromkeys(("c1", "c2"), "a recording that ends at 2026-01-01T00:00:00Z")
