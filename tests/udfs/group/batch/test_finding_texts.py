"""Names in sentences: few of them, and how many more."""

from __future__ import annotations

import pytest

from udfs.group.batch.finding_texts import (
    clients_text,
    counted,
    differing_sentence,
    differing_text,
    members_text,
    named,
    ownerless_text,
    phrase,
    queues_text,
)
from udfs.model.finding_names import NOT_OWNED, NOT_SUBSCRIBED, NamedClient, NamedMember, NamedQueue


def queue(number: int, topic: str = "t", broker: str | None = None, *rest: object) -> NamedQueue:
    return NamedQueue(topic, broker, number, *rest)  # type: ignore[arg-type]


@pytest.mark.parametrize(("number", "text"), [(0, "0 queues"), (1, "1 queue"), (2, "2 queues")])
def test_a_number_has_its_noun(number: int, text: str) -> None:
    assert counted(number, "queue") == text
    assert phrase(number, "{} queue", "{} queues") == text


@pytest.mark.parametrize(
    ("queues", "total", "text"),
    [
        ([], 0, ""),
        ([queue(3)], 1, "t-3"),
        ([queue(1, "pay", "broker-b"), queue(2, "pay", "broker-b")], 2, "pay@broker-b-1 and -2"),
        ([queue(number) for number in range(50)], 64, "t-0 to -49 and 14 more"),
        ([queue(0), queue(2), queue(0, "u")], None, "t-0, t-2, u-0"),
        ([queue(-1, "t", "b")], 1, "t@b"),
        ([queue(2 * number) for number in range(9)], 9, "t-0, t-2, t-4, t-6, t-8, t-10 and 3 more"),
    ],
)
def test_queues_are_named_as_kafkas_tools_do(queues: list[NamedQueue], total: int | None, text: str) -> None:
    assert queues_text(queues, total) == text


def test_names_beyond_the_third_are_counted() -> None:
    assert named([]) == ""
    assert named(["a", "b", "c"]) == "a, b and c"
    assert named(["a", "b", "c", "d"]) == "a, b, c and 1 more"
    members = [NamedMember(name, name.upper()) for name in "abc"]
    assert members_text(members, 8, {"a": "A@h"}) == "A@h, b, c and 5 more"


def test_clients_have_their_numbers() -> None:
    many = [NamedClient(f"c{number}", 9 - number) for number in range(5)]
    assert clients_text(many[:1], 1, 12) == "c0 caused 9 of 12"
    assert (
        clients_text(many, 5, 40, "3.7.0") == "c0 (version 3.7.0) caused 9 of 40, c1 8, c2 7, 2 other clients the rest"
    )


def test_an_unread_queue_has_a_reason_where_one_is_given() -> None:
    first = queue(1, "pay", None, "a", NOT_SUBSCRIBED)
    assert ownerless_text([first], "AVG", {"a": "A"}) == " AVG assigns it to A, which does not subscribe to pay."
    other = queue(0, "u", None, "b", NOT_OWNED)
    assert ownerless_text([first, other], "AVG", {}) == (
        " AVG assigns pay-1 to a, which does not subscribe to pay; AVG assigns u-0 to b, which does not own u-0."
    )
    assert ownerless_text([queue(0)], "AVG", {}) == ""
    many = [queue(number, "t", None, f"m{number}", NOT_OWNED) for number in range(5)]
    assert ownerless_text(many, "range", {}).endswith("; others to 2 more members.")


def test_owners_that_differ_are_named_with_those_expected() -> None:
    queues = [queue(0, "t", None, "a", None, ("b",)), queue(1, "t", None, "a", None, ("b",)), queue(2, "t", None, "c")]
    assert differing_text(queues, 5, {"a": "A"}) == "t-0 and -1: b instead of A; t-2: nobody instead of c; and 2 more"
    assert differing_text([queue(0, "t", None, None, None, ("a", "b"))], 1, {}) == "t-0: a and b instead of nobody"


def differing(number: int, reported: tuple[str, ...], broker: str | None = None) -> NamedQueue:
    return NamedQueue("t", broker, number, "a", None, reported)


def sentence(*queues: NamedQueue, more: int = 0) -> str:
    return differing_sentence(queues, len(queues) + more, {"a": "client-a"})


def test_queues_without_an_owner_are_not_counted_as_owned() -> None:
    assert sentence(differing(0, ())) == (
        "1 queue has no owner, though the strategy gives it one: t-0: nobody instead of client-a"
    )
    assert sentence(differing(0, ()), differing(1, (), "b")).startswith(
        "2 queues have no owner, though the strategy gives one: "
    )


def test_each_kind_has_its_number_and_its_queues() -> None:
    found = sentence(
        differing(0, ("b",)), differing(1, ("a", "b")), differing(2, ()), differing(3, ("a", "b")), differing(4, ("b",))
    )
    assert found == (
        "1 queue has no owner, though the strategy gives it one: t-2: nobody instead of client-a;"
        " 2 queues have several owners: t-1, t-3: client-a and b instead of client-a;"
        " 2 queues have other owners than the strategy computes: t-0, t-4: b instead of client-a"
    )


def test_with_many_queues_it_says_how_many_are_left_out() -> None:
    assert sentence(differing(0, ("b",)), more=6).endswith("; and 6 more queues differ")
    assert sentence(differing(0, ("b",)), more=1).endswith("; and one more queue differs")
