"""Lines that are read as a block say what they say when they are read one by one."""

from __future__ import annotations

from collections.abc import Iterator

import hypothesis.strategies as st
import msgspec
import pyarrow as pa
import pytest
from hypothesis import given

from tests.core_config import core_config
from tests.udfs.event_lines import NOW
from tests.udfs.ingest.test_combiner import LINES, combined, content_of
from udfs.ingest import block_parser
from udfs.ingest.block_parser import UniformHeartbeats, parse_uniform_lines
from udfs.ingest.parser import BareHeartbeat, decode_lines

PLAIN = (
    b'{"schema_version":1,"type":"heartbeat","event_time":1763710000123,"system":"kafka","cluster":"c1",'
    b'"group":"g1","member_id":"m1"}'
)
SHAPES = [
    PLAIN,
    PLAIN.replace(b":", b": ").replace(b",", b", "),
    PLAIN.replace(b'"}', b'","event_id":"e1"}'),
    PLAIN.replace(b'"}', b'","event_id":null}'),
    PLAIN.replace(b'"}', b'","group":"g2"}'),
    PLAIN.replace(b'"}', b'","event_id":" { "}'),
    b'{ "member_id" : "m1", "type":"heartbeat","group":"g,1","cluster":"c1","system":"metaq","event_time":17'
    b' ,"schema_version":1 }',
    b'{"type":"clock","schema_version":1,"event_time":1763710000123,"system":"kafka","cluster":"c1"}',
]
# Bytes that mean something to JSON, that are no text, or none that may stand in a name.
NASTY = b'"\\,:{}[] \t\r019-.eE+ntaux/\x00\x1f\x7f\x80\xc3\xa9\xff'


@pytest.fixture(autouse=True)
def _blocks_of_few_lines() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_parser, "_FEWEST", 1)
        patch.setattr(block_parser, "_AT_ONCE", 3)
        yield


def one_by_one(part: UniformHeartbeats) -> list[tuple[str, str, str, str, int]]:
    columns = zip(part.groups.to_pylist(), part.member_ids.to_pylist(), part.times.tolist(), strict=True)
    return [(part.system, part.cluster, group, member, time) for group, member, time in columns]


def read(lines: list[bytes | None]) -> dict[int, tuple[str, str, str, str, int]]:
    """Return what was read as blocks, by row; each row once, read or left."""
    parts, others = parse_uniform_lines(pa.array(lines, pa.binary()))
    found = {row: beat for part in parts for row, beat in zip(part.rows.tolist(), one_by_one(part), strict=True)}
    assert sorted([*found, *others.tolist()]) == list(range(len(lines)))
    assert sum(len(part.rows) for part in parts) == len(found)
    assert others.tolist() == sorted(others.tolist())
    return found


def marred(line: bytes, at: int, byte: int) -> bytes:
    at %= len(line)
    return line[:at] + bytes([byte]) + line[at + 1 :]


MARRED = st.builds(marred, st.sampled_from(SHAPES), st.integers(0, 200), st.sampled_from(NASTY))


def check(lines: list[bytes | None]) -> None:
    for row, beat in read(lines).items():
        (event,) = decode_lines([lines[row] or b""])
        assert isinstance(event, BareHeartbeat)
        assert beat == (event.system, event.cluster, event.group, event.member_id, event.event_time)


@given(st.lists(st.one_of(st.sampled_from(SHAPES), MARRED, MARRED, st.none(), st.just(b"")), max_size=20))
def test_a_block_is_read_as_each_of_its_lines(lines: list[bytes | None]) -> None:
    check(lines)


@pytest.mark.parametrize("shape", SHAPES[:3])
def test_no_byte_of_a_line_is_passed_over(shape: bytes) -> None:
    check([shape, *(marred(shape, at, byte) for at in range(len(shape)) for byte in NASTY), b" " * 50])


@given(LINES, st.lists(MARRED, max_size=8))
def test_a_batch_has_the_same_content_whether_it_is_read_as_blocks_or_not(
    lines: list[bytes | None], more: list[bytes]
) -> None:
    as_blocks = content_of(combined([*lines, *more]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_parser, "_FEWEST", 1000)
        assert content_of(combined([*lines, *more])) == as_blocks


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if b"heartbeat" in shape and b"null" not in shape])
def test_plain_lines_are_read_as_a_block(shape: bytes) -> None:
    is_twice = shape.count(b'"group"') > 1
    lines = [shape.replace(b"m1", b"m%d" % number) for number in range(10)] + [b" " * 50]
    found = read(list(lines))
    assert list(found) == ([] if is_twice else list(range(10)))
    assert [member for _, _, _, member, _ in found.values()] == [f"m{number}" for number in range(len(found))]


def test_lines_of_several_shapes_and_lengths_are_read() -> None:
    lines = [
        PLAIN.replace(b"g1", b"g" * (1 + number % 3)).replace(b"m1", b"m" * (1 + number % 2)).replace(b"c1", cluster)
        for number in range(60)
        for cluster in (b"c1", b"c2")
    ]
    # The last lines lie too near to the end of the column for whole words.
    assert len(read([*lines, b" " * 50])) == 120


def test_a_slice_of_a_column_is_read_as_what_it_is() -> None:
    lines = pa.array([*(PLAIN.replace(b"m1", b"m%d" % number) for number in range(9)), b" " * 50], pa.binary())
    (part,), others = parse_uniform_lines(lines.slice(3, 4))
    assert part.member_ids.to_pylist() == ["m3", "m4", "m5", "m6"]
    assert part.rows.tolist() == [0, 1, 2, 3]
    assert not len(others)


def test_a_null_slot_is_no_heartbeat_whatever_its_bytes() -> None:
    lines = pa.array([PLAIN, PLAIN, b" " * 50], pa.binary())
    _, bounds, content = lines.buffers()
    column = pa.BinaryArray.from_buffers(pa.binary(), 3, [pa.py_buffer(b"\x06"), bounds, content])
    (part,), others = parse_uniform_lines(column)
    assert (part.rows.tolist(), others.tolist()) == ([1], [0, 2])


def test_a_line_longer_than_an_event_may_be_is_left() -> None:
    lines = pa.array([PLAIN, PLAIN, b" " * 50], pa.binary())
    assert parse_uniform_lines(lines, len(PLAIN))[0]
    assert not parse_uniform_lines(lines, len(PLAIN) - 1)[0]
    packets = combined([PLAIN, PLAIN], config=core_config(max_event_bytes=len(PLAIN) - 1))
    assert {row.reason for _, _, packet in packets for row in packet.rejected} == {"oversized_event"}


def test_a_time_out_of_range_is_rejected_as_of_any_line() -> None:
    lines = [PLAIN.replace(b"1763710000123", time) for time in (b"1763710000123", b"0946684799999", b"946684799999")]
    lines += [PLAIN.replace(b"1763710000123", b"%d" % (NOW + 10**9)), PLAIN, b" " * 50]
    packets = combined(list(lines))
    reasons = sorted(row.reason for _, _, packet in packets for row in packet.rejected)
    assert reasons == ["event_time_ahead_of_clock", "event_time_before_2000", "not_json"]


def test_members_of_other_events_are_no_heartbeats() -> None:
    line = msgspec.json.encode({**msgspec.json.decode(PLAIN), "client_id": "heartbeat"})
    assert read([line] * 5) == {}
