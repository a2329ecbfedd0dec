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
    library: str | None = None,
) -> Trigger:
    """Return the cause of a generation without ``a``, which owned queue 0; ``b`` owned 1 and ``c`` 2.

    Args:
        left: Its members.
        ends: How many messages of a queue are left to commit 1 s before the end. step: From commit to commit.
    """
    script = Script()
    script.queues(0, "t", 3)
    fields = {"session_timeout_ms": 6_000, "rebalance_timeout_ms": rebalance_timeout, "client_library": library}
    described = {member_id: dict(fields) for member_id in "abc"}
    members = {member_id: ["t"] for member_id in "abc"}
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
    script.snapshot(at, 2, {member_id: ["t"] for member_id in left}, given, strategy="range", joined_at=end)
    (trigger,) = (cause for cause in script.run(at + 10_000).rebalances[1].triggers if cause.member_id == "a")
    return trigger


def until(last: int, since: int | None = None, every: int = 1_000) -> list[int]:
    """Return when a member commits that does so in this rhythm up to a time, for 3 s at least."""
    first = last - max(3 * every, 3_000) if since is None else since
    return [*range(last, first - 1, -every)][::-1]


ALL_GO_ON = {1: until(19_500, 13_000), 2: until(19_400, 13_000)}


@pytest.mark.parametrize(
    ("what", "commits", "kind"),
    [
        ("it commits to the end", {0: until(19_000), 1: [19_500], 2: [19_800]}, "member_left"),
        ("the others go on for a session timeout", {0: until(13_500), **ALL_GO_ON}, "session_expired"),
        ("one of them does", {0: until(13_500), 1: until(19_500, 13_000), 2: [19_400]}, "session_expired"),
        ("one rejoins at once, another after long", {0: until(10_000), 1: [10_300], 2: [19_500]}, "member_left"),
        ("the others stopped long before: idle", {0: until(13_000), 1: [5_000], 2: [6_000]}, "member_gone"),
        ("one is idle, one goes on", {0: until(13_000), 1: [2_000], 2: [16_500, 19_500]}, "session_expired"),
        ("one is idle, one may be late", {0: until(13_000), 1: [2_000], 2: [19_500]}, "member_gone"),
        ("both may be late", {0: until(13_000), 1: [19_000], 2: [19_500]}, "member_gone"),
        ("they commit twice when they rejoin", {0: until(13_000), 1: [19_100, 19_500]}, "member_gone"),
        ("the others never commit", {0: until(13_000)}, "member_gone"),
        ("it never commits itself", {1: until(19_500), 2: until(19_600)}, "member_gone"),
        ("between the two", {0: until(15_000), **ALL_GO_ON}, "member_gone"),
        ("it committed once", {0: [13_500], **ALL_GO_ON}, "member_gone"),
        ("how often it commits is not known", {0: [12_500, 13_500], **ALL_GO_ON}, "member_gone"),
        ("it commits every 2.5 s", {0: until(13_500, every=2_500), **ALL_GO_ON}, "session_expired"),
        ("it may have left long after its last commit", {0: until(13_500, every=3_000), **ALL_GO_ON}, "member_gone"),
        ("it commits often, and seldom", {0: [5_000, 9_500, 13_400, 13_500], **ALL_GO_ON}, "member_gone"),
        ("commits follow each other fast", {0: until(13_500, every=50), **ALL_GO_ON}, "session_expired"),
        ("those of the others, too", {0: until(13_500), 1: until(19_500, 9_500, every=50)}, "session_expired"),
        ("the last is another gap apart", {0: until(13_500), 1: [*until(19_400, every=5_000), 19_500]}, "member_gone"),
    ],
)
def test_commits_of_the_others_show_when_the_rebalance_began(
    what: str, commits: dict[int, list[int]], kind: str
) -> None:
    assert departure(commits).kind == kind, what


def test_the_detail_has_the_evidence() -> None:
    assert departure({0: until(13_000), **ALL_GO_ON}).detail == (
        "inferred: last commit 7000 ms before the rebalance, session timeout 6000 ms"
    )
    assert departure({0: until(10_000), 1: [10_300], 2: [19_500]}).detail == (
        "inferred: last commit 10000 ms before the rebalance, session timeout 6000 ms; others stopped 300 ms after it"
    )


def test_a_commit_after_the_rebalance_began_is_not_so_many_negative_milliseconds_before_it() -> None:
    detail = departure({0: [19_034], 1: [19_500], 2: [19_600]}, preparing_at=19_000).detail
    assert detail == "inferred: last commit 34 ms after the rebalance began, session timeout 6000 ms"


def test_a_rebalance_that_a_poll_shows_under_way_began_by_then() -> None:
    """Every other member is slow to rejoin, and commits when it does: their commits do not show the beginning."""
    commits = {0: until(10_000), 1: [19_900], 2: [19_900]}
    assert departure(commits).kind == "member_gone"
    assert departure(commits, preparing_at=12_000).kind == "member_left"
    # It had begun by then, and may have done so long before.
    assert departure(commits, preparing_at=16_500).kind == "member_gone"
    # One goes on meanwhile: it has not begun before that.
    commits |= {1: [10_500, 12_100, 13_900, 15_000]}
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


def silent(silence: int, poll_interval: int, others: dict[int, list[int]] | None = None, every: int = 1_000) -> Trigger:
    """Return the cause of the departure of a member that commits each second and is silent for so long."""
    at = 10_000 + silence
    others = {1: until(at - 300, 9_000), 2: until(at - 400, 9_000)} if others is None else others
    commits = {0: until(10_000, 10_000 - 4 * every, every=every), **others}
    return departure(commits, at=at, rebalance_timeout=poll_interval)


