"""What it costs that a queue moves, by what was observed of it."""

from __future__ import annotations

import pytest

from tests.udfs.group.assignment.rebalance_row import rebalance_row
from tests.udfs.group.state.test_view import view as view_of
from udfs.group.assignment.move_costs import MoveCost, add_costs, move_costs
from udfs.group.state.group import Departed, Group, IdleQueue, Member
from udfs.group.state.writing import assign
from udfs.model.observations import ReadOffsets, undated
from udfs.packets.packet import queue_key

QUEUE = ("t", None, 0)
KEY = queue_key(*QUEUE)
COMMITS = [(1_000, 100, -1, -1), (6_000, 600, -1, -1)]  # 500 messages in 5 s


WAITING = MoveCost(waiting=100)


def twice(cost: MoveCost | None) -> tuple[int | None, int | None]:
    """Return what of a cost is read twice."""
    return (None, None) if cost is None else cost[:2]


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
        ("and what came since the end", [*COMMITS, end(10_000, 640)], 60_000, None, MoveCost(None, 140, 40)),
        ("an end long before bounds nothing", [*COMMITS, end(6_000, 640)], 60_000, None, MoveCost(None, 500, 40)),
        ("it committed as it gave the queue back", COMMITS, 7_000, 5_900, MoveCost(repeated_estimated=0)),
        ("it began after the commit", COMMITS, 7_000, 6_001, MoveCost(repeated_estimated=100)),
        ("its position is known", [*COMMITS, position(6_000, 660)], 9_000, None, MoveCost(repeated=60)),
        (
            "its position is the end of the queue",
            [*COMMITS, position(6_000, 660), end(8_000, 660)],
            9_000,
            None,
            MoveCost(repeated=60, waiting=60),
        ),
        (
            "it may have read on from its position",
            [*COMMITS, position(6_000, 660), end(6_100, 700)],
            7_000,
            None,
            MoveCost(None, 100, 100),
        ),
        (
            "it has read so far at least",
            [COMMITS[0], position(1_500, 160), end(1_500, 300)],
            7_000,
            None,
            MoveCost(None, 60, 200),
        ),
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
def test_the_cost_of_a_moved_queue(
    why: str, observed: list[tuple[int, int, int, int]], at: int, began: int | None, expected: MoveCost | None
) -> None:
    view = view_of(Group(), offsets=ReadOffsets({KEY: sorted(observed)}))
    found = move_costs(view, [(QUEUE, ("old",), ("new",))], at, began)
    assert twice(found.get(QUEUE)) == twice(expected), why


@pytest.mark.parametrize(
    ("why", "began", "observed", "expected"),
    [
        ("its new owner has not committed", 6_500, [*COMMITS, end(8_000, 700)], MoveCost(None, 100, 100)),
        ("its new owner has", 6_500, [*COMMITS, (7_000, 650, -1, -1)], None),
        ("it has, and the former one as it gave it back", 5_900, [*COMMITS, (7_500, 650, -1, -1)], MoveCost(None, 0)),
        ("it has twice", 5_900, [*COMMITS, (7_500, 650, -1, -1), (8_000, 660, -1, -1)], None),
    ],
)
def test_commits_of_the_new_owner_during_the_rebalance_are_not_the_former_owners(
    why: str, began: int, observed: list[tuple[int, int, int, int]], expected: MoveCost | None
) -> None:
    view = view_of(Group(), offsets=ReadOffsets({KEY: sorted(observed)}))
    found = move_costs(view, [(QUEUE, ("old",), ("new",))], 9_000, began, {QUEUE: 7_000})
    assert twice(found.get(QUEUE)) == twice(expected), why


ROCKETMQ_QUEUE, ROCKETMQ_KEY = ("t", "a", 0), queue_key("t", "a", 0)


