"""The causes of a rebalance, in words."""

from __future__ import annotations

import pytest

from streaming.terminal.causes import CAUSE_TEXTS, describe_cause
from udfs.model.journal import TRIGGER_ORDER


def test_every_kind_is_described() -> None:
    assert set(CAUSE_TEXTS) == set(TRIGGER_ORDER)


@pytest.mark.parametrize(
    ("triggers", "text"),
    [
        ([{"kind": "member_left", "member_id": "a"}, {"kind": "member_joined", "member_id": "b"}], "a left, b joined"),
        ([{"kind": "member_joined", "member_id": name} for name in "abc"], "3 joined"),
        ([{"kind": "queue_count_changed", "topic": "orders"}], "queues of orders changed"),
        ([{"kind": "topic_learned", "topic": "orders"}], "orders learned late"),
        ([{"kind": "subscription_changed", "member_id": "a"}], "a changed subscription"),
        ([{"kind": "subscription_changed", "member_id": "a", "topic": "t"}], "t matched the pattern of a"),
        (
            [{"kind": "subscription_changed", "member_id": name, "topic": "t"} for name in "ab"],
            "t matched the patterns of 2",
        ),
        (
            [{"kind": "subscription_changed", "member_id": name, "topic": topic} for name, topic in ("at", "bu")],
            "2 changed subscriptions",
        ),
        ([{"kind": "new_in_a_later_release", "member_id": "a"}], "new in a later release"),
        ([], ""),
    ],
)
def test_causes_are_named_in_their_order(triggers: list[dict[str, str]], text: str) -> None:
    assert describe_cause(triggers) == text


def test_a_long_id_loses_its_middle() -> None:
    name = "consumer-audit-1-0123456789abcdef"
    assert describe_cause([{"kind": "member_left", "member_id": name}], "audit", 12) == "1-012…9abcdef left"
