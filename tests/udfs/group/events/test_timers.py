"""What time alone makes due in a group."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core_config import core_config
from tests.udfs.group.group_script import Topics
from udfs.group.events.timers import Timer, TimerKind, next_timer
from udfs.group.state.group import Group, GroupFinding, Member, Pending
from udfs.group.state.recorded_group import RecordedGroup
from udfs.group.state.view import GroupView
from udfs.model.group_api import GroupInput

END = 10_000_000


LEFT = {"touched_at": 100}
FOREVER = 7 * 86_400_000


@pytest.mark.parametrize(
    ("fields", "settle_ms", "timer"),
    [
        ({}, 0, None),
        (LEFT, 0, Timer(100 + FOREVER, TimerKind.FORGET)),
        # A group with members is not forgotten, nor one of which something is pending or that is not followed.
        ({**LEFT, "members": {"a": Member(member_id="a", name="a", joined_at=0)}}, 0, None),
        ({**LEFT, "followed": False}, 0, None),
        ({**LEFT, "pending": Pending(opened_at=50, changed_at=90)}, 30, Timer(80, TimerKind.SETTLE)),
        (
            {"findings": {"x": GroupFinding("i", 1, 70), "y": GroupFinding("j", 1), "z": GroupFinding("k", 1, 60)}},
            0,
            Timer(60, TimerKind.FINDING, "z"),
        ),
        # Of those that end at one time the first of their kinds.
        (
            {"pending": Pending(opened_at=50, changed_at=50), "findings": {"x": GroupFinding("i", 1, 60)}},
            10,
            Timer(60, TimerKind.SETTLE),
        ),
        ({"compare_at": 40, "reporters": ["a"]}, 0, None),
        (
            {"compare_at": 40, "reporters": ["a"], "members": {"a": Member(member_id="a", name="a", joined_at=0)}},
            0,
            Timer(40, TimerKind.COMPARE),
        ),
        ({"compare_at": 40, "members": {"a": Member(member_id="a", name="a", joined_at=0)}}, 0, None),
        ({"recorded": RecordedGroup("consumer")}, 0, None),
        ({"recorded": RecordedGroup("consumer", waits_until=30)}, 0, Timer(30, TimerKind.NAMES)),
        ({"under_way_since": 30}, 0, Timer(600_030, TimerKind.STUCK)),
        ({"under_way_since": 30, "findings": {"rebalance_stuck": GroupFinding("i", 600_030)}}, 0, None),
    ],
)
def test_the_timer_that_ends_first_is_next(fields: dict[str, Any], settle_ms: int, timer: Timer | None) -> None:
    given = GroupInput(cluster="c", system="kafka", group_id="g", clock_before=None, clock=END, detected_at=0)
    view = GroupView(Group(**fields), given, Topics(), core_config(settle_ms=settle_ms, forget_after_ms=FOREVER))
    assert next_timer(view) == timer
