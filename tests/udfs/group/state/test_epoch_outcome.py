"""What became of an epoch: under the ids that static members have now, and when newer epochs were without effect."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.udfs.group.record_script import partitions
from udfs.group.state.epoch_outcome import EpochOutcome, continued, under_new_ids
from udfs.model.events import MemberInfo

ZERO, ONE, BOTH = partitions("0"), partitions("1"), partitions("0 1")
PLAIN = EpochOutcome(
    epoch=3,
    at=40,
    event_id="e",
    began_at=10,
    assigned_at=11,
    overtaken=None,
    strategy="server.uniform",
    members=(MemberInfo(member_id="a"), MemberInfo(member_id="b")),
    described=True,
    owned={"a": ZERO, "b": ONE},
    steps=[(20, {"a": BOTH}), (30, {"a": ZERO, "b": ONE})],
    target={"a": ZERO, "b": ONE},
    previous={"a": BOTH},
)


def outcome(**changed: Any) -> EpochOutcome:
    return msgspec.structs.replace(PLAIN, **changed)


def test_without_static_members_that_came_back_an_outcome_is_as_it_was() -> None:
    assert under_new_ids(PLAIN, []) is PLAIN


def test_a_static_member_that_came_back_has_its_present_id_wherever_the_epoch_named_it() -> None:
    found = under_new_ids(PLAIN, [(50, "a", "a2"), (60, "a2", "a3")])
    assert [member.member_id for member in found.members] == ["a3", "b"]
    assert found.steps == [(20, {"a3": BOTH}), (30, {"a3": ZERO, "b": ONE})]
    assert (found.target, found.previous) == ({"a3": ZERO, "b": ONE}, {"a3": BOTH})
    assert found.former == {"a3": "a"}


def test_one_that_had_come_back_before_is_still_the_one_of_the_first_target() -> None:
    found = under_new_ids(outcome(former={"a": "a0"}), [(50, "a", "a2")])
    assert found.former == {"a2": "a0"}


def test_an_epoch_without_a_target_continues_with_that_of_the_newest_one() -> None:
    last = outcome(epoch=5, at=90, assigned_at=80, target={"a": BOTH}, previous={"b": BOTH})
    assert continued(outcome(target=None, assigned_at=None), last, {}) == msgspec.structs.replace(
        last, epoch=3, until=5
    )


@pytest.mark.parametrize(("renamed", "target"), [(None, {"a": ZERO, "b": ONE}), ({}, {"a": BOTH})])
def test_an_epoch_with_a_target_keeps_it_until_the_newest_one_has_its_own(
    renamed: dict[str, str] | None, target: dict[str, Any]
) -> None:
    found = continued(PLAIN, outcome(epoch=5, at=90, assigned_at=80, target={"a": BOTH}, previous={}), renamed)
    assert (found.epoch, found.until, found.at, found.assigned_at) == (3, 5, 90, 11)
    assert (found.target, found.previous, found.former) == (target, {"a": BOTH}, {})


def test_static_members_that_the_newest_target_names_otherwise_have_their_present_ids() -> None:
    found = continued(outcome(former={"a": "a0"}), outcome(epoch=5), {"a2": "a", "b2": "b"})
    assert found.former == {"a2": "a0", "b2": "b"}
    assert found.previous == {"a2": BOTH}
