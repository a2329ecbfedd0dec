"""What it costs that a queue moves, by what was observed of it."""

from __future__ import annotations

import pytest

from tests.udfs.group.state.test_view import view as view_of
from udfs.group.assignment.move_costs import MoveCost, move_costs, total_costs
from udfs.group.state.group import Departed, Group, Member
from udfs.packets.packet import queue_key

QUEUE = ("t", None, 0)
KEY = queue_key(*QUEUE)
COMMITS = [(1_000, 100, -1, -1), (6_000, 600, -1, -1)]  # 500 messages in 5 s


WAITING = MoveCost(waiting=100)


def end(at: int, offset: int) -> tuple[int, int, int, int]:
    return at, -1, offset, -1


def position(at: int, offset: int) -> tuple[int, int, int, int]:
    return at, -1, -1, offset


@pytest.mark.parametrize(
    ("why", "observed", "at", "began", "expected"),
    [
        ("nothing is known", [], 9_000, None, None),
        ("one commit shows no rate", COMMITS[:1], 9_000, None, None),
        ("one commit and an end show what waits", [COMMITS[0], end(900, 150)], 9_000, None, MoveCost(waiting=50)),
        ("it read on as before", COMMITS, 7_001, None, MoveCost(repeated_estimated=101)),
        ("at most until its next commit", COMMITS, 60_000, None, MoveCost(repeated_estimated=500)),
        ("at most to the end", [*COMMITS, end(11_000, 640)], 60_000, None, MoveCost(None, 40, 40)),
        ("an older end bounds nothing", [*COMMITS, end(10_999, 640)], 60_000, None, MoveCost(None, 500, 40)),
        ("it committed as it gave the queue back", COMMITS, 7_000, 5_900, MoveCost(repeated_estimated=0)),
        ("it began after the commit", COMMITS, 7_000, 6_001, MoveCost(repeated_estimated=100)),
        ("its position is known", [*COMMITS, position(6_000, 660)], 9_000, None, MoveCost(repeated=60)),
        ("an older position is none", [*COMMITS, position(5_999, 620)], 7_000, None, MoveCost(repeated_estimated=100)),
        ("what comes later does not count", [*COMMITS, (9_000, 900, -1, -1)], 7_000, None, MoveCost(None, 100)),
        (
            "it went back",
            [(1_000, 700, -1, -1), (6_000, 600, -1, -1), end(6_000, 800)],
            7_000,
            None,
            MoveCost(waiting=200),
        ),
        ("its last commit names no offset", [*COMMITS, (6_500, -2, -1, -1)], 7_000, None, None),
        ("the one before names no offset", [(1_000, -2, -1, -1), COMMITS[1], end(6_000, 700)], 7_000, None, WAITING),
        ("an end older than the commit", [*COMMITS, end(5_000, 550)], 7_000, None, MoveCost(None, 100, 0)),
    ],
)
def test_what_a_queue_costs_that_moves(
    why: str, observed: list[tuple[int, int, int, int]], at: int, began: int | None, expected: MoveCost | None
) -> None:
    view = view_of(Group(), offsets={KEY: sorted(observed)})
    found = move_costs(view, [(QUEUE, ("old",), ("new",))], at, began)
    assert found.get(QUEUE) == expected, why


def test_a_member_that_left_read_no_further() -> None:
    member = Member(member_id="old", name="old", joined_at=0)
    group = Group(departed={"old": Departed(member=member, left_at=6_500, left_reason="left")})
    view = view_of(group, offsets={KEY: COMMITS})
    assert move_costs(view, [(QUEUE, ("old",), ("new",))], 9_000) == {QUEUE: MoveCost(repeated_estimated=50)}


def test_a_queue_without_a_former_owner_repeats_nothing_and_one_that_was_revoked_does() -> None:
    observed = {KEY: [*COMMITS, end(6_000, 700)]}
    changed = [(QUEUE, (), ("new",))]
    assert move_costs(view_of(Group(), offsets=observed), changed, 7_000) == {QUEUE: MoveCost(waiting=100)}
    revoked = view_of(Group(revoked_pending=[QUEUE]), offsets=observed)
    assert move_costs(revoked, changed, 7_000) == {QUEUE: MoveCost(None, 100, 100)}


def test_a_queue_without_a_new_owner_costs_nothing() -> None:
    view = view_of(Group(), offsets={KEY: COMMITS})
    assert move_costs(view, [(QUEUE, ("old", "other"), ("old",))], 7_000) == {}


def test_sums_leave_out_what_is_missing() -> None:
    costs = {("t", None, 0): MoveCost(None, 5, 7), ("t", None, 1): MoveCost(3, None, None), ("t", None, 2): MoveCost(4)}
    assert total_costs(costs) == {
        "repeated_messages": 7,
        "repeated_estimated_messages": 5,
        "waiting_messages": 7,
    }
    assert total_costs({}) == {}
