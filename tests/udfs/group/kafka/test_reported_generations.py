"""Reported generations: causes learned by comparing, two assignments side by side, what Kafka's groups do."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import T0, Script, assigned

# ---- two assignments side by side


@pytest.mark.parametrize("late", [False, True])
def test_a_generation_that_is_reported_again_with_another_assignment_is_compared_anew(late: bool) -> None:
    script = Script()
    script.queues(0, "t", 2)
    script.snapshot(10, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    if late:  # applied at the clock, for nothing newer is known of the assignment
        script.settings(40, mode="clustering")
        script.group.last_applied = T0 + 40
        script.run(50)
    script.snapshot(20, 1, {"a": ["t"], "b": ["t"]}, assigned(a="1", b="0"), strategy="range")
    script.run(60)
    script.snapshot(70, 1, {"a": ["t"], "b": ["t"]}, assigned(a="0", b="1"), strategy="range")
    script.run(80)
    found = [one for one in script.findings() if not one.startswith("events_late")]
    assert found == [f"expected_differs {50 if late else 20}..70"]


# ---- topics


# ---- how members departed


# ---- pauses, cooperative moves


# ---- late, deleted, not followed