@pytest.mark.parametrize(
    ("why", "observed", "expected"),
    [
        ("its end was observed just then", [*COMMITS, end(9_000, 850)], (250, None)),
        ("nothing shows where it ends", COMMITS, (None, None)),
        ("as many more came as were read before", [*COMMITS, end(7_000, 710)], (None, 110 + 200)),
        ("also since an end before the commit", [*COMMITS, end(5_000, 550)], (None, 300)),
        ("its owner did not keep up: what it read shows nothing", [*COMMITS, end(7_000, 5_000)], (None, 4_400)),
        ("one commit shows no rate", [COMMITS[0], end(900, 150)], (None, 50)),
        ("it went back", [(1_000, 700, -1, -1), (6_000, 600, -1, -1), end(6_000, 800)], (None, 200)),
        ("the one before names no offset", [(1_000, -2, -1, -1), COMMITS[1], end(6_000, 700)], (None, 100)),
    ],
)
def test_waiting_messages_are_counted_at_the_end_of_the_outage_or_estimated(
    why: str, observed: list[tuple[int, int, int, int]], expected: tuple[int | None, int | None]
) -> None:
    view = view_of(Group(), offsets=ReadOffsets({KEY: sorted(observed)}))
    found = move_costs(view, [(QUEUE, ("old",), ("new",))], 9_000).get(QUEUE, MoveCost())
    assert (found.waiting, found.waiting_estimated) == expected, why


# Polls: a commit, and in the same poll the end of the queue and the position of its owner.
POLLED = [(1_000, 100, 100, -1), (6_000, 600, 680, -1), position(6_000, 680)]
FOUND = (6_000, undated(600), 680, -1)
EARLIER = [(1_000, 100, 100, -1), (5_999, 600, 680, -1), position(5_999, 680)]


@pytest.mark.parametrize(
    ("why", "observed", "expected"),
    [
        ("it had read all there was", POLLED, MoveCost(repeated=80, waiting=80)),
        ("it had read on", [*POLLED, end(8_000, 700)], MoveCost(None, 80, 100)),
        ("it, or its successor, has committed since", [*POLLED, (8_000, 640, -1, -1)], MoveCost(None, 80, 40)),
        ("all of it", [*POLLED, (8_000, 680, -1, -1)], MoveCost(None, 80, 0)),
        ("it had the time to commit", [*EARLIER, (11_000, 680, -1, -1)], MoveCost(None, 0, 0)),
        ("it had the time, and did not", [*EARLIER, (11_000, 640, -1, -1)], MoveCost(None, 80, 40)),
        ("it had the time, and read on", [*EARLIER, (11_000, 690, 700, -1)], MoveCost(None, 80, 10)),
        ("what its successor commits does not count", [*POLLED, (11_001, 680, -1, -1)], MoveCost(80, None, 80)),
        ("its successor's position does not count", [*POLLED, position(11_001, 680)], MoveCost(None, 80, 80)),
        ("no position: as between two commits", POLLED[:2], MoveCost(None, 80, 80)),
        ("of 50 s those 5 s until it commits", [(0, 0, -1, -1), (10_000, 1_000, -1, -1)], MoveCost(None, 500)),
        ("it stood still", [POLLED[0], (6_000, 100, 180, -1)], MoveCost(None, 0, 80)),
        ("one commit and no position", [(6_000, 600, 680, -1)], MoveCost(waiting=80)),
        ("a position and no commit", [position(6_001, 680)], None),
        ("only the end", [end(6_000, 680)], None),
        ("committed before the first poll", [FOUND, position(6_000, 680)], MoveCost(80, None, 80)),
        ("and it had read on", [FOUND, position(6_000, 680), end(8_000, 700)], MoveCost(None, 80, 100)),
        ("and no position", [FOUND], MoveCost(waiting=80)),
        ("committed since", [FOUND, (7_000, 660, -1, -1)], MoveCost(waiting=20)),
        ("never, as brokers say it", [(6_000, undated(0), 680, -1)], None),
        ("found after it had departed", [(12_000, undated(600), 680, -1)], None),
    ],
)
def test_the_cost_of_a_queue_with_polled_commits(
    why: str, observed: list[tuple[int, int, int, int]], expected: MoveCost | None
) -> None:
    departed = Departed(member=Member(member_id="old", name="old", joined_at=0), left_at=11_000, left_reason="gone")
    group, moved = Group(departed={"old": departed}), (ROCKETMQ_QUEUE, ("old",), ("new",))
    view = view_of(group, system="rocketmq", offsets=ReadOffsets({ROCKETMQ_KEY: sorted(observed)}))
    assert twice(move_costs(view, [moved], 13_000).get(ROCKETMQ_QUEUE)) == twice(expected), why
    # The same where the queue was without an owner in between.
    assign(group, idle_queues={ROCKETMQ_QUEUE: IdleQueue(None, 11_000)})
    found = move_costs(view, [(ROCKETMQ_QUEUE, (), ("new",))], 13_000)
    assert twice(found.get(ROCKETMQ_QUEUE)) == twice(expected), why


