"""The encoding of a shard's state: what goes in comes out, and what cannot be read is refused."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from udfs import state_codec
from udfs.errors import StateVersionError
from udfs.state_codec import (
    STATE_VERSION,
    Header,
    narrow,
    pack_column,
    pack_keys,
    pack_parts,
    pack_state,
    unpack_column,
    unpack_keys,
    unpack_parts,
    unpack_state,
    widen,
)

SMALLEST, GREATEST = -(2**62), 2**62


@given(st.lists(st.integers(SMALLEST, GREATEST), max_size=50))
@example([])
@example([0])
@example([GREATEST, SMALLEST])
@example([2**62] * 40 + [5])
def test_a_column_comes_back(values: list[int]) -> None:
    packed = pack_column(np.asarray(values, dtype=np.int64))
    assert unpack_column(packed).tolist() == values


@pytest.mark.parametrize(
    ("values", "bytes_each"),
    [
        ([7] * 1000, 0),
        (range(1_000_000, 1_000_256), 1),
        (range(0, 65_536, 256), 2),
        ([0, 2**24 - 1] * 500, 3),
        ([0, 2**40 - 1] * 500, 5),
    ],
)
def test_a_column_takes_as_few_bytes_as_its_spread_needs(values: list[int], bytes_each: int) -> None:
    assert len(pack_column(np.asarray(values, dtype=np.int64))) == 17 + bytes_each * len(values)


def test_a_few_values_far_away_do_not_widen_the_others() -> None:
    values = np.asarray([*range(60_000), 0, -(10**12)], dtype=np.int64)
    assert len(pack_column(values)) == 17 + 2 * 60_002 + 12
    assert unpack_column(pack_column(values)).tolist() == values.tolist()


@given(st.lists(st.integers(0, 2**64 - 1)), st.integers(1, 8))
def test_narrow_keeps_the_lowest_bytes(values: list[int], width: int) -> None:
    array = np.asarray(values, dtype=np.uint64)
    assert widen(narrow(array, width), width).tolist() == [value % 256**width for value in values]


def test_a_key_keeps_its_upper_forty_bits() -> None:
    keys = np.asarray([0x0102030405060708, 2**64 - 1], dtype=np.uint64)
    assert len(pack_keys(keys)) == 10
    assert unpack_keys(pack_keys(keys)).tolist() == [0x0102030405000000, 0xFFFFFFFFFF000000]


@given(st.lists(st.binary(max_size=20), max_size=6))
def test_parts_come_back(parts: list[bytes]) -> None:
    packed = pack_parts(*parts)
    assert [bytes(part) for part in unpack_parts(packed, len(parts))] == parts


def test_an_empty_section_has_empty_parts() -> None:
    assert unpack_parts(b"", 3) == [b"", b"", b""]


def test_a_state_comes_back() -> None:
    header = Header(clock=5, newest=7, groups=2)
    state = pack_state(header, {"a": b"12", "none": b"", "b": b"345"})
    assert state[0] == STATE_VERSION
    again, sections = unpack_state(state)
    assert (again.clock, again.newest, again.groups) == (5, 7, 2)
    assert {name: bytes(body) for name, body in sections.items()} == {"a": b"12", "b": b"345"}


def test_a_newer_encoding_is_refused_with_both_versions() -> None:
    state = bytearray(pack_state(Header(), {}))
    state[0] = STATE_VERSION + 1
    with pytest.raises(StateVersionError, match=rf"encoding {STATE_VERSION + 1}.* up to {STATE_VERSION}"):
        unpack_state(bytes(state))


def test_an_older_encoding_is_upgraded_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    old = bytearray(pack_state(Header(clock=5), {"a": b"12"}))
    monkeypatch.setattr(state_codec, "STATE_VERSION", STATE_VERSION + 2)

    def first(header: dict, sections: dict) -> tuple[dict, dict]:
        return header | {"newest": 8}, sections | {"b": b"added"}

    def second(header: dict, sections: dict) -> tuple[dict, dict]:
        return header, {"renamed": sections["a"], "b": sections["b"]}

    monkeypatch.setitem(state_codec.UPGRADES, STATE_VERSION, first)
    monkeypatch.setitem(state_codec.UPGRADES, STATE_VERSION + 1, second)
    header, sections = unpack_state(bytes(old))
    assert (header.clock, header.newest) == (5, 8)
    assert {name: bytes(body) for name, body in sections.items()} == {"renamed": b"12", "b": b"added"}


@pytest.mark.parametrize("state", [b"\x01", b"\x00" * 9, b"\x01\xff\xff\xff\xff", b"\x01\x02\x00\x00\x00\xc1\xc1"])
def test_damage_is_named(state: bytes) -> None:
    with pytest.raises(StateVersionError, match="damaged"):
        unpack_state(state)


@given(st.data())
def test_a_state_cut_short_is_refused(data: st.DataObject) -> None:
    state = pack_state(Header(clock=5), {"a": b"0123456789", "b": b"01234"})
    with pytest.raises(StateVersionError):
        unpack_state(state[: data.draw(st.integers(0, len(state) - 1))])


def test_a_pickle_is_no_state() -> None:
    with pytest.raises(StateVersionError):
        unpack_state(b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00.")


def test_an_unknown_field_in_the_header_is_refused() -> None:
    head = msgspec.msgpack.encode({"sections": [], "surprise": 1})
    with pytest.raises(StateVersionError, match="surprise"):
        unpack_state(bytes([STATE_VERSION]) + len(head).to_bytes(4, "little") + head)
