"""Causes of a reported generation: what was learned before it, and what it shows itself."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import Script, assigned
from udfs.model.journal import TRIGGER_ORDER


def test_the_order_of_causes_is_the_one_of_the_contract() -> None:
    assert TRIGGER_ORDER == (
        "group_created",
        "session_expired",
        "member_left",
        "member_gone",
        "member_joined",
        "subscription_changed",
        "strategy_changed",
        "settings_changed",
        "queue_count_changed",
        "topic_learned",
        "cooperative_follow_up",
        "coordinator_changed",
        "late_evidence",
        "unexplained",
    )


@pytest.mark.parametrize(
    ("last_commit", "kind"),
    [
        (None, "member_gone"),
        (2_000, "session_expired"),
        (4_000, "session_expired"),  # exactly a session timeout before
        (4_001, "member_gone"),  # a heartbeat may have been a little older than the commit
        (6_000, "member_gone"),
        (6_001, "member_left"),
        (9_999, "member_left"),
        (10_000, "member_gone"),  # at the generation's own moment: no more of the member's own
    ],
)
def test_commits_distinguish_a_leave_from_an_expiry(last_commit: int | None, kind: str) -> None:
    script = Script()
    described = {"a": {"session_timeout_ms": 6_000}}
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), described, strategy="range")
    if last_commit is not None:
        times = (last_commit - 1_900, last_commit - 950, last_commit)
        for time in times if last_commit < 10_000 else times[2:]:
            script.observe(time, "t", 0, committed=time)
    for time in range(3_000, 10_000, 1_000):
        script.observe(time, "t", 1, committed=time)
    script.snapshot(10_000, 2, {"b": ["t"]}, assigned(b="0 1"), strategy="range")
    trigger = script.run(20_000).rebalances[1].triggers[0]
    assert trigger.kind == kind
    assert (trigger.detail or "").startswith("inferred: last commit") == (kind != "member_gone")
