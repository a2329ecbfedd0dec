"""What the events of one time come to: only the state after all of them counts."""

from __future__ import annotations

from tests.udfs.group.group_script import Script
from udfs.model.journal import MemberChanged, MemberClosed, MemberOpened


def test_a_description_at_the_time_of_a_departure_stays_with_the_session() -> None:
    script = Script()
    script.beat(10, "a")
    script.poll(20, ("a", "h"))
    script.leave(20, "a")
    script.run(30)
    written = script.bodies(MemberOpened, MemberClosed)
    assert [type(body) for body in written] == [MemberOpened, MemberChanged, MemberClosed]
