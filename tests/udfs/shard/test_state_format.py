"""The encoding of a shard's state: what goes in comes out, and what cannot be read is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from udfs.model.errors import StateDamagedError, StateVersionError
from udfs.shard import state_format
from udfs.shard.base128 import to_seven_bits
from udfs.shard.state_format import (
    STATE_VERSION,
    Header,
    StateSection,
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

# What version 1 wrote of Header(clock=5, newest=7, groups=2) with the sections a = "12" and b = "345".
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


def packed(header: Header, sections: dict[str, bytes]) -> bytes:
    return pack_state(header, {name: StateSection(body) for name, body in sections.items()})


def bodies(sections: dict[str, StateSection]) -> dict[str, bytes]:
    return {name: bytes(section.body) for name, section in sections.items()}


def test_a_state_comes_back() -> None:
    header = Header(clock=5, newest=7, groups=2)
    state = packed(header, {"a": b"12", "none": b"", "b": b"345"})
    assert state[0] == STATE_VERSION
    again, sections = unpack_state(state)
    assert (again.clock, again.newest, again.groups) == (5, 7, 2)
    assert bodies(sections) == {"a": b"12", "b": b"345"}


@given(st.dictionaries(st.text(max_size=5), st.binary(max_size=100)))
def test_no_byte_of_a_state_is_above_127(sections: dict[str, bytes]) -> None:
    state = packed(Header(clock=2**62, newest=-1), sections)
    assert state.isascii()
    assert bodies(unpack_state(state)[1]) == {name: body for name, body in sections.items() if body}


def test_an_unchanged_section_is_copied_as_it_is_stored() -> None:
    state = packed(Header(clock=5), {"a": bytes(range(256)), "b": b"345"})
    header, sections = unpack_state(state)
    assert pack_state(header, sections) == state
    opened = {name: section.body for name, section in sections.items()}
    assert all(sections[name].body is body for name, body in opened.items())
    assert pack_state(header, sections) == state


def test_a_newer_encoding_is_refused_with_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(state_format, "STATE_VERSION", STATE_VERSION + 1)
        state = packed(Header(), {})
    with pytest.raises(StateVersionError, match=rf"encoding {STATE_VERSION + 1}.* up to {STATE_VERSION}") as refused:
        unpack_state(state)
    assert not isinstance(refused.value, StateDamagedError)
    # What only claims to be newer is damaged.
    state = bytes([STATE_VERSION + 1]) + packed(Header(), {})[1:]
    with pytest.raises(StateDamagedError, match=rf"encoding {STATE_VERSION + 1}.*damaged"):
        unpack_state(state)


def test_an_older_encoding_is_upgraded_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    old = bytearray(packed(Header(clock=5), {"a": b"12"}))
    monkeypatch.setattr(state_format, "STATE_VERSION", STATE_VERSION + 2)

    def first(header: dict, sections: dict) -> tuple[dict, dict]:
        return header | {"newest": 8}, sections | {"b": StateSection(b"added")}

    def second(header: dict, sections: dict) -> tuple[dict, dict]:
        return header, {"renamed": sections["a"], "b": sections["b"]}

    monkeypatch.setitem(state_format.UPGRADES, STATE_VERSION, first)
    monkeypatch.setitem(state_format.UPGRADES, STATE_VERSION + 1, second)
    header, sections = unpack_state(bytes(old))
    assert (header.clock, header.newest) == (5, 8)
    assert bodies(sections) == {"renamed": b"12", "b": b"added"}


@pytest.mark.parametrize(
    "state",
    [
        b"",
        b"\x01",
        b"\x00" * 9,
        b"\x01\xff\xff\xff\xff",
        b"\x01\x02\x00\x00\x00\xc1\xc1",
        b"\x02",
        b"\x02" + bytes(8),
        b"\x02" + b"\x7f" * 8,
        b"\x02" + to_seven_bits(b"\x02\x00\x00\x00") + to_seven_bits(b"\xc1\xc1"),
    ],
)
def test_damage_is_named(state: bytes) -> None:
    with pytest.raises(StateVersionError, match="damaged"):
        unpack_state(state)


@given(st.data())
def test_a_state_cut_short_is_refused(data: st.DataObject) -> None:
    state = packed(Header(clock=5), {"a": b"0123456789", "b": b"01234"})
    with pytest.raises(StateVersionError):
        unpack_state(state[: data.draw(st.integers(0, len(state) - 1))])


def test_a_state_with_a_byte_above_127_is_refused() -> None:
    state = bytearray(packed(Header(clock=5), {"a": b"0123456789"}))
    state[-1] |= 0x80
    with pytest.raises(StateVersionError, match="damaged"):
        unpack_state(bytes(state))


def test_a_pickle_is_no_state() -> None:
    with pytest.raises(StateVersionError):
        unpack_state(b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00.")


def test_an_unknown_field_in_the_header_is_refused() -> None:
    class Other(Header):
        surprise: int = 1

    with pytest.raises(StateDamagedError, match="surprise"):
        unpack_state(packed(Other(), {}))
