"""Kafka's primitive types: plain, flexible, damaged."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.kafka.wire_reader import WireError, WireReader

Read = Callable[[WireReader], Any]


@pytest.mark.parametrize(
    ("read", "kind", "bits"),
    [
        (WireReader.int8, ">b", 8),
        (WireReader.int16, ">h", 16),
        (WireReader.int32, ">i", 32),
        (WireReader.int64, ">q", 64),
    ],
)
def test_numbers_are_signed_and_big_endian_and_need_all_their_bytes(read: Read, kind: str, bits: int) -> None:
    for number in (-(2 ** (bits - 1)), -2, 0, 1, 2 ** (bits - 1) - 1):
        data = struct.pack(kind, number)
        reader = WireReader(data + b"x")
        assert (read(reader), reader.left) == (number, 1)
        with pytest.raises(WireError, match=f"{bits // 8} bytes are needed at byte 0, {bits // 8 - 1} are left"):
            read(WireReader(data[1:]))


@pytest.mark.parametrize(
    ("data", "number"),
    # Of the documentation of protocol buffers: 150 is 96 01.
    [("00", 0), ("7f", 127), ("8001", 128), ("9601", 150), ("ffffffff0f", 2**32 - 1)],
)
def test_a_varint_has_seven_bits_in_each_byte(data: str, number: int) -> None:
    reader = WireReader(bytes.fromhex(data))
    assert (reader.uvarint(), reader.left) == (number, 0)


def test_a_varint_of_more_than_five_bytes_or_without_its_end_is_an_error() -> None:
    with pytest.raises(WireError, match="longer than 5 bytes"):
        WireReader(b"\x80" * 5 + b"\x00").uvarint()
    with pytest.raises(WireError, match="1 bytes are needed at byte 1, 0 are left"):
        WireReader(b"\x80").uvarint()


@pytest.mark.parametrize(
    ("flexible", "data", "text"),
    [
        (False, "0000", ""),
        (False, "0003 61c3bc", "aü"),
        (False, "ffff", None),
        (True, "01", ""),
        (True, "04 61c3bc", "aü"),
        (True, "00", None),
    ],
)
def test_a_text_has_its_length_before_it_or_is_null(flexible: bool, data: str, text: str | None) -> None:
    raw = bytes.fromhex(data)
    assert WireReader(raw, flexible=flexible).nullable_string() == text
    if text is None:
        with pytest.raises(WireError, match=f"a text before byte {len(raw)} is null"):
            WireReader(raw, flexible=flexible).string()
    else:
        assert WireReader(raw, flexible=flexible).string() == text


@pytest.mark.parametrize(
    ("flexible", "data", "content"),
    [
        (False, "00000000", b""),
        (False, "00000001 ff", b"\xff"),
        (True, "02 ff", b"\xff"),
        (False, "ffffffff", None),
        (True, "00", None),
    ],
)
def test_bytes_have_their_length_before_them_or_are_null(flexible: bool, data: str, content: bytes | None) -> None:
    raw = bytes.fromhex(data)
    assert WireReader(raw, flexible=flexible).nullable_data() == content
    if content is None:
        with pytest.raises(WireError, match=f"bytes before byte {len(raw)} are null"):
            WireReader(raw, flexible=flexible).data()
    else:
        assert WireReader(raw, flexible=flexible).data() == content


@pytest.mark.parametrize(
    ("read", "flexible", "data", "reason"),
    [
        (WireReader.string, False, "0003 6162", "3 bytes are needed at byte 2, 2 are left"),
        (WireReader.string, False, "fffe 6162", "-2 bytes are needed"),
        (WireReader.string, False, "0002 c328", "is not UTF-8"),
        (WireReader.data, False, "7fffffff", "2147483647 bytes are needed at byte 4, 0 are left"),
        (WireReader.int32_array, False, "00000002 00000001 000000", "an array of 2 elements before byte 4, 7 bytes"),
        (WireReader.int32_array, False, "ffffffff", "an array of -1 elements"),
        (WireReader.int32_array, True, "00", "an array of -1 elements"),
        # Nothing is made of a length that the bytes cannot hold.
        (lambda reader: reader.array(reader.int8), False, "7fffffff 00", "an array of 2147483647 elements"),
    ],
)
def test_a_length_is_held_against_the_bytes_that_are_left(read: Read, flexible: bool, data: str, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        read(WireReader(bytes.fromhex(data), flexible=flexible))


def test_arrays_have_their_count_before_them() -> None:
    assert WireReader(bytes.fromhex("00000002 00000001 ffffffff")).int32_array() == (1, -1)
    assert WireReader(bytes.fromhex("03 00000001 ffffffff"), flexible=True).int32_array() == (1, -1)
    reader = WireReader(bytes.fromhex("00000002 0001 61 0001 62 09"))
    assert (reader.array(reader.string), reader.left) == (["a", "b"], 1)
    assert WireReader(bytes.fromhex("00000000")).int32_array() == ()


def test_tagged_fields_are_passed_over_and_a_plain_struct_has_none() -> None:
    # Two of them: tag 0 of 2 bytes, tag 128 of none.
    flexible = WireReader(bytes.fromhex("02 00 02 ffff 8001 00 2a"), flexible=True)
    flexible.skip_tagged_fields()
    assert flexible.int8() == 42
    plain = WireReader(b"\x2a")
    plain.skip_tagged_fields()
    assert plain.int8() == 42
    with pytest.raises(WireError):
        WireReader(bytes.fromhex("01 00 02 ff"), flexible=True).skip_tagged_fields()


@given(st.binary(max_size=40), st.booleans())
def test_any_bytes_are_read_or_are_an_error_of_the_wire(data: bytes, flexible: bool) -> None:
    reader = WireReader(data, flexible=flexible)
    try:
        while reader.left:
            before = reader.left
            reader.array(reader.nullable_string)
            reader.skip_tagged_fields()
            assert reader.left < before
    except WireError:
        assert 0 <= reader.left <= len(data)
