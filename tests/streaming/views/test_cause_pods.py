"""`explain` names the pod of a member that departed, and what befell it before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dashboard.app import create_app
from streaming.settings.model import load
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.journal_entries import RowFilter
from streaming.tables.schema import MEMBERS
from streaming.tables.writer import Edit, Mark
from streaming.views.reader import Reader
from tests.streaming.tables.journals import T0
from tests.streaming.views.annotated_story import annotate, annotation
from tests.streaming.views.story import FIRST, THIRD, json_of, run, write_story

ABOUT = {
    "platform": "k",
    "pod": "orders-7d9f",
    "namespace": "shop",
    "workload": "deployment orders",
    "revision": "42",
    "node": "worker-3",
    "image": "shop/orders:2.4.1",
}
NAME = "pod orders-7d9f (deployment orders, revision 42, node worker-3)"
LIFE = annotation(
    "u/pod/h1", -9_000, kind="pod", text=f"{NAME} has the address h1", hosts=["h1", "orders-7d9f"], **ABOUT
)
FOLLOWED = annotation("pods_followed/k", -10_000, 900_000, kind="pods_followed", text="known", platform="k")
KILLED = annotation(
    "u/container_ended/app/1",
    25_200,
    25_200,
    kind="container_ended",
    text=f"{NAME} was OOMKilled (container app, exit code 137)",
    hosts=["h1", "orders-7d9f"],
    **ABOUT,
)


@pytest.fixture
def story(tmp_path: Path) -> Path:
    write_story(tmp_path)
    return tmp_path


def cause(story: Path, name: str = THIRD) -> Any:
    """Return the first cause of a rebalance, as JSON."""
    return json_of(story, "explain", name)[0]["causes"][0]


def test_without_annotations_no_pod_is_named(story: Path) -> None:
    assert (cause(story)["pod"], cause(story)["pod_text"]) == (None, None)


def test_a_cause_names_what_befell_its_pod_and_how_long_before(story: Path) -> None:
    annotate(story, LIFE, FOLLOWED, KILLED)
    text = f"{NAME} was OOMKilled (container app, exit code 137) 44.8 s before its session expired"
    found = cause(story)
    assert {name: found[name] for name in ("pod", "workload", "node")} == {
        "pod": "orders-7d9f",
        "workload": "deployment orders",
        "node": "worker-3",
    }
    assert found["pod_text"] == text
    assert text in run(story, "explain", THIRD).stdout


def test_where_nothing_befell_it_the_pod_is_named(story: Path) -> None:
    annotate(story, LIFE, FOLLOWED)
    assert cause(story)["pod_text"] == f"it ran in {NAME} with image shop/orders:2.4.1"


def test_what_befell_the_pod_after_the_member_was_gone_or_another_pod_is_not_named(story: Path) -> None:
    other = KILLED | {"annotation_id": "v", "pod": "orders-other"}
    later = KILLED | {"annotation_id": "w", "began_at": T0 + 70_001, "ended_at": T0 + 70_001}
    annotate(story, LIFE, FOLLOWED, other, later)
    assert "OOMKilled" not in cause(story)["pod_text"]


def test_lives_are_no_news(story: Path) -> None:
    annotate(story, LIFE, FOLLOWED, KILLED)
    [found] = json_of(story, "explain", THIRD)
    assert [row["kind"] for row in found["annotations"]] == ["container_ended"]


def test_what_befell_a_pod_concerns_no_member_of_the_next_pod_at_its_address(story: Path) -> None:
    former = KILLED | {"pod": "orders-former"}
    annotate(story, LIFE, FOLLOWED, former)
    assert json_of(story, "explain", THIRD)[0]["annotations"] == []


def test_members_are_shown_with_their_pods(story: Path) -> None:
    annotate(story, LIFE, FOLLOWED)
    rows = {row["member_id"]: row for row in json_of(story, "show", "members", "--at", "2026-01-01T00:00:15Z")}
    assert (rows["a"]["pod"], rows["a"]["image"]) == ("orders-7d9f", "shop/orders:2.4.1")
    assert rows["b"]["pod"] is None
    assert "WORKLOAD" in run(story, "show", "members", "--at", "2026-01-01T00:00:15Z", "--wide").stdout
    assert json_of(story, "explain", FIRST)[0]["causes"]


def test_a_group_shows_the_pods_of_its_members_within_80_columns(story: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = run(story, "show", "group", "orders").stdout
    life = LIFE | {"pod": "orders-5b8c7d6f4-" + "x" * 60}
    annotate(story, FOLLOWED, life | {"hosts": ["h2"]})
    [b] = Reader(story).rows("members", where={"member_id": "b"})
    store = DeltaRsTable(story, MEMBERS)
    rows = to_arrow(MEMBERS, [b | {"host": "h2", "address": "h2"}])
    store.merge(lambda: Edit(store.read(RowFilter({"member_id": ["b"]})), rows), Mark("host of b", 1))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("streaming.terminal.output.is_terminal", lambda: True)
    shown = run(story, "show", "group", "orders").stdout
    assert "POD" not in alone
    assert [line for line in shown.splitlines() if " POD " in line and "HOST" not in line]
    assert max(len(line) for line in shown.splitlines() if "  " in line) <= 80
    wide = run(story, "show", "group", "orders", "--wide").stdout
    assert all(text in wide for text in (life["pod"], "deployment orders", "worker-3", "shop/orders:2.4.1", "HOST"))
    assert json_of(story, "show", "group", "orders")[0]["member_list"][0]["node"] == "worker-3"
    with TestClient(create_app(story, load(overrides={"dashboard.allowed_hosts": ["testserver"]}).dashboard)) as client:
        page = client.get("/group?cluster=c1&group=orders").text
    members = page[page.index("<h2>Members</h2>") : page.index("<h2>Queues and their owners</h2>")]
    assert all(text in members for text in (">Pod<", "deployment orders", "worker-3", "shop/orders:2.4.1"))
