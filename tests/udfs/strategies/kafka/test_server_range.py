"""The coordinator's range assignor."""

import msgspec

from tests.udfs.strategies.groups import as_text, group
from udfs.strategies.registry import strategy


def test_five_and_three_partitions_of_two_members_are_those_of_a_live_group() -> None:
    answer = strategy("server.range", "kafka")(group({"a": ["t1", "t2"], "b": ["t1", "t2"]}, {"t1": 5, "t2": 3}))
    assert as_text(answer) == {"a": "t1-0 t1-1 t1-2 t2-0 t2-1", "b": "t1-3 t1-4 t2-2"}


def test_static_members_come_first_whatever_the_leaders_library() -> None:
    problem = group({"a": ["t"], "b": ["t"], "c": []}, {"t": 3}, settings={"library": "java-1.0"})
    static = tuple(
        msgspec.structs.replace(member, instance_id="i" if member.member_id == "b" else None)
        for member in problem.members
    )
    answer = strategy("server.range", "kafka")(msgspec.structs.replace(problem, members=static))
    assert as_text(answer) == {"a": "t-2", "b": "t-0 t-1", "c": ""}
