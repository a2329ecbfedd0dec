"""Groups that commit and have no members are listed as empty, as long as a commit is there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core_config import core_config
from tests.corners.corner_run import CornerRun, Cut, Event, in_one, one_by_one

DAY = 100_000  # here; a group is forgotten after seven
RULES = core_config(allowed_lateness_ms=2_000, forget_after_ms=7 * DAY)
CUTS: list[Cut] = [in_one, one_by_one]


def commit(t: int, queue: int = 0) -> Event:
    queues = [{"topic": "t", "queue_id": queue, "offset": t}]
    return {"t": t, "type": "progress", "group": "g", "queues": queues}


def commits_deleted(t: int, *queues: int) -> Event:
    named = [{"topic": "t", "queue_id": queue} for queue in queues]
    return {"t": t, "type": "commits_deleted", "group": "g", "queues": named}


def generation(t: int, number: int, *members: str) -> Event:
    infos = [{"member_id": member_id, "subscriptions": ["t"], "session_timeout_ms": 10_000} for member_id in members]
    return {"t": t, "type": "group_snapshot", "group": "g", "generation": number, "members": infos}


def clock(t: int) -> Event:
    return {"t": t, "type": "clock"}


def listed(events: list[Event], cut: Cut) -> list[tuple[Any, ...]]:
    """Return the groups that are listed then."""
    rows = CornerRun(events, cut, config=RULES).tables()["groups"]
    return [tuple(row[name] for name in ("system", "group_id", "state", "generation", "members")) for row in rows]


EMPTY = ("kafka", "g", "empty", None, 0)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize(
    ("what", "events", "groups"),
    [
        ("it commits", [commit(10), commit(20, 1), clock(9_000)], [EMPTY]),
        ("its commits are not due", [clock(0), commit(9_000)], []),
        ("a commit of two is deleted", [commit(10), commit(20, 1), commits_deleted(30, 1), clock(9_000)], [EMPTY]),
        ("all are deleted", [commit(10), commit(20, 1), commits_deleted(30, 0, 1), clock(9_000)], []),
        (
            "one after the other",
            [commit(10), commit(20, 1), commits_deleted(30, 1), commits_deleted(31, 0), clock(9_000)],
            [],
        ),
        ("and it commits again", [commit(10), commits_deleted(30, 0), commit(40), clock(9_000)], [EMPTY]),
        ("it is deleted", [commit(10), {"t": 30, "type": "group_deleted", "group": "g"}, clock(9_000)], []),
        (
            "it is deleted, and commits again",
            [commit(10), {"t": 30, "type": "group_deleted", "group": "g"}, commit(40), clock(9_000)],
            [EMPTY],
        ),
        ("it commits no more", [commit(10), clock(8 * DAY)], []),
        ("it commits for long", [*(commit(day * DAY) for day in range(12)), clock(16 * DAY)], [EMPTY]),
        ("it was forgotten and commits again", [commit(10), commit(10 * DAY), clock(11 * DAY)], [EMPTY]),
        (
            "members came and went, and it commits alone now",
            [generation(0, 1, "a"), generation(10, 2), *(commit(day * DAY) for day in range(1, 12)), clock(12 * DAY)],
            [("kafka", "g", "empty", 2, 0)],
        ),
        ("it has members", [generation(0, 1, "a"), commit(10), clock(9_000)], [("kafka", "g", "stable", 1, 1)]),
    ],
)
def test_a_group_that_only_commits_is_listed(
    what: str, events: list[Event], groups: list[tuple[Any, ...]], cut: Cut
) -> None:
    assert listed(events, cut) == groups, what


@pytest.mark.parametrize("cut", CUTS)
def test_commits_before_a_group_has_members_change_nothing_of_its_history(cut: Cut) -> None:
    reported = [{"t": 0, "type": "topic_queues", "topic": "t", "queue_count": 2}, generation(50, 1, "a"), clock(9_000)]
    without = CornerRun(reported, cut).core.rows()
    found = CornerRun([commit(10), commit(20, 1), *reported], cut).core.rows()
    assert [row["triggers"] for row in without] != []
    for row in (*without, *found):
        row["detected_at"] = None
        row["triggers"] = [trigger | {"event_id": None} for trigger in row["triggers"]]
    assert found == without


def test_the_list_changes_identically_however_events_are_cut() -> None:
    events = [
        commit(10),
        commit(20, 1),
        commits_deleted(4_000, 0, 1),
        commit(6_000),
        {"t": 8_000, "type": "group_deleted", "group": "g"},
        commit(12_000),
        generation(20_000, 3, "a"),
        generation(30_000, 4),
        *(commit(60_000 + day * DAY) for day in range(9)),
        commit(40 * DAY),
        clock(41 * DAY),
    ]
    found = [
        [
            (change.event_time, type(change.body).__name__)
            for change in CornerRun(events, cut, config=RULES).core.changes
            if change.group_id
        ]
        for cut in CUTS
    ]
    assert found[0] == found[1]
    names = [name for _, name in found[0] if name in ("GroupChanged", "GroupRemoved")]
    assert names.count("GroupRemoved") == 3, names
