"""What is wrong with a group: each rule by what it looks at, and why."""

from __future__ import annotations

import re
from typing import Any

import pytest

from udfs.group.batch.findings import RULES, Outcome
from udfs.group.state.flapping import Flapping
from udfs.model.finding_names import NamedQueue

VALID: dict[str, Any] = {
    "system": "rocketmq",
    "at": 1_000_000,
    "generation": 7,
    "members": 2,
    "queues": 4,
    "error": None,
    "agrees": True,
    "differing": (),
    "generations_missed": None,
    "names": (),
    "strategies": ("rocketmq.AVG",),
    "subscription_sets": 1,
    "unassigned": 0,
    "handing_over": False,
    "idle": 0,
    "flapping": None,
    "evidence": ("e",),
}
MOVED = [NamedQueue("t", None, 0, "a", None, ("b",))]
OFTEN = Flapping(rebalances=6, usual=0.5, within_ms=600_000, closes_at=1_100_000)


@pytest.mark.parametrize(
    ("differs", "found", "why"),
    [
        ({}, [], "nothing is wrong"),
        ({"error": "no_members: none"}, ["strategy_failed"], "the strategy gave no answer"),
        ({"error": "not_recomputable", "agrees": None}, [], "a strategy of others is no fault"),
        (
            {"agrees": False, "differing": MOVED * 2, "queues_differing": 2},
            ["expected_differs"],
            "clients hold something else",
        ),
        ({"agrees": None}, [], "nothing to compare with"),
        ({"generations_missed": 1}, ["generations_missed"], "one was not seen"),
        ({"names": ("x",)}, ["duplicate_ids"], "two connections, one id"),
        ({"strategies": ("a", "b")}, ["strategies_differ"], "each deals otherwise"),
        ({"strategies": ("a", "b"), "system": "kafka"}, [], "Kafka's members vote"),
        ({"subscription_sets": 2}, ["subscriptions_differ"], "RocketMQ wants them alike"),
        ({"subscription_sets": 2, "system": "kafka"}, [], "Kafka allows it"),
        ({"unassigned": 1}, ["unassigned_queues"], "one queue waits"),
        ({"unassigned": 1, "handing_over": True}, [], "its follow-up gives it on"),
        ({"unassigned": 1, "members": 0}, [], "an empty group is not wrong"),
        ({"idle": 1}, ["idle_members"], "one holds nothing"),
        ({"idle": 2, "queues": 0}, [], "there is nothing to hold"),
        ({"flapping": OFTEN}, ["flapping"], "more often than usual"),
    ],
)
def test_each_rule_finds_what_it_is_for(differs: dict[str, Any], found: list[str], why: str) -> None:
    outcome = Outcome(**{**VALID, **differs})
    assert [kind for kind, rule in RULES if rule(outcome) is not None] == found, why


def message(kind: str, **differs: Any) -> str:
    found = dict(RULES)[kind](Outcome(**{**VALID, **differs}))
    assert found is not None
    return found.message


@pytest.mark.parametrize(
    ("kind", "field", "others"),
    [
        ("unassigned_queues", "unassigned", {}),
        ("idle_members", "idle", {"members": 5}),
        ("generations_missed", "generations_missed", {}),
    ],
)
def test_one_is_written_in_the_singular_and_more_in_the_plural(kind: str, field: str, others: dict[str, Any]) -> None:
    singular, plural = message(kind, **others, **{field: 1}), message(kind, **others, **{field: 2})
    assert not re.search(r"\b1 (of \d+ )?(queues|generations)\b|\bmembers hold\b|\b1\b.*\bwere\b", singular)
    assert not re.search(r"\b2 (queue|generation)\b|\bholds no\b|\b2\b.*\bwas\b", plural)


def test_the_rules_are_named_in_the_order_of_their_text() -> None:
    from udfs.group.batch import findings

    numbered = [line.split("``")[1] for line in (findings.__doc__ or "").splitlines() if line[:2].rstrip(".").isdigit()]
    assert numbered == [kind for kind, _ in RULES]


@pytest.mark.parametrize(
    ("system", "queues", "unassigned", "advice"),
    [
        ("kafka", 1, 0, "more members than queues"),
        ("kafka", 2, 0, "roundrobin, sticky or cooperative-sticky"),
        ("metaq", 5, 0, "Give each topic as many queues as it has consumers"),
        ("rocketmq", 2, 1, "queues without an owner"),
    ],
)
def test_the_advice_for_idle_members_fits_the_number_of_queues(
    system: str, queues: int, unassigned: int, advice: str
) -> None:
    outcome = Outcome(**{**VALID, "system": system, "queues": queues, "idle": 1, "unassigned": unassigned})
    found = dict(RULES)["idle_members"](outcome)
    assert found is not None
    assert advice in found.advice
