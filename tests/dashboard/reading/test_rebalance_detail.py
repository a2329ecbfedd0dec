"""One rebalance of the story, with both sides."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from dashboard.reading.questions import Reading
from dashboard.reading.rebalance_detail import rebalance_detail
from streaming.settings.model import Dashboard
from streaming.tables.errors import NotFoundError
from streaming.views.reader import Reader
from tests.streaming.views.reconciled_story import RECONCILED, write_reconciled
from tests.streaming.views.story import SECOND, THIRD
from tests.streaming.views.test_siblings import write as write_siblings


@pytest.mark.parametrize("prefix", [THIRD, THIRD[:2]])
def test_members_before_and_after_computed_beside_reported(reading: Reading, prefix: str) -> None:
    found = rebalance_detail(reading.tables, prefix)
    sides = {side.pop("member_id"): side for side in found["sides"]}
    assert sides["a"]["computed_before"] == "orders(0)"
    assert sides["a"]["computed_after"] == "-"
    assert sides["b"]["computed_before"] == "orders(1)"
    assert sides["b"]["computed_after"] == "orders(0,1)"
    assert sides["b"]["reported_after"] == "orders(1)"
    assert sides["b"]["differs"]
    assert found["changed"] == 2
    assert [move["queue_id"] for move in found["moves"]["computed"]] == [0]
    assert found["causes"][0]["host"] == "h1"


def test_an_id_that_is_not_there_is_named(reading: Reading) -> None:
    with pytest.raises(NotFoundError, match="nosuch"):
        rebalance_detail(reading.tables, "nosuch")


def test_members_reported_before_what_they_had_when_the_epoch_began(tmp_path: Path) -> None:
    write_reconciled(tmp_path)
    found = rebalance_detail(Reader(tmp_path), RECONCILED)
    names = ("member_id", "reported_before", "reported_after")
    assert [tuple(side[name] for name in names) for side in found["sides"]] == [
        ("a", "orders(0,1,2)", "orders(0,1)"),
        ("b", "orders(3,4,5)", "orders(3,4)"),
        ("c", "-", "orders(2,5)"),
    ]
    owners = [
        [(move["queue_id"], move["before"], move["after"]) for move in found["moves"][origin]]
        for origin in ("reported", "computed")
    ]
    assert owners[0] == owners[1]


def test_a_departure_has_what_became_of_the_same_client_in_other_groups(tmp_path: Path, settings: Dashboard) -> None:
    write_siblings(tmp_path)
    found = rebalance_detail(Reader(tmp_path), "r2")
    text = "the same client in 2 other groups: its session ended with it in 1, went on in 1 (inferred)"
    assert [cause["siblings_text"] for cause in found["causes"]] == [text]
    with TestClient(create_app(tmp_path, settings)) as client:
        page = client.get("/rebalance", params={"id": "r2"}).text
    assert text in page


def test_a_cause_that_is_no_departure_has_nothing_of_other_groups(reading: Reading) -> None:
    assert [cause["siblings_text"] for cause in rebalance_detail(reading.tables, SECOND)["causes"]] == [None]
