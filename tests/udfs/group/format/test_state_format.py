"""A group becomes few bytes and comes back the same."""

from __future__ import annotations

import zlib

import msgspec
import pytest
from hypothesis import example, given, settings

from tests.udfs.group.group_script import T0, Script, assigned
from tests.udfs.group.test_coordinator import _HISTORIES, _feed
from udfs.group.format.field_times import DESCRIBED
from udfs.group.format.state_format import _PLAIN, GROUP_VERSION, decode_group, encode_group
from udfs.group.state.audit_results import CurrentAudit, StrategyVerdict
from udfs.group.state.episodes import Culprit, Episode, Root, RootClient
from udfs.group.state.flapping import Usual
from udfs.group.state.group import Group, Replacement
from udfs.group.state.queue_findings import (
    BackQueue,
    CommitsBack,
    Committer,
    ExpiredCommits,
    ExpiredQueue,
    Standstill,
    UnreadQueues,
)
from udfs.group.state.recorded_group import RecordedGroup
from udfs.group.state.writing import assign
from udfs.model.errors import StateVersionError
from udfs.model.finding_names import FindingNames


def silent_group(members: int, queues: int) -> Group:
    script = Script("rocketmq")
    script.queues(0, "topic-0042", queues)
    for number in range(members):
        member = f"consumer-group-000123-{number}"
        script.join(10, member, ("topic-0042",), client_id=member, host="10.0.0.1")
    return script.run(20).group


# The generation decides what is pending at an earlier time; a topic of it gets metadata later.
@settings(max_examples=200)
@given(history=_HISTORIES)
@example(
    history=[
        ("describe", 1_600, "a", ("t", "u"), None),
        ("queues", 0, "u", 1),
        ("queues", 1_800, "t", 1),
        ("generation", 1_700, 0, {"a"}, 0),
    ]
)
def test_encoded_state_decodes_to_the_same(history: list[tuple[object, ...]]) -> None:
    for settle_ms in (0, 1_500):
        script = Script(settle_ms=settle_ms)
        _feed(script, history)
        script.run(4_000)
        assert decode_group(encode_group(script.group)) == script.group


def test_every_field_of_a_member_comes_back() -> None:
    described = {
        "client_id": "client",
        "host": "h",
        "instance_id": "i",
        "rack": "r",
        "language": "JAVA",
        "protocol": "classic",
        "process_id": "p",
        "ordered": True,
        "client_library": "java-4.1",
        "client_version": "V5_5_0",
        "strategies": ("range", "sticky"),
        "strategy_settings": {"virtual_nodes": 7},
        "session_timeout_ms": 5,
        "rebalance_timeout_ms": 6,
    }
    script = Script()
    script.join(10, "client-1", ("t", "u"), **described)
    script.run(11)
    member = decode_group(encode_group(script.group)).members["client-1"]
    assert member == script.group.members["client-1"]
    assert (member.name, member.joined_at, member.by_heartbeats) == ("client-1", T0 + 10, True)
    assert member.subscriptions == ("t", "u")
    assert {name: getattr(member, name) for name in described} == described
    assert member.field_times == dict.fromkeys([name for name in DESCRIBED if not name.startswith("owned")], T0 + 10)
    member = msgspec.structs.replace(member, timeout_since=T0 + 30, reported_at=T0 + 40, own_joined_at=T0 + 5)
    assign(script.group, members={"client-1": member})
    assert decode_group(encode_group(script.group)) == script.group


def test_a_silent_group_of_ten_is_small_and_smaller_beside_its_neighbours() -> None:
    """Sixty-four groups lie in one block: each member may cost twelve bytes there, before the hot columns."""
    encoded = encode_group(silent_group(10, 20))
    assert len(encoded) < 700
    block = b"".join(encoded.replace(b"000123", f"{number:06}".encode()) for number in range(64))
    assert len(zlib.compress(block)) < 64 * 10 * 12


