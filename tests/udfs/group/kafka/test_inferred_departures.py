"""How members departed, concluded from commits; a session timeout is 6 s, a third of it 2 s."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import T0, Script, assigned
from tests.udfs.group.record_script import RecordScript
from udfs.model.events import GroupSnapshot
from udfs.model.journal import Trigger


def departure(
    commits: dict[int, list[int]],
    at: int = 20_000,
    preparing_at: int | None = None,
    left: str = "bc",
    ends: dict[int, int] | None = None,
    joined_at: int | None = None,
    rebalance_timeout: int = 300_000,
    step: int = 10,
) -> Trigger:
    """Return the cause of a generation without ``a``, which owned queue 0; ``b`` owned 1 and ``c`` 2.

    Args:
        left: Its members.
        ends: How many messages of a queue are left to commit 1 s before the end. step: From commit to commit.
    """
    script = Script()
    script.queues(0, "t", 3)
    timeouts = {"session_timeout_ms": 6_000, "rebalance_timeout_ms": rebalance_timeout}
    described = dict.fromkeys("abc", timeouts)
    members = {one: ["t"] for one in "abc"}
    script.snapshot(1_000, 1, members, assigned(a="0", b="1", c="2"), described, strategy="range")
    for queue, times in commits.items():
        for number, time in enumerate(times):
            script.observe(time, "t", queue, committed=100 + step * number)
        if queue in (ends or {}):
            script.observe(at - 1_000, "t", queue, end=100 + step * (len(times) - 1) + (ends or {})[queue])
    if preparing_at is not None:
        script.event(GroupSnapshot, preparing_at, state="PreparingRebalance")
    given = assigned(**dict(zip(left, ("0 1", "2", "")[: len(left)], strict=True)))
    end = None if joined_at is None else T0 + joined_at
    script.snapshot(at, 2, {one: ["t"] for one in left}, given, strategy="range", joined_at=end)
    (trigger,) = (one for one in script.run(at + 10_000).rebalances[1].triggers if one.member_id == "a")
    return trigger


@pytest.mark.parametrize(
    ("what", "commits", "kind"),
    [
        ("it commits to the end", {0: [19_000], 1: [19_500], 2: [19_800]}, "member_left"),
        ("the others go on for a session timeout", {0: [13_500], 1: [19_500], 2: [19_400]}, "session_expired"),
        ("one rejoins at once, another after long", {0: [10_000], 1: [10_300], 2: [19_500]}, "member_left"),
        ("the others stopped long before: idle", {0: [13_000], 1: [5_000], 2: [6_000]}, "member_gone"),
        ("one is idle, one goes on", {0: [13_000], 1: [2_000], 2: [16_500, 19_500]}, "session_expired"),
        ("one is idle, one may be late", {0: [13_000], 1: [2_000], 2: [19_500]}, "member_gone"),
        ("that one commits twice when it rejoins", {0: [13_000], 1: [2_000], 2: [19_100, 19_500]}, "member_gone"),
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


def test_a_commit_after_the_rebalance_began_is_not_so_many_negative_milliseconds_before_it() -> None:
    detail = departure({0: [19_034], 1: [19_500], 2: [19_600]}, preparing_at=19_000).detail
    assert detail == "inferred: last commit 34 ms after the rebalance began, session timeout 6000 ms"


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


ALL_STOP = {0: [10_000], 1: [10_000], 2: [10_100]}


def test_members_that_stop_together_are_idle_where_no_rebalance_waits_so_long() -> None:
    """Their topic has no more messages: then one that leaves, or dies, looks as one that stays does."""
    assert departure(ALL_STOP, at=400_000).kind == "member_gone"
    assert departure(ALL_STOP, rebalance_timeout=9_000).kind == "member_left"
    assert departure(ALL_STOP, rebalance_timeout=7_000).kind == "member_gone"
    # The generation was written late, and its join phase ended before.
    assert departure(ALL_STOP, at=22_000, rebalance_timeout=9_000).kind == "member_gone"
    assert departure(ALL_STOP, at=22_000, rebalance_timeout=9_000, joined_at=19_000).kind == "member_left"


def test_one_that_is_silent_for_longer_than_an_expiry_takes_was_idle() -> None:
    one_stays_active = {0: [10_000], 1: [39_500], 2: [39_600]}
    assert departure(one_stays_active, at=40_000, rebalance_timeout=31_000).kind == "session_expired"
    # So long its application may as well not have polled: then it has left.
    assert departure(one_stays_active, at=40_000, rebalance_timeout=30_000).kind == "member_gone"
    assert departure(one_stays_active, at=40_000, rebalance_timeout=21_900).kind == "member_gone"


@pytest.mark.parametrize(
    ("what", "ends", "step", "kind"),
    [
        ("it has committed all there is", {0: 0}, 10, "member_gone"),
        ("something is left to commit", {0: 1}, 10, "session_expired"),
        ("only the others have committed all", {1: 0, 2: 0}, 10, "session_expired"),
        ("it would commit the same again", {0: 0}, 0, "session_expired"),
    ],
)
def test_one_that_has_committed_up_to_the_ends_of_its_queues_is_idle(
    what: str, ends: dict[int, int], step: int, kind: str
) -> None:
    commits = {0: [12_000, 13_000], 1: [19_500], 2: [19_600]}
    assert departure(commits, ends=ends, step=step).kind == kind, what


def test_others_that_are_idle_have_not_rejoined() -> None:
    assert departure(ALL_STOP).kind == "member_left"
    assert departure(ALL_STOP, ends={1: 5, 2: 0}).kind == "member_left"
    assert departure(ALL_STOP, ends={1: 0, 2: 0}).kind == "member_gone"
    # One that goes on shows that nobody rejoined at once.
    assert departure({**ALL_STOP, 2: [15_000, 19_900]}, ends={1: 0}).kind == "session_expired"


# ---- the new protocol: a session timeout is 45 s


def recorded_departure(commits: dict[int, int], silence: int, ends: dict[int, int] | None = None) -> str:
    """Return how ``b`` departed, which owned 2 and 3 and committed last at 60 s; ``a`` owned 0 and 1.

    Args:
        commits: By queue, of ``a``. ends: How many messages of a queue are left to commit when ``b`` is gone.
    """
    script = RecordScript()
    script.first_member()
    script.second_member()
    at = 60_000 + silence
    for queue, time in {2: 50_000, 3: 60_000, **commits}.items():
        script.observe(time, "t", queue, committed=100)
        if queue in (ends or {}):
            script.observe(at - 100, "t", queue, end=100 + (ends or {})[queue])
    script.delete_member(at, "b")
    script.epoch(at, 3)
    script.target(at, 3, {"a": "0 1 2 3"})
    script.current(at, "a", 3, "0 1 2 3")
    return script.run(at + 10_000).rebalances[2].trigger


@pytest.mark.parametrize(
    ("what", "commits", "silence", "ends", "kind"),
    [
        ("it commits to the end", {}, 4_000, None, "member_left"),
        ("it commits to the end, and all there is", {}, 4_000, {2: 0, 3: 0}, "member_left"),
        ("between the two", {}, 20_000, None, "member_gone"),
        ("the other one never commits", {}, 50_000, None, "session_expired"),
        ("the other one goes on", {0: 109_000}, 50_000, None, "session_expired"),
        ("the other one stopped with it", {0: 60_000}, 50_000, None, "member_gone"),
        ("the other one stopped a while ago", {0: 94_900}, 50_000, None, "member_gone"),
        ("longer than an expiry takes", {0: 149_000}, 90_000, None, "member_gone"),
        ("it has committed all there is", {0: 109_000}, 50_000, {2: 0, 3: 0}, "member_gone"),
        ("of one queue something is left", {0: 109_000}, 50_000, {2: 0, 3: 1}, "session_expired"),
        ("where one of its queues ends is not known", {0: 109_000}, 50_000, {3: 0}, "session_expired"),
    ],
)
def test_records_show_an_expiry_only_of_one_that_would_have_committed(
    what: str, commits: dict[int, int], silence: int, ends: dict[int, int] | None, kind: str
) -> None:
    assert recorded_departure(commits, silence, ends) == kind, what
