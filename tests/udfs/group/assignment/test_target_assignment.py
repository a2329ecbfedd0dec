"""What a group's own strategy computes from known topics and described members."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import Script
from udfs.model.events import QueueRef


@pytest.mark.parametrize("also", [("t",), ("u",)], ids=["holds some", "holds none"])
def test_a_member_that_reports_what_it_holds_changes_nothing_whatever_others_hold_and_claim(also: tuple[str]) -> None:
    """A claim without a generation is of the last one, as is what silent members held."""
    found = []
    for is_reported in (False, True):
        script = Script()
        script.queues(0, "t", 4)
        how = {"strategies": ("cooperative-sticky",)}
        script.join(10, "a", **how)
        script.join(10, "b", also, **how)
        script.run(15)
        held = tuple(QueueRef("t", int(one[2:])) for one, member in script.owners(10).items() if member == "a")
        if is_reported:
            script.join(20, "a", owned=held)
        script.join(21, "b", owned=(held[0],))  # it never had that one
        script.join(30, "c", **how)
        found.append(script.run(40).owners(30))
    assert found[0] == found[1]
