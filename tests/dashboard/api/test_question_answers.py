"""The ready questions in the API."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from dashboard.questions.catalog import DIALECTS, questions


def test_the_list_has_parameters_and_sql(client: TestClient) -> None:
    found = client.get("/api/v1/questions").json()
    assert [row["name"] for row in found["rows"]] == list(questions())
    assert all(set(row["sql"]) == set(DIALECTS) for row in found["rows"])


def test_an_answer_is_json_or_csv(client: TestClient) -> None:
    found = client.get("/api/v1/questions/most-rebalances?cluster=c1").json()
    (row,) = found["rows"]
    assert (row["group_id"], row["rebalances"], row["last_rebalance_at"]) == ("orders", 3, "2026-01-01T00:01:10.000Z")
    assert list(row) == found["columns"]
    text = client.get("/api/v1/questions/most-rebalances?format=csv").text
    assert text.splitlines()[0] == ",".join(found["columns"])
    assert text.splitlines()[1].endswith("2026-01-01T00:01:10.000Z")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("nonsense", 404),
        ("who-owned", 400),
        ("most-rebalances?nonsense=1", 400),
        ("most-rebalances?limit=1&limit=2", 400),
        ("?nonsense=1", 400),
    ],
)
def test_a_request_that_cannot_be_answered_has_its_status(client: TestClient, path: str, status: int) -> None:
    assert client.get(f"/api/v1/questions/{path}".replace("/?", "?")).status_code == status
