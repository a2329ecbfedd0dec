"""The reported state as bytes: whole again after a restart, small, and readable by later releases."""

from __future__ import annotations

import msgspec

from streaming.collectors.metaq.departures import GivenBack
from streaming.collectors.metaq.observed import (
    Folder,
    Violation,
    ZkGroup,
    ZkMember,
    ZkOwner,
    ZkOwners,
    ZkShare,
    ZkTopic,
)
from streaming.collectors.metaq.reported_state import ReportedGroupState, ReportedState, ReportedTopicState


def test_the_remembered_state_is_the_reported_one() -> None:
    member = ZkMember(("t", "u"), czxid=2**40, joined_at=5, session=-(2**60))
    owners = ZkOwners(Folder(-1, 7), {"0-0": ZkOwner("g_a", 6, 7)})
    group = ReportedGroupState(
        observed=ZkGroup(Folder(2, 3), {"g_a": member}, {"t": owners}, (Violation("/x", "not_utf8", "?"),)),
        at=9,
        strategy="metaq.default",
        given_back=(GivenBack("g_b", "t", "0-1", 8, 9),),
        observations=(("changes_missed", "2 changes"),),
        missed_at=10,
        settled=True,
    )
    shares = {"0-m": ZkShare("0", 4, 5)}
    topic = ReportedTopicState(
        observed=ZkTopic(Folder(1, 1), shares), queues=(("0", 0), ("0", 1)), at=5, doubted_since=6
    )
    state = ReportedState(groups={"g": group}, topics={"t": topic})
    assert msgspec.json.decode(msgspec.json.encode(state), type=ReportedState) == state


def test_default_values_take_no_space_and_may_be_missing() -> None:
    observed = ZkGroup(Folder(), {}, {})
    assert set(msgspec.json.decode(msgspec.json.encode(ReportedGroupState(observed=observed, at=5)))) == {"seen", "at"}
    least = b'{"groups":{"g":{"seen":{"ids":{},"members":{},"topics":{}},"at":5,"of a later release":1}}}'
    assert msgspec.json.decode(least, type=ReportedState).groups == {"g": ReportedGroupState(observed=observed, at=5)}


def test_a_topic_that_was_never_reported_differs_from_one_without_queues() -> None:
    topic = ZkTopic(Folder(), {})
    never, none = ReportedTopicState(observed=topic), ReportedTopicState(observed=topic, queues=())
    decoded = [
        msgspec.json.decode(msgspec.json.encode(state), type=ReportedTopicState).queues for state in (never, none)
    ]
    assert decoded == [None, ()]
