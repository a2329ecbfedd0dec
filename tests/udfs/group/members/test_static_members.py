"""Static members of Kafka under new ids; expected rows are worked out by hand."""

from __future__ import annotations

import pytest

from tests.udfs.group.group_script import Script


def of(instance: str, *members: str) -> dict[str, dict[str, str]]:
    return {member: {"instance_id": instance} for member in members}


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_member_that_is_replaced_while_a_rebalance_settles_starts_from_its_own_queues(is_replaced: bool) -> None:
    script = Script(settle_ms=1_000)
    script.queues(0, "t", 3)
    script.join(0, "a", strategies=("sticky",))
    script.join(0, "c", strategies=("sticky",), instance_id="i")
    script.leave(2_000, "a")
    script.join(4_000, "b", strategies=("sticky",))
    if is_replaced:
        script.join(4_500, "c-1", strategies=("sticky",), instance_id="i")
    script.run(9_000)
    row = script.rebalances[2]
    assert (row.queues_kept, row.queues_moved) == (2, 1)


# ---- within a generation
