"""What a shard remembers between batches: groups and their members' rows, written and read again."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.core_config import core_config
from tests.udfs.shard.state_samples import COLLIDING
from udfs.model.errors import StateVersionError
from udfs.model.group_api import GroupOutput
from udfs.packets.packet import group_key
from udfs.shard.cluster_time import ClusterTime
from udfs.shard.state import Record, ShardState, Written, cut_keys, written_of
from udfs.shard.state_format import Header, StateSection, pack_state, unpack_state
from udfs.shard.wake_index import topic_hash

RULES = core_config(shards=1, allowed_lateness_ms=2_000)
NEW = Record("g", "kafka", None, None, b"")


def output(**last_heartbeat: int) -> GroupOutput:
    return GroupOutput(
        last_heartbeat=last_heartbeat,
        session_timeouts_ms={member: 1_000 + len(member) for member in last_heartbeat},
        topics=["t"],
        wake_at=77,
        last_applied_ms=5,
    )


def kept(name: str, advanced: GroupOutput, state: ShardState) -> None:
    record = msgspec.structs.replace(NEW, name=name)
    keys = cut_keys(list(advanced.last_heartbeat))
    assert state.write({group_key("c", name): written_of(record, b"bytes", advanced, keys)}) == []


def number_of(state: ShardState, name: str) -> int:
    return int(state.find(np.asarray([group_key("c", name)], dtype=np.uint64))[0])


def test_a_group_is_read_as_it_was_written_with_a_row_for_each_member() -> None:
    state = ShardState("c", None, RULES)
    kept("g", output(a=10, bb=20), state)
    kept("h", output(a=30), state)
    state = ShardState("c", state.encode(), RULES)
    number = number_of(state, "g")
    assert state.record(number) == Record("g", "kafka", 5, None, b"bytes")
    rows = state.rows_of(number)
    expected = {int(cut_keys([member])[0]): (at, 1_000 + len(member)) for member, at in (("a", 10), ("bb", 20))}
    columns = (state.live.last[rows].tolist(), state.live.timeouts[rows].tolist())
    assert dict(zip(state.live.keys[rows].tolist(), zip(*columns, strict=True), strict=True)) == expected
    assert (state.wake_index.wake_of(number), state.wake_index.topics_of(number)) == (77, {topic_hash("t")})
    assert number_of(state, "unknown") == -1
    assert (state.header.groups, state.header.members) == (2, 3)


def test_a_group_with_members_of_one_key_has_no_rows_and_is_woken_at_the_first_deadline() -> None:
    first, second = COLLIDING
    advanced = output(**{first: 10, second: 40})
    advanced.session_timeouts_ms = {first: 100, second: 50}
    written = written_of(NEW, b"bytes", advanced, cut_keys(list(COLLIDING)))
    assert written.last_heartbeat == {}
    assert msgspec.msgpack.decode(written.record, type=Record).last_heartbeats == {first: 10, second: 40}
    assert written.wake_at == 77  # sooner than both deadlines
    advanced.wake_at = None
    assert written_of(NEW, b"", advanced, cut_keys(list(COLLIDING))).wake_at == 40 + 50
    apart = written_of(NEW, b"", output(a=1, b=2), cut_keys(["a", "b"]))
    assert apart.last_heartbeat == {"a": 1, "b": 2}
    assert msgspec.msgpack.decode(apart.record, type=Record).last_heartbeats is None


def test_keys_of_members_have_40_bits() -> None:
    keys = cut_keys(["a", *COLLIDING])
    assert (keys & np.uint64((1 << 24) - 1)).tolist() == [0, 0, 0]
    assert keys[1] == keys[2] != keys[0]


def test_waiting_heartbeats_of_a_member_that_lost_its_row_come_back() -> None:
    state = ShardState("c", None, RULES)
    kept("g", output(a=10, b=20), state)
    row = state.rows_of(number_of(state, "g"))
    state.live.apply_due(np.asarray([row.start, row.start + 1]), np.asarray([90, 91]), None, 50)
    [lost] = state.write({group_key("c", "g"): written_of(NEW, b"", output(b=20), cut_keys(["b"]))})
    key, member_key, at = lost
    assert (key, member_key) == (group_key("c", "g"), int(cut_keys(["a"])[0]))
    assert at in (90, 91)


def test_unchanged_sections_are_copied_and_batches_counted() -> None:
    state = ShardState("c", None, RULES)
    kept("g", output(a=10), state)
    first = state.encode()
    again = ShardState("c", first, RULES)
    second = again.encode()
    before, after = unpack_state(first), unpack_state(second)
    assert {name: bytes(section.body) for name, section in before[1].items()} == {
        name: bytes(section.body) for name, section in after[1].items()
    }
    assert (before[0].batches, after[0].batches) == (1, 2)
    assert again.write({}) == []


def test_a_state_from_before_clusters_had_a_time_has_come_as_far_as_its_clock() -> None:
    data = pack_state(Header(clock=10_000), {})
    assert ShardState("c", data, RULES).time == ClusterTime(recorded=12_000)
    assert ShardState("c", None, RULES).time == ClusterTime()


def test_the_clock_before_the_batch_is_the_one_that_was_stored_until_another_is_set() -> None:
    state = ShardState("c", pack_state(Header(clock=10_000), {}), RULES)
    assert state.clock_before == 10_000
    state.set_clock_before(9)
    assert state.clock_before == 9


def test_a_section_that_cannot_be_read_is_damage_with_its_reason() -> None:
    data = pack_state(Header(), {"silence": StateSection(b"\xc1")})
    with pytest.raises(StateVersionError, match="a section of the state"):
        ShardState("c", data, RULES)
    assert Written(b"", {}, {}, None, []).topics == []
