"""Queues whose owners are not the computed ones: how many, how, and which."""

from __future__ import annotations

from udfs.group.batch.differing_queues import differing_sentence
from udfs.model.finding_names import NamedQueue


def queue(number: int, reported: tuple[str, ...], broker: str | None = None) -> NamedQueue:
    return NamedQueue("t", broker, number, "a", None, reported)


def sentence(*queues: NamedQueue, more: int = 0) -> str:
    return differing_sentence(queues, len(queues) + more, {"a": "client-a"})


def test_queues_without_an_owner_are_not_counted_as_owned() -> None:
    assert sentence(queue(0, ())) == (
        "1 queue has no owner, though the strategy gives it one: t-0: nobody instead of client-a"
    )
    assert sentence(queue(0, ()), queue(1, (), "b")).startswith(
        "2 queues have no owner, though the strategy gives one: "
    )


def test_each_kind_has_its_number_and_its_queues() -> None:
    found = sentence(queue(0, ("b",)), queue(1, ("a", "b")), queue(2, ()), queue(3, ("a", "b")), queue(4, ("b",)))
    assert found == (
        "1 queue has no owner, though the strategy gives it one: t-2: nobody instead of client-a;"
        " 2 queues have several owners: t-1, t-3: client-a and b instead of client-a;"
        " 2 queues have other owners than the strategy computes: t-0, t-4: b instead of client-a"
    )


def test_with_many_queues_it_says_how_many_are_left_out() -> None:
    assert sentence(queue(0, ("b",)), more=6).endswith("; and 6 more queues differ")
    assert sentence(queue(0, ("b",)), more=1).endswith("; and one more queue differs")
