"""What time alone makes due in a group."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core_config import core_config
from tests.udfs.group.group_script import T0, Script, Topics
from udfs.group.events.timers import Timer, TimerKind, next_timer
from udfs.group.state.group import Group, GroupFinding, Member, Pending
from udfs.group.state.recorded_group import RecordedGroup
from udfs.group.state.view import GroupView
from udfs.model.group_api import GroupInput

END = 10_000_000


@pytest.mark.parametrize(("clock", "is_there"), [(1_020, True), (1_021, False)])
def test_an_empty_group_is_forgotten_after_its_time_and_its_counter_is_kept(clock: int, is_there: bool) -> None:
    script = Script(forget_after_ms=1_000)
    script.join(10, "a")
    script.leave(20, "a")
    script.run(30)
    assert script.last.wake_at == T0 + 1_020
    script.run(clock)
    assert (script.group.row is not None) is is_there
    script.join(5_000, "b")
    assert script.run(6_000).decided()[-1] == "5000 #3 0->1 group_created member_joined:b"


@pytest.mark.parametrize(
    ("second", "reported"),
    [
        (1_009, ["1009 #2 1->2 member_left:a member_joined:b member_joined:c"]),
        (1_010, ["1010 #2 1->2 member_left:a member_joined:b member_joined:c"]),
        (1_011, ["510 #2 1->1 member_left:a member_joined:b", "1011 #3 1->2 member_joined:c"]),
    ],
)
def test_a_settling_window_takes_in_what_falls_within_it_and_is_never_extended(
    second: int, reported: list[str]
) -> None:
    script = Script(settle_ms=1_000)
    script.join(-2_000, "a")
    script.leave(10, "a")
    script.join(510, "b")
    script.join(second, "c")
    script.run(600)
    assert script.last.wake_at == T0 + 1_010
    assert script.run(5_000).decided()[1:] == reported


def test_six_rebalances_within_ten_minutes_of_a_calm_group_are_flapping_until_they_are_older() -> None:
    script = Script()
    script.join(-10_000_000, "z", session_timeout_ms=FOREVER)
    for number in range(3):
        script.join(1_000 * number, "a")
        script.leave(1_000 * number + 500, "a")
    script.join(100_000, "b", session_timeout_ms=END)
    script.run(150_000)
    assert script.findings() == ["flapping 2500.."]
    # The sixth newest was at 500: ten minutes later only five are left.
    assert script.last.wake_at == T0 + 500 + 600_000
    assert script.run(1_000_000).findings() == ["flapping 2500..600500"]


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
