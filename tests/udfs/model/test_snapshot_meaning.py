"""What a snapshot says: one meaning for each combination of its fields."""

from __future__ import annotations

from typing import Any

import pytest

from udfs.model.events import GroupSnapshot, MemberInfo, QueueRef
from udfs.model.snapshot_meaning import Meaning, has_joined, meaning_of, names_generation

MEMBERS = (MemberInfo(member_id="m"),)
HELD = {"m": (QueueRef("t", 0),)}


def snapshot(**fields: Any) -> GroupSnapshot:
    common = {"schema_version": 1, "event_time": 0, "system": "kafka", "cluster": "c", "group": "g"}
    return GroupSnapshot(**common | fields)


@pytest.mark.parametrize(
    ("fields", "meaning"),
    [
        ({"restored": True, "generation": 3, "state": "PreparingRebalance"}, Meaning.RESTORED),
        ({"restored": True, "generation_source": "counted", "members": MEMBERS}, Meaning.RESTORED),
        ({"state": "not_followed"}, Meaning.LISTED),
        ({"state": "not_followed", "generation": 3, "members": MEMBERS, "protocol": "share"}, Meaning.LISTED),
        ({"state": "PreparingRebalance"}, Meaning.UNDER_WAY),
        ({"state": "PREPARING_REBALANCE", "generation_source": "counted", "members": MEMBERS}, Meaning.UNDER_WAY),
        ({"state": "CompletingRebalance", "generation": 3}, Meaning.UNDER_WAY),
        ({"state": "Stable", "generation": 3, "members": MEMBERS, "assignments": HELD}, Meaning.NUMBERED),
        ({"generation": 0, "state": "Empty"}, Meaning.NUMBERED),
        ({"generation": 3, "generation_source": "counted", "members": MEMBERS}, Meaning.NUMBERED),
        ({"generation_source": "counted", "state": "Stable"}, Meaning.ASSIGNED),
        ({"generation_source": "counted", "members": MEMBERS, "assignments": HELD}, Meaning.ASSIGNED),
        ({"state": "Stable"}, Meaning.OVER),
        ({"state": "stable", "reason": "a member left"}, Meaning.OVER),
        ({"state": "Stable", "system": "rocketmq"}, Meaning.POLLED),
        ({"state": "Stable", "assignments": {}}, Meaning.POLLED),
        ({"state": "Stable", "members": MEMBERS}, Meaning.POLLED),
        ({"state": "Empty"}, Meaning.POLLED),
        ({"system": "rocketmq", "members": MEMBERS, "strategy": "AVG"}, Meaning.POLLED),
    ],
    ids=str,
)
def test_each_snapshot_says_one_thing(fields: dict[str, Any], meaning: Meaning) -> None:
    assert meaning_of(snapshot(**fields)) is meaning


def test_a_rebalance_under_way_may_name_the_generation_before_it_and_an_export_names_none() -> None:
    assert names_generation(snapshot(state="PreparingRebalance", generation=3))
    assert names_generation(snapshot(generation_source="counted"))
    assert not names_generation(snapshot(state="PreparingRebalance"))
    assert not names_generation(snapshot(generation=3, restored=True))


def test_members_have_joined_once_their_coordinator_waits_for_the_assignment() -> None:
    assert has_joined(snapshot(state="completing_rebalance"))
    assert has_joined(snapshot(state="PreparingRebalance", joined_at=5))
    assert not has_joined(snapshot(state="PreparingRebalance"))
