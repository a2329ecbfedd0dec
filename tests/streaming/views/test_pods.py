"""A member runs in the pod that had its address when it joined; else in the one whose name it has; or it is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.tables.schema import Row
from streaming.views.pods import Pods

LAST = 1_000


def life(pod: str, began: int, ended: int | None, *hosts: str, written: int = 0, **more: Any) -> Row:
    """Return the life of a pod."""
    about = {"platform": "k", "cluster": None, "pod": pod, "workload": "deployment orders"}
    times = {"began_at": began, "ended_at": ended, "written_at": written or began}
    return {"annotation_id": f"{pod}/{began}", "hosts": list(hosts), **about, **times, **more}


def followed(since: int = 0, until: int = LAST) -> Row:
    """Return since when, and until when, the pods are known."""
    return {"platform": "k", "began_at": since, "ended_at": until}


A, B = life("a-1", 100, 500, "10.0.0.7", "a-1"), life("b-1", 600, None, "10.0.0.7", "b-1")
NODE_MATES = [life("n-1", 100, None, "n-1"), life("n-2", 100, None, "n-2")]
STALE = life("s-1", 100, None, "10.0.0.9")


@pytest.mark.parametrize(
    ("why", "member", "pod"),
    [
        ("its address, then", {"address": "10.0.0.7", "joined_at": 100}, "a-1"),
        ("before that nobody had it", {"address": "10.0.0.7", "joined_at": 99}, None),
        ("until its end", {"address": "10.0.0.7", "joined_at": 499}, "a-1"),
        ("nobody had it between", {"address": "10.0.0.7", "joined_at": 500}, None),
        ("the next one has it", {"address": "10.0.0.7", "joined_at": 600}, "b-1"),
        ("an end that is open holds as long as it is known", {"address": "10.0.0.7", "joined_at": LAST}, "b-1"),
        ("and no longer", {"address": "10.0.0.7", "joined_at": LAST + 1}, None),
        ("as Java writes it", {"host": "/10.0.0.7", "joined_at": 300}, "a-1"),
        ("with the port of RocketMQ", {"host": "10.0.0.7:5123", "joined_at": 300}, "a-1"),
        ("its host name", {"host": "a-1", "joined_at": 300}, "a-1"),
        ("its client id", {"client_id": "n-1", "joined_at": 300}, "n-1"),
        ("its client id begins so", {"client_id": "n-2-StreamThread-1-consumer", "joined_at": 300}, "n-2"),
        ("its instance", {"client_id": "consumer", "instance_id": "n-2", "joined_at": 300}, "n-2"),
        ("the beginning of a name is another name", {"client_id": "n-22-consumer", "joined_at": 300}, None),
        ("its address counts more", {"address": "10.0.0.7", "client_id": "n-1", "joined_at": 300}, "a-1"),
        ("no time, no pod", {"address": "10.0.0.7", "joined_at": None}, None),
        ("another platform's members", {"address": "10.0.0.8", "cluster": "main", "joined_at": 300}, None),
        ("those of its cluster", {"address": "10.0.0.8", "cluster": "other", "joined_at": 300}, "o-1"),
        ("two fit", {"address": "10.0.0.6", "joined_at": 300}, None),
    ],
)
def test_the_pod_of_a_member(why: str, member: Row, pod: str | None) -> None:
    others = [life("o-1", 100, None, "10.0.0.8", cluster="other")]
    both = [life("t-1", 100, None, "10.0.0.6"), life("t-2", 200, None, "10.0.0.6")]
    found = Pods([A, B, *NODE_MATES, *others, *both], [followed()]).of(member)
    assert (None if found is None else found["pod"]) == pod, why


@pytest.mark.parametrize(
    ("horizon", "pod"),
    [([], None), ([followed(until=299)], None), ([followed(since=200)], None), ([followed()], "s-1")],
)
def test_an_open_life_holds_only_while_somebody_watches(horizon: list[Row], pod: str | None) -> None:
    found = Pods([STALE], horizon).of({"address": "10.0.0.9", "joined_at": 300})
    assert (None if found is None else found["pod"]) == pod


def test_a_pod_that_nobody_manages_is_not_found_by_a_client_id() -> None:
    bare = life("orders", 100, None, "10.0.0.5", workload=None)
    assert Pods([bare], [followed()]).of({"client_id": "orders-consumer-1", "joined_at": 300}) is None
