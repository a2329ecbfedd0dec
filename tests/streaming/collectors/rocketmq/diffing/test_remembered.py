"""Knowledge that one round hands to the next, and what it proves."""

from __future__ import annotations

import msgspec
import pytest

from streaming.collectors.rocketmq.diffing.remembered import GroupEvidence, RememberedMember, RememberedState
from tests.streaming.collectors.rocketmq.surveys import first_round
from udfs.model.events import HeldQueue, MemberInfo


def test_a_state_of_another_version_is_refused() -> None:
    content = RememberedState(version=2).encoded()
    with pytest.raises(msgspec.DecodeError, match="version 2"):
        RememberedState.decoded(content)


def evidence(*, settled: str = "", boots: str = "", brokers: str = "ab") -> GroupEvidence:
    return GroupEvidence({}, dict.fromkeys(boots, 7), frozenset(settled), frozenset(brokers))


def test_a_member_is_no_longer_connected_where_a_broker_lists_all_that_are() -> None:
    assert evidence(settled="a").is_against("a", 1)
    # A broker that has just started may list fewer members, but no fewer than it has listed since.
    assert evidence(boots="a").is_against("a", 7)
    assert not evidence(boots="a").is_against("a", 6)
    assert not evidence().is_against("a", 7)


def test_a_broker_that_was_taken_out_leaves_no_doubt() -> None:
    assert evidence().is_doubted("a", 7)
    assert not evidence(settled="a").is_doubted("a", 7)
    assert not evidence(brokers="b").is_doubted("a", 7)


def test_remembered_state_is_restored_whole_without_the_process_own_state() -> None:
    rounds = first_round("c1", "c2")
    assert rounds.state.groups
    assert rounds.state.brokers
    assert RememberedState.decoded(rounds.state.encoded()) == rounds.state
    assert b"evidence" not in rounds.state.encoded()


def test_fields_that_have_other_names_than_in_the_first_release_are_read_under_the_old_ones() -> None:
    content = (
        b'{"version":%d,"groups":{"g":{"told":"hash","dealt":{"t":"POP"},"members":[{"info":{"member_id":"c1"},'
        b'"untold":[{"topic":"t","broker":"b","queue_id":1}]}]}}}' % RememberedState().version
    )
    group = RememberedState.decoded(content).groups["g"]
    (member,) = group.members
    assert (group.snapshot_hash, group.topic_modes) == ("hash", {"t": "POP"})
    assert member.unreported == (HeldQueue(topic="t", broker="b", queue_id=1),)


def test_only_an_unanswered_request_makes_a_member_silent() -> None:
    member = RememberedMember(info=MemberInfo(member_id="c1"))
    found = {
        failure: msgspec.structs.replace(member, failure=failure).is_silent for failure in (None, "silent", "offline")
    }
    assert (found, member.client_id) == ({None: False, "silent": True, "offline": False}, "c1")
