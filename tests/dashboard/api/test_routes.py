"""The API answers with what the tables of the story hold."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from dashboard.reading.listings import LISTINGS
from streaming.settings.model import Dashboard
from tests.browser.day_tables import rebalance, write_rows
from tests.streaming.tables.journals import T0
from tests.streaming.views.story import FIRST, SECOND, THIRD


@pytest.fixture(scope="module")
def whole(whole_tables: Path, settings: Dashboard) -> Iterator[TestClient]:
    with TestClient(create_app(whole_tables, settings)) as client:
        yield client


def test_a_listing_continues_with_its_cursor(client: TestClient) -> None:
    first = client.get("/api/v1/rebalances?limit=2").json()
    second = client.get("/api/v1/rebalances", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [row["rebalance_id"] for row in first["rows"] + second["rows"]] == [THIRD, SECOND, FIRST]
    assert (first["total"], second["next_cursor"]) == (3, None)


def test_a_file_leads_to_the_rows_after_it(client: TestClient) -> None:
    first = client.get("/api/v1/rebalances?limit=2&format=csv&q=order")
    assert first.headers["x-total-count"] == "3"
    second = client.get(first.links["next"]["url"])
    rows = [row for answer in (first, second) for row in csv.DictReader(io.StringIO(answer.text, newline=""))]
    assert [row["rebalance_id"] for row in rows] == [THIRD, SECOND, FIRST]
    assert (second.links, second.headers["x-total-count"]) == ({}, "3")


def test_a_cut_answer_states_its_total(tmp_path: Path, settings: Dashboard) -> None:
    rows = [rebalance("c", f"g{n % 3}", f"r{n}", T0 - n * 1_800_000, "m") for n in range(9)]
    write_rows(tmp_path, "rebalances", rows)
    write_rows(tmp_path, "groups", [{"cluster": "c", "group_id": "g0", "system": "kafka", "last_rebalance_at": T0}])
    with TestClient(create_app(tmp_path, settings)) as client:
        for path, least in (
            ("churn", 9),
            ("delays", 4),
            ("questions/most-rebalances", 3),
        ):
            whole = client.get(f"/api/v1/{path}").json()
            assert len(whole["rows"]) == whole["total"] >= least
            cut = client.get(f"/api/v1/{path}?limit=1").json()
            assert len(cut["rows"]) < cut["total"] == whole["total"]
            assert client.get(f"/api/v1/{path}?limit=1&format=csv").headers["x-total-count"] == str(whole["total"])


@pytest.mark.parametrize("name", LISTINGS)
def test_every_listing_is_json_and_csv(whole: TestClient, name: str) -> None:
    rows = whole.get(f"/api/v1/{name}").json()["rows"]
    lines = list(csv.reader(io.StringIO(whole.get(f"/api/v1/{name}?format=csv").text, newline="")))
    assert tuple(lines[0]) == LISTINGS[name].names
    assert len(lines) == len(rows) + 1 > 2


def test_one_rebalance_has_its_causes_and_sides(client: TestClient) -> None:
    found = client.get(f"/api/v1/rebalances/{THIRD}").json()
    assert found["rebalance"]["event_time"].endswith("Z")
    assert {side["member_id"] for side in found["sides"]} == {"a", "b"}
    (row,) = csv.DictReader(io.StringIO(client.get(f"/api/v1/rebalances/{THIRD[:8]}?format=csv").text, newline=""))
    assert tuple(row) == LISTINGS["rebalances"].columns
    assert (row["rebalance_id"], row["event_time"]) == (THIRD, found["rebalance"]["event_time"])


def test_charts_have_their_data(client: TestClient) -> None:
    assert sum(row["rebalances"] for row in client.get("/api/v1/churn").json()["rows"]) == 3
    assert client.get("/api/v1/delays").json()["rows"][0]["median_ms"] == 3_000
    assert [row["cluster"] for row in client.get("/api/v1/clusters").json()["rows"]] == ["c1", "c2"]
    requested = {"cluster": "c1", "group_id": "orders", "origin": "computed"}
    assert len(client.get("/api/v1/timeline", params=requested).json()["spans"]) == 4
    text = client.get("/api/v1/timeline", params={**requested, "format": "csv"}).text
    assert text.splitlines()[0] == "queue,member_id,valid_from,valid_to"
    assert len(text.splitlines()) == 5


@pytest.mark.parametrize("name", LISTINGS)
def test_an_unknown_parameter_of_a_listing_is_refused_with_the_known_ones(client: TestClient, name: str) -> None:
    taken = ", ".join((*LISTINGS[name].parameters, "sort", "limit", "cursor", "format"))
    for other in ("colour", "page", "offset", *(() if LISTINGS[name].times else ("since", "until"))):
        for value in ("5", ""):
            answer = client.get(f"/api/v1/{name}", params={other: value})
            assert answer.status_code == 400
            assert answer.json()["message"] == f"/api/v1/{name} does not take '{other}'; it takes {taken}"


@pytest.mark.parametrize("name", LISTINGS)
def test_every_parameter_of_a_listing_has_an_effect(whole: TestClient, name: str) -> None:
    wide = {} if not LISTINGS[name].times else {"since": "0"}
    total = whole.get(f"/api/v1/{name}", params=wide).json()["total"]
    assert total > 1
    for parameter in LISTINGS[name].parameters:
        value = {"since": "4102444800000", "until": "0", "at": "0"}.get(parameter, "no such value")
        if parameter in LISTINGS[name].values:
            assert whole.get(f"/api/v1/{name}", params=wide | {parameter: value}).status_code == 400
            continue
        found = whole.get(f"/api/v1/{name}", params=wide | {parameter: value}).json()["total"]
        # Open rows have no end; of each kind of span, one has ended.
        assert 0 < found < total if parameter == "since" and len(LISTINGS[name].times) == 2 else found == 0


@pytest.mark.parametrize(
    ("path", "other", "taken"),
    [
        ("clusters", "cluster", "format"),
        ("churn?cluster=c1", "topic", "cluster, group_id, since, until, format, limit"),
        ("delays?limit=5", "cluster", "format, limit"),
        ("timeline?cluster=c1&group_id=orders", "q", "cluster, group_id, since, until, origin, format"),
        ("progress?cluster=c1&group_id=orders", "topic", "cluster, group_id, format"),
        (f"rebalances/{THIRD}", "limit", "format"),
    ],
)
def test_other_addresses_refuse_unknown_parameters(client: TestClient, path: str, other: str, taken: str) -> None:
    address = f"/api/v1/{path}"
    assert client.get(address).status_code == 200
    answer = client.get(f"{address}{'&' if '?' in path else '?'}{other}=c1")
    assert answer.status_code == 400
    assert answer.json()["message"] == f"{address.split('?')[0]} does not take '{other}'; it takes {taken}"


def test_a_parameter_that_is_given_twice_is_refused(client: TestClient) -> None:
    answer = client.get("/api/v1/groups?cluster=c1&cluster=c2")
    assert answer.status_code == 400
    assert answer.json()["message"] == "cluster is given more than once; /api/v1/groups takes one value of it"


def test_an_unknown_listing_is_refused_with_the_known_ones(client: TestClient) -> None:
    answer = client.get("/api/v1/nothing?colour=red")
    assert answer.status_code == 400
    assert answer.json()["message"] == f"'nothing' is not one of {', '.join(LISTINGS)}"


def test_an_old_rebalance_is_found_by_its_id(client: TestClient) -> None:
    # A parameter with an empty value counts as absent.
    found = client.get("/api/v1/rebalances", params={"rebalance_id": FIRST, "cluster": "", "since": ""}).json()
    assert [row["rebalance_id"] for row in found["rows"]] == [FIRST]


def test_the_contract_names_every_route(client: TestClient) -> None:
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    assert {*(f"/api/v1/{name}" for name in LISTINGS)} <= set(paths)
    assert {"/api/v1/timeline", "/api/v1/rebalances/{rebalance_id}", "/v3/kafka"} <= set(paths)
    assert not any(path.startswith(("/login", "/static", "/live")) for path in paths)
