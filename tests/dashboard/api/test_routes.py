"""The API answers with what the tables of the story hold."""

from __future__ import annotations

import csv
import io

import pytest
from fastapi.testclient import TestClient

from dashboard.reading.listings import LISTINGS
from tests.streaming.views.story import FIRST, SECOND, THIRD


def test_a_listing_continues_with_its_cursor(client: TestClient) -> None:
    first = client.get("/api/v1/rebalances?limit=2").json()
    second = client.get("/api/v1/rebalances", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [row["rebalance_id"] for row in first["rows"] + second["rows"]] == [THIRD, SECOND, FIRST]
    assert (first["total"], second["next_cursor"]) == (3, None)


@pytest.mark.parametrize("name", LISTINGS)
def test_every_listing_is_json_and_csv(client: TestClient, name: str) -> None:
    rows = client.get(f"/api/v1/{name}").json()["rows"]
    lines = list(csv.reader(io.StringIO(client.get(f"/api/v1/{name}?format=csv").text, newline="")))
    assert tuple(lines[0]) == LISTINGS[name].columns
    assert len(lines) == len(rows) + 1


def test_one_rebalance_has_its_causes_and_sides(client: TestClient) -> None:
    found = client.get(f"/api/v1/rebalances/{THIRD}").json()
    assert found["rebalance"]["event_time"].endswith("Z")
    assert {side["member_id"] for side in found["sides"]} == {"a", "b"}


def test_charts_have_their_data(client: TestClient) -> None:
    assert sum(row["rebalances"] for row in client.get("/api/v1/churn").json()["rows"]) == 3
    assert client.get("/api/v1/delays").json()["rows"][0]["median_ms"] == 3_000
    assert [row["cluster"] for row in client.get("/api/v1/clusters").json()["rows"]] == ["c1", "c2"]
    asked = {"cluster": "c1", "group_id": "orders", "origin": "computed"}
    assert len(client.get("/api/v1/timeline", params=asked).json()["spans"]) == 4
    text = client.get("/api/v1/timeline", params={**asked, "format": "csv"}).text
    assert text.splitlines()[0] == "queue,member_id,valid_from,valid_to"
    assert len(text.splitlines()) == 5


def test_the_contract_names_every_route(client: TestClient) -> None:
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    assert {"/api/v1/{listing}", "/api/v1/timeline", "/api/v1/rebalances/{rebalance_id}", "/v3/kafka"} <= set(paths)
    assert not any(path.startswith(("/login", "/static", "/live")) for path in paths)
