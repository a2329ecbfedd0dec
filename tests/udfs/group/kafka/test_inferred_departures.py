"""How members departed, concluded from commits; a session timeout is 6 s, a third of it 2 s."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import Script, assigned
from udfs.model.events import GroupSnapshot
from udfs.model.journal import Trigger


def departure(commits: dict[int, list[int]], at: int = 20_000, preparing_at: int | None = None) -> Trigger:
    """Return the cause of a generation without ``a``, which owned queue 0; ``b`` owned 1 and ``c`` 2."""
    script = Script()
    script.queues(0, "t", 3)
    described = {one: {"session_timeout_ms": 6_000} for one in "abc"}
    members = {one: ["t"] for one in "abc"}
    script.snapshot(1_000, 1, members, assigned(a="0", b="1", c="2"), described, strategy="range")
    for queue, times in commits.items():
        for time in times:
            script.commit(time, "t", queue)
    if preparing_at is not None:
        script.event(GroupSnapshot, preparing_at, state="PreparingRebalance")
    left = {"b": ["t"], "c": ["t"]}
    script.snapshot(at, 2, left, assigned(b="0 1", c="2"), strategy="range")
    (trigger,) = script.run(at + 10_000).rebalances[1].triggers
    return trigger


@pytest.mark.parametrize(
    ("what", "commits", "kind"),
    [
        ("it commits to the end", {0: [19_000], 1: [19_500], 2: [19_800]}, "member_left"),
        ("the others go on for a session timeout", {0: [13_500], 1: [19_500], 2: [19_400]}, "session_expired"),
        ("one rejoins at once, another after long", {0: [10_000], 1: [10_300], 2: [19_500]}, "member_left"),
        ("the others stopped long before: idle", {0: [13_000], 1: [5_000], 2: [6_000]}, "member_gone"),
        ("one is idle, one goes on", {0: [13_000], 1: [2_000], 2: [19_500]}, "session_expired"),
        ("the others never commit", {0: [13_000]}, "session_expired"),
        ("it never commits itself", {1: [19_500], 2: [19_600]}, "member_gone"),
        ("between the two", {0: [15_000], 1: [19_500], 2: [19_600]}, "member_gone"),
    ],
)
def test_commits_of_the_others_show_when_the_rebalance_began(
    what: str, commits: dict[int, list[int]], kind: str
) -> None:
    assert departure(commits).kind == kind, what


def test_the_detail_has_the_evidence() -> None:
    assert departure({0: [13_000], 1: [19_500], 2: [19_600]}).detail == (
        "inferred: last commit 7000 ms before the rebalance, session timeout 6000 ms"
    )
    assert departure({0: [10_000], 1: [10_300], 2: [19_500]}).detail == (
        "inferred: last commit 10000 ms before the rebalance, session timeout 6000 ms; others stopped 300 ms after it"
    )


def test_a_rebalance_that_a_poll_shows_under_way_began_by_then() -> None:
    """Every other member is slow to rejoin, and commits when it does: their commits do not show the beginning."""
    commits = {0: [10_000], 1: [19_900], 2: [19_900]}
    assert departure(commits).kind == "session_expired"
    assert departure(commits, preparing_at=12_000).kind == "member_left"
    assert departure(commits, preparing_at=16_500).kind == "session_expired"
