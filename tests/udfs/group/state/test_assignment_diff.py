"""Two assignments compared, by hand."""

from __future__ import annotations

import pytest

from udfs.group.state.assignment_diff import Balance, Moves, changed_queues, count_moves, measure_balance, owners_of
from udfs.group.state.group import Owners


def owners(text: str) -> Owners:
    """Spell owners: "a ab -" is queue 0 with a, queue 1 with a and b, queue 2 without an owner."""
    return {("t", None, n): tuple(sorted(part)) for n, part in enumerate(text.split()) if part != "-"}


@pytest.mark.parametrize(
    ("before", "after", "moves", "why"),
    [
        ("", "", Moves(0, 0, 0, 0), "nothing"),
        ("a b", "a b", Moves(2, 0, 0, 0), "all stay"),
        ("a b", "b a", Moves(0, 0, 0, 2), "they swap"),
        ("a -", "a b", Moves(1, 1, 0, 0), "the second finds an owner"),
        ("a b", "a -", Moves(1, 0, 1, 0), "the second loses it"),
        ("a b", "a", Moves(1, 0, 1, 0), "the second queue is no more"),
        ("ab", "bc", Moves(1, 0, 0, 1), "b stays, a gives to c"),
        ("a", "bc", Moves(0, 1, 0, 1), "one moves, one is new"),
        ("abc", "d", Moves(0, 0, 2, 1), "one moves, two lose it"),
        ("ab ab", "abc abc", Moves(4, 2, 0, 0), "broadcast to one more"),
    ],
)
def test_queues_are_counted_over_all_owners(before: str, after: str, moves: Moves, why: str) -> None:
    changed = changed_queues(owners(before), owners(after))
    assert count_moves(owners(before), changed) == moves, why


@pytest.mark.parametrize(
    ("held", "subscribers", "by_message", "balance"),
    [
        ("", "", False, Balance(0, 4, 0)),
        ("a a b -", "ab", False, Balance(0, 1, 1)),
        ("a a a a", "abc", False, Balance(2, 0, 4)),
        ("a a b b", "a", False, Balance(0, 0, 0)),  # b holds, but subscribes to nothing
        ("- - - -", "ab", True, Balance(0, 0, 0)),
    ],
)
def test_balance_is_over_members_that_subscribe(
    held: str, subscribers: str, by_message: bool, balance: Balance
) -> None:
    queues = [("t", None, number) for number in range(4)]
    assert measure_balance(owners(held), list(subscribers), queues, by_message) == balance


def test_queues_change_that_have_other_owners_or_none() -> None:
    assert changed_queues(owners("a b c -"), owners("a c - d")) == [
        (("t", None, 1), ("b",), ("c",)),
        (("t", None, 2), ("c",), ()),
        (("t", None, 3), (), ("d",)),
    ]


def test_queues_that_changed_are_ordered_by_topic_broker_and_number() -> None:
    ordered = [("s", "b", 2), ("s", "b", 10), ("t", None, 3), ("t", "a", 0), ("t", "b", 0)]
    changed = changed_queues(dict.fromkeys(ordered[::2], ("a",)), dict.fromkeys(ordered[::-1], ("b",)))
    assert [queue for queue, _, _ in changed] == ordered


def test_a_queue_named_twice_by_one_member_has_it_once() -> None:
    queue = ("t", "x", 0)
    assert owners_of({"b": [queue, queue], "a": [queue]}) == {queue: ("a", "b")}
