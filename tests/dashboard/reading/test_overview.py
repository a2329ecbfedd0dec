"""Every group with its health and its rebalances, as the story has them."""

from __future__ import annotations

import pytest

from dashboard.reading.churn import churn
from dashboard.reading.listing_query import plain_rows
from dashboard.reading.overview import clusters, hours, overview
from dashboard.reading.questions import Reading


def by_group(reading: Reading) -> dict[tuple[str, str], dict[str, object]]:
    return {(row["cluster"], row["group_id"]): row for row in plain_rows(overview(reading))}


def test_a_group_has_the_worst_of_its_findings_and_its_rebalances(reading: Reading) -> None:
    orders = by_group(reading)["c1", "orders"]
    assert (orders["health"], orders["open_findings"], orders["finding_kinds"]) == ("warning", 1, "expected_differs")
    assert (orders["rebalances_hour"], orders["rebalances_day"], orders["queues_moved_day"]) == (3, 3, 2)


def test_a_group_without_findings_is_well(reading: Reading) -> None:
    assert by_group(reading)["c2", "popping"]["health"] == "ok"
    assert by_group(reading)["c2", "popping"]["rebalances_day"] == 0


def test_clusters_are_sums_of_their_groups(reading: Reading) -> None:
    rows = {row["cluster"]: row for row in plain_rows(clusters(reading))}
    assert {name: (row["groups"], row["in_trouble"], row["open_findings"]) for name, row in rows.items()} == {
        "c1": (2, 1, 1),
        "c2": (2, 0, 0),
    }


@pytest.mark.parametrize(("cluster", "count"), [(None, 3), ("c1", 3), ("c2", 0)])
def test_churn_counts_the_rebalances_of_each_hour(reading: Reading, cluster: str | None, count: int) -> None:
    assert sum(row["rebalances"] for row in plain_rows(churn(reading, cluster=cluster))) == count


def test_hours_are_kept_for_the_version(reading: Reading) -> None:
    assert hours(reading) is hours(reading)
