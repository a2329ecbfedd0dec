"""Pages that cannot be shown say why in words."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/group?cluster=c1&group=nobody", 404, "there is no group nobody"),
        ("/group", 400, "cluster"),
        ("/rebalance?id=nosuch", 404, "nosuch"),
        ("/member?member=nobody", 404, "there is no member nobody"),
        ("/?sort=colour", 400, "colour"),
        ("/?colour=red", 400, "colour"),
        ("/nothing-here", 404, "there is no such page"),
        ("/api/v1/nothing", 400, "nothing"),
        ("/api/v1/groups?limit=0", 400, "limit"),
        ("/api/v1/groups?cursor=x", 400, "cursor"),
        ("/v3/kafka/nowhere", 404, "nowhere"),
    ],
)
def test_an_error_has_its_status_and_its_sentence(client: TestClient, path: str, status: int, sentence: str) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert sentence in answer.text
    is_api = path.startswith(("/api", "/v3"))
    assert answer.headers["content-type"].startswith("application/json" if is_api else "text/html")


def test_a_parameter_is_text_in_the_answer(client: TestClient) -> None:
    text = client.get("/member?member=<script>alert(1)</script>").text
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text