def test_an_owner_that_lives_on_or_left_in_order_has_committed() -> None:
    old = Member(member_id="old", name="old", joined_at=0)
    departed = Departed(member=old, left_at=12_000, left_reason="left")
    for group in (
        Group(members={"old": old}),
        Group(departed={"old": departed}),
        Group(members={"old": old}, idle_queues={ROCKETMQ_QUEUE: IdleQueue(None, 12_000)}),
    ):
        view = view_of(group, system="rocketmq", offsets=ReadOffsets({ROCKETMQ_KEY: POLLED}))
        owner = () if group.idle_queues else ("old",)
        found = move_costs(view, [(ROCKETMQ_QUEUE, owner, ("new",))], 13_000)
        assert twice(found[ROCKETMQ_QUEUE]) == (None, 0)


def test_offsets_that_count_bytes_are_no_messages() -> None:
    old = Member(member_id="old", name="old", joined_at=0)
    killed = Group(departed={"old": Departed(member=old, left_at=12_000, left_reason="expired")})
    moved = [(ROCKETMQ_QUEUE, ("old",), ("new",))]
    offsets = {ROCKETMQ_KEY: [(1_000, 100, -1, -1), (6_000, 600, -1, -1)]}
    assert move_costs(view_of(killed, system="metaq", offsets=ReadOffsets(offsets)), moved, 13_000) == {}
    alive = view_of(Group(members={"old": old}), system="metaq", offsets=ReadOffsets(offsets))
    assert move_costs(alive, moved, 13_000) == {ROCKETMQ_QUEUE: MoveCost(repeated_estimated=0)}


def test_messages_that_all_members_share_are_repeated_by_none() -> None:
    group = Group(mode="message")
    view = view_of(group, system="rocketmq", offsets=ReadOffsets({ROCKETMQ_KEY: POLLED}))
    cost = MoveCost(waiting=80)
    assert move_costs(view, [(ROCKETMQ_QUEUE, ("old",), ("new",))], 6_000) == {ROCKETMQ_QUEUE: cost}


def test_a_member_that_left_read_no_further() -> None:
    member = Member(member_id="old", name="old", joined_at=0)
    group = Group(departed={"old": Departed(member=member, left_at=6_500, left_reason="left")})
    view = view_of(group, offsets=ReadOffsets({KEY: COMMITS}))
    assert move_costs(view, [(QUEUE, ("old",), ("new",))], 9_000) == {QUEUE: MoveCost(repeated_estimated=50)}


def test_a_queue_without_a_former_owner_repeats_nothing_and_one_that_was_revoked_does() -> None:
    observed = ReadOffsets({KEY: [*COMMITS, end(6_000, 700)]})
    changed = [(QUEUE, (), ("new",))]
    assert move_costs(view_of(Group(), offsets=observed), changed, 7_000) == {QUEUE: MoveCost(waiting_estimated=200)}
    revoked = view_of(Group(revoked_pending=[QUEUE]), offsets=observed)
    assert move_costs(revoked, changed, 7_000) == {QUEUE: MoveCost(None, 100, None, 200)}


def test_a_queue_without_a_new_owner_costs_nothing() -> None:
    view = view_of(Group(), offsets=ReadOffsets({KEY: COMMITS}))
    assert move_costs(view, [(QUEUE, ("old", "other"), ("old",))], 7_000) == {}


def test_sums_leave_out_what_is_missing() -> None:
    costs = {("t", None, 0): MoveCost(None, 5, 7), ("t", None, 1): MoveCost(3, None, None), ("t", None, 2): MoveCost(4)}
    row = rebalance_row()
    add_costs(row, costs)
    assert (row.repeated_messages, row.repeated_estimated_messages, row.waiting_messages) == (7, 5, 7)
    assert row.waiting_estimated_messages is None
