"""Metrics of known clusters: a sum of clusters counts as known while all of them are."""

from __future__ import annotations

import pyarrow as pa

from dashboard.metrics.group_labels import GroupLabels
from dashboard.metrics.known_sources import known_rows, of_knowledge, unknown_of
from streaming.views.freshness import ClusterFreshness, Freshness
from tests.dashboard.metrics.test_group_labels import metrics

FOUND = Freshness(
    {
        "a": ClusterFreshness("a", "kafka", "known", 1_000),
        "b": ClusterFreshness("b", "kafka", "unknown", 3_000, "it is away"),
        "c": ClusterFreshness("c", "kafka", "unknown", 2_000, "it is away"),
        "d": ClusterFreshness("d", "kafka", "partly_known", 9_000, "a broker is away"),
        "e": ClusterFreshness("e", "kafka", "recording", 9_000),
    }
)


def test_the_worst_state_of_summed_clusters_counts() -> None:
    groups = GroupLabels([], ["a"], metrics(max_clusters=1))
    families = {family.name: family for family in of_knowledge(FOUND, ["a", "unsigned"], groups, "")}
    values = {
        name: {tuple(sample.labels.values()): sample.value for sample in found.samples}
        for name, found in families.items()
    }
    assert values == {
        "source_known": {("a",): 1, ("other",): 0},
        "source_blind_since_timestamp_seconds": {("other",): 2},
        "jobs_alive": {(): 0},
    }


def test_each_state_as_a_number() -> None:
    groups = GroupLabels([], FOUND.clusters, metrics())
    found = next(iter(of_knowledge(FOUND, (), groups, "")))
    assert [sample.value for sample in found.samples] == [1, 0, 0, 0, 1]


def test_rows_of_unknown_clusters_are_left_out() -> None:
    rows = pa.table({"cluster": ["a", "b", "d", None, "x"]})
    unknown = unknown_of(FOUND, ["a", "x"])
    assert unknown == {"b", "c", "x"}
    assert known_rows(rows, unknown)["cluster"].to_pylist() == ["a", "d", None]
    assert known_rows(rows, ()) is rows
