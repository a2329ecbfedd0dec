"""`explain` names the pod of a member that departed, and what befell it before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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
