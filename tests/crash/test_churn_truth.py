"""The truth about churn contradicts rows that leave something out or make something up, and no others."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.crash.churn_truth import Generation, GroupTruth, Row

T0 = 1_767_225_600_000


def instant(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1_000, UTC)


def truth(*, is_classic: bool = True) -> GroupTruth:
    """Return a group whose second member comes, then goes; an epoch without effect follows."""
    alone, both = {"a": [("t", 0), ("t", 1)]}, {"a": [("t", 0)], "b": [("t", 1)]}
    steps = [(1, {"a": ""}, alone), (2, {"a": "", "b": ""}, both), (3, {"a": ""}, alone)]
    generations = [Generation(number, T0 + number, members, held) for number, members, held in steps]
    if not is_classic:
        generations.append(Generation(4, T0 + 4, {"a": ""}, alone))
    owned = [] if is_classic else [(T0 + number, held) for number, _, held in steps]
    return GroupTruth(is_classic, generations, owned=owned)


def row(generation: int, members: tuple[int, int], *causes: tuple[str, str | None], **more: Any) -> Row:
    triggers = [{"kind": kind, "member_id": member, "topic": None, "detail": None} for kind, member in causes]
    return {
        "group_id": "g",
        "generation": generation,
        "event_time": instant(T0 + generation),
        "members_before": members[0],
        "members_after": members[1],
        "triggers": triggers,
        **dict.fromkeys(("error", "strategy", "library", "agrees_reason")),
        "agrees": True,
        **more,
    }


def span(member: str, queue: int, since: int, until: int | None) -> Row:
    end = None if until is None else instant(T0 + until)
    return {"member_id": member, "topic": "t", "queue_id": queue, "valid_from": instant(T0 + since), "valid_to": end}


def rows() -> list[Row]:
    return [
        row(1, (0, 1), ("group_created", None), ("member_joined", "a")),
        row(2, (1, 2), ("member_joined", "b")),
        row(3, (2, 1), ("member_gone", "b")),
    ]


SPANS = [span("a", 0, 1, None), span("a", 1, 1, 2), span("b", 1, 2, 3), span("a", 1, 3, None)]


@pytest.mark.parametrize("is_classic", [True, False])
def test_rows_that_are_true_contradict_nothing(is_classic: bool) -> None:
    assert list(truth(is_classic=is_classic).contradictions(rows(), SPANS)) == []


@pytest.mark.parametrize("is_classic", [True, False])
@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (lambda reported: reported[:1] + reported[2:], "lost"),
        (lambda reported: [*reported, row(9, (1, 1), ("unexplained", None))], "invented"),
        (lambda reported: [*reported, reported[-1]], "twice"),
        (lambda reported: [*reported[:2], row(3, (2, 1), ("unexplained", None))], "went {'b'}"),
        (lambda reported: [reported[0], row(2, (1, 2), ("member_joined", "c")), reported[2]], "came {'b'}"),
        (lambda reported: [reported[0], {**reported[1], "triggers": []}, reported[2]], "without cause"),
        (lambda reported: [reported[0], {**reported[1], "agrees": False}, reported[2]], "recomputed otherwise"),
        (lambda reported: [reported[0], {**reported[1], "members_after": 3}, reported[2]], "2 members"),
    ],
)
def test_rows_that_are_not_true_are_found(wrong: Any, expected: str, is_classic: bool) -> None:
    found = list(truth(is_classic=is_classic).contradictions(wrong(rows()), SPANS))
    assert any(text.startswith(expected) for text in found), found


def test_an_epoch_without_effect_is_no_rebalance() -> None:
    found = list(truth(is_classic=False).contradictions([*rows(), row(4, (1, 1), ("unexplained", None))], SPANS))
    assert [text.partition(":")[0] for text in found] == ["nothing changed"]


def test_a_span_that_is_wrong_is_found() -> None:
    spans = [span("a", 0, 1, None), span("a", 1, 1, None)]
    found = list(truth().contradictions(rows(), spans))
    assert len(found) == 1
    assert "owned" in found[0]


def test_a_static_member_that_comes_back_under_another_id_neither_joins_nor_leaves() -> None:
    held = {"a": [("t", 0)]}
    generations = [Generation(1, T0 + 1, {"a": ""}, held), Generation(2, T0 + 2, {"b": ""}, {"b": [("t", 0)]})]
    group = GroupTruth(True, generations, instances={"a": "i", "b": "i"})
    reported = [
        row(1, (0, 1), ("group_created", None), ("member_joined", "a")),
        row(2, (1, 1), ("subscription_changed", "b")),
    ]
    spans = [span("a", 0, 1, 2), span("b", 0, 2, None)]
    assert list(group.contradictions(reported, spans)) == []

    reported[1] = row(2, (1, 1), ("member_gone", "a"), ("member_joined", "b"))
    assert [text.partition(":")[0] for text in group.contradictions(reported, spans)] == ["came set()", "went set()"]
