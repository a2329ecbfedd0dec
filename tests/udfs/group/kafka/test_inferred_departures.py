"""How members departed, concluded from commits; a session timeout is 6 s, a third of it 2 s."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import Script, assigned
from udfs.model.events import GroupSnapshot
from udfs.model.journal import Trigger


def departure(
    commits: dict[int, list[int]], at: int = 20_000, preparing_at: int | None = None, left: str = "bc"
) -> Trigger:
    """Return the cause of a generation without ``a``, which owned queue 0; ``b`` owned 1 and ``c`` 2.

    Args:
        left: Its members.
    """
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
    given = assigned(**dict(zip(left, ("0 1", "2", "")[: len(left)], strict=True)))
    script.snapshot(at, 2, {one: ["t"] for one in left}, given, strategy="range")
    (trigger,) = (one for one in script.run(at + 10_000).rebalances[1].triggers if one.member_id == "a")
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
    # It began after the poll was sent, and before the coordinator replied.
    assert departure(commits, preparing_at=15_600).kind == "session_expired"
    assert departure(commits, preparing_at=15_400).kind == "member_gone"


@pytest.mark.parametrize(
    ("what", "left", "kinds"),
    [
        ("one joins", "bcd", ("member_gone", "member_left")),
        ("another one is gone, too", "b", ("member_gone", "member_left")),
        ("nobody stays", "", ("member_gone", "member_left")),
        ("it alone is gone", "bc", ("member_left", "member_left")),
    ],
)
def test_one_that_died_before_a_rebalance_of_another_cause_is_waited_for(
    what: str, left: str, kinds: tuple[str, str]
) -> None:
    """Its session of 6 s ends while the others wait: that it was silent for less when it began says nothing."""
    found = []
    for last in (10_000, 11_500):
        commits = {0: [last], 1: [11_900], 2: [11_900]}
        found.append(departure(commits, at=16_000, preparing_at=12_000, left=left).kind)
    assert tuple(found) == kinds, what