def test_whether_an_earlier_batch_wrote_of_the_time_of_a_generation_that_waits_is_kept() -> None:
    for is_cut in (False, True):
        script = Script()
        script.snapshot(10, 1, {}, {})
        if is_cut:
            script.run(11)
        script.snapshot(10, 2, {"a": ["t"]}, strategy="range")
        awaited = script.run(20).group.awaited
        assert awaited is not None
        assert awaited.again == (None if is_cut else [])


# Fields that were added one by one, by their places in the bytes: never moved, only appended.
ADDED = {
    "reported_at": 30,
    "strategy_inferred": 31,
    "recomputable": 32,
    "compare_at": 33,
    "replaced": 34,
    "settings_at": 35,
    "last_heartbeats": 36,
    "assigned_at": 37,
    "usual": 38,
    "polled": 39,
    "logical_id": 40,
    "preparing_reason": 41,
    "join_ended_at": 42,
    "recorded": 43,
    "audit": 44,
    "verdict": 45,
    "last_library": 46,
    "waiting_since": 47,
    "converging": 48,
    "deleted_at": 49,
    "computed_at": 50,
    "under_way_since": 51,
    "returned_after": 52,
    "recent_clients": 53,
    "standstill": 54,
    "unread": 55,
    "retention": 56,
    "went_back": 57,
    "expired": 58,
    "roots": 59,
    "episodes": 60,
}
OF_EACH = {
    "reported_at": T0,
    "strategy_inferred": True,
    "recomputable": False,
    "compare_at": T0 + 1,
    "replaced": [Replacement("i-1", "i-2", "i", T0)],
    "settings_at": {"mode": T0},
    "last_heartbeats": {"a": T0},
    "assigned_at": T0 + 2,
    "usual": Usual(T0, T0 + 3, 500),
    "polled": True,
    "logical_id": "first",
    "preparing_reason": "a member left",
    "join_ended_at": T0 + 4,
    "recorded": RecordedGroup("consumer", epoch=3),
    "audit": CurrentAudit("agrees", is_evidence=True, at=T0),
    "verdict": StrategyVerdict("kafka.range", "proven", 2, T0),
    "last_library": "java-3.4+",
    "waiting_since": {("t", None, 3): T0},
    "converging": True,
    "deleted_at": T0 + 5,
    "computed_at": T0 + 6,
    "under_way_since": T0 + 7,
    "returned_after": {"a": T0},
    "recent_clients": [[], [7]],
    "standstill": Standstill("queue_stalled", T0, 7, T0, 1, "t-0 has not moved.", FindingNames(queues_left_out=1)),
    "unread": UnreadQueues({("t", None, 2): T0}, T0 + 1, "t-2 is read by nobody.", FindingNames(queues_left_out=1)),
    "retention": {"messages_lost": Standstill("messages_lost", T0, 7, T0, 1, "7 were lost.", FindingNames())},
    "went_back": CommitsBack({("t", None, 2): BackQueue(T0, 9, T0 + 1, 5, T0 + 1, 1, Committer(None))}, T0 + 1),
    "expired": ExpiredCommits({("t", None, 2): ExpiredQueue(T0, 9)}, T0 + 1),
    "roots": [Root(T0, bytes(16), 3, [RootClient(1, 2, 5, 900, 2)], 4, None, 6, None, 1, True, ["t"], True)],
    "episodes": [
        Episode(number=1, episode_id="e", kind="scaling", began_at=T0, last_at=T0 + 1, culprit=Culprit(2, prefix="a"))
    ],
}


def written_before(data: bytes, field: str) -> bytes:
    """Return the bytes of a group as they were before a field existed: without it and all that were added later."""
    version, values, body = msgspec.msgpack.decode(data)
    body[7] = {place: value for place, value in body[7].items() if place < ADDED[field]}
    return msgspec.msgpack.encode([version, values, body])


