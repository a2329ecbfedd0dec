"""The interface between a shard and its groups: the coordinator is what a shard expects."""

import inspect

import pytest

from udfs.group import coordinator
from udfs.model.group_api import DueEvent, GroupInput, GroupLogic, GroupOutput

FUNCTIONS = sorted(name for name in vars(GroupLogic) if not name.startswith("_"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_coordinator_has_every_function_that_a_shard_calls_with_its_arguments(name: str) -> None:
    wanted = list(inspect.signature(getattr(GroupLogic, name)).parameters)[1:]
    offered = inspect.signature(getattr(coordinator, name)).parameters
    assert len(offered) == len(wanted)
    assert all(parameter.default is inspect.Parameter.empty for parameter in offered.values())


def test_there_are_functions_to_call() -> None:
    assert {"new_group", "encode_group", "decode_group", "advance"} <= set(FUNCTIONS)


def test_two_groups_share_none_of_their_lists_and_maps() -> None:
    first, second = GroupOutput(), GroupOutput()
    first.changes.append(None)  # type: ignore[arg-type]
    first.last_heartbeat["m"] = 1
    assert (second.changes, second.last_heartbeat) == ([], {})
    group_input, other = (
        GroupInput(cluster="c", system="kafka", group_id="g", clock_before=None, clock=1, detected_at=1) for _ in "ab"
    )
    assert group_input.heartbeats is not other.heartbeats
    # Without a limit a group does all that is due.
    assert group_input.work_limit is None


def test_an_event_is_on_time_unless_it_is_marked_as_late() -> None:
    assert DueEvent(None, "id").late is False  # type: ignore[arg-type]