@pytest.mark.parametrize(
    ("what", "silence", "poll_interval", "kind"),
    [
        ("a session timeout, and nothing else", 7_000, 300_000, "session_expired"),
        ("until the next commit was due, and the next heartbeat of the others", 9_200, 300_000, "session_expired"),
        ("longer than that: it lived on, and committed nothing", 9_500, 300_000, "member_gone"),
        ("as long as its application may take between two polls", 30_100, 30_000, "member_left"),
        ("a commit less than that", 28_100, 30_000, "member_left"),
        ("a commit and a heartbeat more", 33_200, 30_000, "member_left"),
        ("longer than the others take to rejoin", 33_500, 30_000, "member_gone"),
        ("between the two", 20_000, 30_000, "member_gone"),
        ("both fit", 7_000, 8_000, "member_gone"),
        ("the poll interval is the session timeout", 7_000, 6_000, "member_gone"),
        ("it is a little shorter", 7_000, 5_000, "member_gone"),
        ("it is long over", 7_000, 3_000, "session_expired"),
    ],
)
def test_silence_is_that_of_a_session_or_that_of_an_application_that_polls_no_more(
    what: str, silence: int, poll_interval: int, kind: str
) -> None:
    assert silent(silence, poll_interval).kind == kind, what


def test_aiokafka_reports_no_poll_interval() -> None:
    others = {1: until(16_700, 9_000), 2: until(16_600, 9_000)}
    for library, kind in (("aiokafka|kafka-python", "session_expired"), ("java-3.4+", "member_gone")):
        commits = {0: until(10_000, 6_000), **others}
        assert departure(commits, at=17_000, rebalance_timeout=6_000, library=library).kind == kind
    commits = {0: until(10_000, 6_000), 1: until(39_700, 9_000)}
    assert departure(commits, at=40_000, rebalance_timeout=6_000, library="aiokafka").kind == "member_gone"


def test_a_poll_timeout_says_which_it_was_and_needs_others_that_go_on() -> None:
    assert silent(30_100, 30_000).detail == (
        "inferred: last commit 30100 ms before the rebalance, session timeout 6000 ms, max.poll.interval.ms 30000 ms:"
        " it polled too late"
    )
    assert silent(30_100, 30_000, others={1: [39_900], 2: [39_900]}).kind == "member_gone"
    assert silent(30_100, 30_000, every=3_000).kind == "member_gone"


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
    commits = {0: until(13_000), **ALL_GO_ON}
    assert departure(commits, ends=ends, step=step).kind == kind, what


def test_others_that_are_idle_have_not_rejoined() -> None:
    assert departure(ALL_STOP).kind == "member_left"
    assert departure(ALL_STOP, ends={1: 5, 2: 0}).kind == "member_left"
    assert departure(ALL_STOP, ends={1: 0, 2: 0}).kind == "member_gone"
    # One that goes on shows that nobody rejoined at once.
    goes_on = {**ALL_STOP, 0: until(12_000), 2: until(19_900, 11_900)}
    assert departure(goes_on, at=20_000, ends={1: 0}).kind == "session_expired"


# ---- the new protocol: a session timeout is 45 s


def recorded_departure(
    commits: dict[int, int], silence: int, ends: dict[int, int] | None = None, every: int = 2_000, poll: int = 300_000
) -> str:
    """Return how ``b`` departed, which owned 2 and 3 and committed last at 60 s; ``a`` owned 0 and 1.

    Args:
        commits: By queue, of ``a``. ends: How many messages of a queue are left to commit when ``b`` is gone.
        every: So often ``b`` commits. poll: Its poll interval.
    """
    script = RecordScript()
    script.first_member()
    script.second_member(rebalance_timeout_ms=poll)
    at = 60_000 + silence
    for queue, time in {2: 50_000, 3: 60_000, **commits}.items():
        for place in range(4) if queue == 3 else (0,):
            script.observe(time - place * every, "t", queue, committed=100 - place)
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
        ("the other one never commits", {}, 46_000, None, "session_expired"),
        ("the other one goes on", {0: 105_000}, 46_000, None, "session_expired"),
        ("the other one stopped with it", {0: 60_000}, 46_000, None, "member_gone"),
        ("the other one stopped a while ago", {0: 90_900}, 46_000, None, "member_gone"),
        ("a commit and a second longer", {0: 107_000}, 48_000, None, "session_expired"),
        ("longer than an expiry takes", {0: 108_000}, 48_100, None, "member_gone"),
        ("it has committed all there is", {0: 105_000}, 46_000, {2: 0, 3: 0}, "member_gone"),
        ("of one queue something is left", {0: 105_000}, 46_000, {2: 0, 3: 1}, "session_expired"),
        ("where one of its queues ends is not known", {0: 105_000}, 46_000, {3: 0}, "session_expired"),
    ],
)
def test_records_show_an_expiry_only_of_one_that_would_have_committed(
    what: str, commits: dict[int, int], silence: int, ends: dict[int, int] | None, kind: str
) -> None:
    assert recorded_departure(commits, silence, ends) == kind, what


def test_records_show_a_poll_timeout_as_long_as_an_application_may_take() -> None:
    for poll, kind in ((300_000, "member_left"), (290_000, "member_gone"), (302_900, "member_left")):
        assert recorded_departure({0: 359_000}, 300_500, poll=poll) == kind
    # As long as a session timeout, it may be either.
    assert recorded_departure({0: 105_000}, 46_000, poll=45_000) == "member_gone"
