"""Dashboard: clusters in the form that pages and API show."""

from __future__ import annotations

from dashboard.reading.listing_query import plain_rows
from dashboard.reading.overview import clusters
from dashboard.reading.questions import Reading
from streaming.tables.schema import Row


def cluster_rows(reading: Reading) -> list[Row]:
    """Return one row per cluster, as in ``clusters``, with a phrase on whether its present is known."""
    freshness = reading.freshness
    return [row | {"freshness": freshness.of(row["cluster"]).text} for row in plain_rows(clusters(reading))]
