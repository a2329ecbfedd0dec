"""OpenAPI states exactly what the API takes and answers."""

from __future__ import annotations

from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from dashboard.api.contract import columns_of, row_schema, type_schema
from dashboard.questions.catalog import questions
from dashboard.reading.listings import LISTINGS
from dashboard.reading.questions import Reading
from streaming.tables.schema import TABLES
from tests.streaming.views.story import THIRD

OF_GROUP = "cluster=c1&group_id=orders"
ADDRESSES = {
    **{f"/api/v1/{name}": f"/api/v1/{name}?limit=1" for name in LISTINGS},
    **{f"/api/v1/questions/{name}": f"/api/v1/questions/{name}" for name in questions()},
    **{
        f"/api/v1/{name}": f"/api/v1/{name}"
        for name in ("clusters", "liveness", "churn", "fleet", "delays", "questions")
    },
    "/api/v1/search": "/api/v1/search?q=orders",
    **{f"/api/v1/{name}": f"/api/v1/{name}?{OF_GROUP}" for name in ("timeline", "progress", "group-advice")},
    "/api/v1/lag": f"/api/v1/lag?{OF_GROUP}",
    "/api/v1/topic": "/api/v1/topic?cluster=c1&topic=orders",
    "/api/v1/rebalances/{rebalance_id}": f"/api/v1/rebalances/{THIRD}",
}


@pytest.fixture(scope="module")
def contract(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/api/v1/openapi.json").json()
    return found


def test_every_address_of_the_api_is_stated_and_none_else(contract: dict[str, Any]) -> None:
    assert {path for path in contract["paths"] if path.startswith("/api/")} == set(ADDRESSES)


@pytest.mark.parametrize("path", ADDRESSES)
def test_an_answer_is_what_the_contract_states(client: TestClient, contract: dict[str, Any], path: str) -> None:
    operation = contract["paths"][path]["get"]
    needed = (
        "?topic=orders&queue=1"
        if "topic" in (parameter["name"] for parameter in operation.get("parameters", ()))
        else ""
    )
    answer = client.get(ADDRESSES[path] + (needed if "?" not in ADDRESSES[path] else ""))
    assert answer.status_code == 200
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    assert schema["required"]
    checker = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    checker.validate(answer.json())
    row = schema["properties"].get("rows", {}).get("items", {}).get("properties")
    if row is not None:
        assert all(set(given_row) == set(row) for given_row in answer.json()["rows"])
    refused = client.get(f"{path.replace('{rebalance_id}', 'none')}?colour=red")
    stated = operation["responses"]["4XX"]["content"]["application/json"]["schema"]
    assert refused.status_code == 400
    jsonschema.Draft202012Validator(stated).validate(refused.json())
    assert "422" not in operation["responses"]


@pytest.mark.parametrize("path", ADDRESSES)
def test_the_stated_parameters_are_those_that_are_taken(
    client: TestClient, contract: dict[str, Any], path: str
) -> None:
    operation = contract["paths"][path]["get"]
    stated = [parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"]
    message = client.get(f"{path.replace('{rebalance_id}', 'none')}?colour=red").json()["message"]
    taken = message.partition("it takes ")[2]
    assert sorted(stated) == sorted(taken.split(", ")) or (taken, stated) == ("none", [])
    for parameter in operation.get("parameters", ()):
        for value in parameter["schema"].get("items", {}).get("enum", ()):
            if path.removeprefix("/api/v1/") in LISTINGS:
                assert client.get(path, params={parameter["name"]: value}).status_code == 200


@pytest.mark.parametrize("name", LISTINGS)
def test_types_of_a_listing_are_those_of_its_rows(reading: Reading, name: str) -> None:
    listing = LISTINGS[name]
    rows = listing.rows(reading, {})
    assert [column.name for column in columns_of(listing)] == [*listing.names]
    assert all(column.comment for column in listing.added)
    for column in columns_of(listing)[: len(listing.columns)]:
        assert type_schema(column.type) == type_schema(rows.schema.field(column.name).type), column.name
        assert column.comment


def test_every_type_of_a_column_has_its_schema() -> None:
    for table in TABLES.values():
        jsonschema.Draft202012Validator.check_schema(row_schema(table.columns))
    assert type_schema(pa.list_(pa.struct([("a", pa.int64()), ("b", pa.bool_())]))) == {
        "type": "array",
        "items": {
            "type": ["object", "null"],
            "properties": {"a": {"type": ["integer", "null"]}, "b": {"type": ["boolean", "null"]}},
        },
    }


def test_a_question_states_what_it_needs(contract: dict[str, Any]) -> None:
    found = contract["paths"]["/api/v1/questions/who-owned"]["get"]["parameters"]
    assert [parameter["name"] for parameter in found if parameter["required"]] == ["topic", "queue"]
