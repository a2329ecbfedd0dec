"""Queues whose owners are not the computed ones: how many, how, and which."""

from __future__ import annotations

from udfs.group.batch.differing_queues import differing_sentence
from udfs.group.state.assignment_diff import Changed


def queue(number: int, reported: tuple[str, ...], broker: str | None = None) -> Changed:
    return ("t", broker, number), ("a",), reported


def test_queues_without_an_owner_are_not_counted_as_owned() -> None:
    assert differing_sentence([queue(0, ())]) == "1 queue has no owner, though the strategy gives it one (t-0)"
    assert differing_sentence([queue(0, ()), queue(1, (), "b")]) == (
        "2 queues have no owner, though the strategy gives one (t-0, t@b-1)"
    )


def test_each_kind_has_its_number_and_its_queues() -> None:
    differing = [queue(0, ("b",)), queue(1, ("a", "b")), queue(2, ()), queue(3, ("a", "c")), queue(4, ("c",))]
    assert differing_sentence(differing) == (
        "1 queue has no owner, though the strategy gives it one (t-2); 2 queues have several owners (t-1, t-3);"
        " 2 queues have other owners than the strategy computes (t-0, t-4)"
    )


def test_of_many_the_first_are_named() -> None:
    assert differing_sentence([queue(number, ("b",)) for number in range(5)]) == (
        "5 queues have other owners than the strategy computes (t-0, t-1, t-2 and 2 more)"
    )