def test_every_field_that_was_added_is_written_at_its_place() -> None:
    assert OF_EACH.keys() == ADDED.keys()
    for name, value in OF_EACH.items():
        _, _, body = msgspec.msgpack.decode(encode_group(Group(**{name: value})))
        assert list(body[7]) == [ADDED[name]]
    assert max(ADDED.values()) == len(_PLAIN) - 1


@pytest.mark.parametrize("field", ADDED)
def test_a_state_without_a_field_that_was_added_later_has_its_default(field: str) -> None:
    data = written_before(encode_group(Group(**OF_EACH)), field)
    earlier = {name: value for name, value in OF_EACH.items() if ADDED[name] < ADDED[field]}
    assert decode_group(data) == Group(**earlier)


def cooperative_with_libraries() -> Script:
    """Return a group that takes queues from a member, is joined by another, and gives them out; by client libraries."""
    script = Script()
    script.queues(0, "t", 4)
    config = {"strategy": "cooperative-sticky", "leader": "a"}
    java = {"client_library": "java-3.4+"}
    three = {name: ["t"] for name in "abc"}
    of_all = dict.fromkeys("abc", java)
    script.snapshot(1_000, 1, {"a": ["t"]}, assigned(a="0 1 2 3"), of_all, **config)
    script.snapshot(2_000, 2, {"a": ["t"], "b": ["t"]}, assigned(a="0 1", b=""), of_all, **config)
    script.snapshot(3_000, 3, three, assigned(a="0 1", b="", c=""), of_all, **config)
    script.snapshot(4_000, 4, three, assigned(a="0 1", b="2", c="3"), of_all, **config)
    return script


@pytest.mark.parametrize("field", [name for name, place in ADDED.items() if place >= ADDED["usual"]])
def test_a_group_is_continued_from_a_state_that_was_written_before_a_field_existed(field: str) -> None:
    whole, former = cooperative_with_libraries(), cooperative_with_libraries()
    for script in (whole, former):
        script.run(3_500)
    assert whole.group.last_library == "java-3.4+"
    former.group = decode_group(written_before(encode_group(former.group), field))
    for script in (whole, former):
        script.run(9_000)
    kept = ("generation", "event_time", "trigger", "strategy", "library", "agrees", "queues_assigned")
    rows = [[tuple(getattr(row, name) for name in kept) for row in script.rebalances] for script in (whole, former)]
    assert rows[0] == rows[1]
    assert former.group.last_library == "java-3.4+"
    assert former.row().library == whole.row().library
    assert (former.group.computed, former.group.reported) == (whole.group.computed, whole.group.reported)
    assert decode_group(encode_group(former.group)) == former.group


def test_queues_between_two_owners_come_back() -> None:
    script = Script("rocketmq")
    script.queues(0, "t", 6)
    script.poll(10, "a", "b")
    script.holds(20, "a", [("t", 0), ("t", 1), ("t", 2)], {("t", 0): 15, ("t", 2): 19})
    script.holds(30, "b", [("t", 3), ("t", 4)])
    script.poll(1_000, "a")
    group = script.run(2_000).group
    assert (len(group.pulls), len(group.idle_queues)) == (2, 3)
    assert decode_group(encode_group(group)) == group


def test_a_newer_encoding_is_refused() -> None:
    newer = msgspec.msgpack.encode([GROUP_VERSION + 1, [], []])
    with pytest.raises(StateVersionError, match=f"encoding {GROUP_VERSION + 1}.*up to {GROUP_VERSION}"):
        decode_group(newer)


@pytest.mark.parametrize("cut", [0, 1, 10, -1])
def test_damaged_bytes_are_refused(cut: int) -> None:
    with pytest.raises(StateVersionError, match="damaged"):
        decode_group(encode_group(silent_group(2, 4))[:cut])


def test_other_things_than_groups_are_refused() -> None:
    for value in (None, 7, [], [1, 2], ["x", [], []], [1, [], [0] * 8], {"a": 1}):
        with pytest.raises(StateVersionError):
            decode_group(msgspec.msgpack.encode(value))
