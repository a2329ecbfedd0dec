"""Bytes as characters of seven bits: as they came, in an eighth more room."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from udfs.shard.base128 import characters_for, from_seven_bits, to_seven_bits


def plain(data: bytes) -> bytes:
    """Spread bit by bit."""
    characters = bytearray()
    for start in range(0, len(data), 7):
        number = int.from_bytes(data[start : start + 7], "little")
        characters += bytes(number >> 7 * place & 0x7F for place in range(8))
    return bytes(characters)


@given(st.binary(max_size=100))
@example(b"")
@example(b"\xff" * 7)
@example(bytes(range(249, 256)) * 3)
def test_every_seven_bytes_are_eight_characters(data: bytes) -> None:
    characters = to_seven_bits(data)
    assert characters == plain(data)
    assert len(characters) == characters_for(len(data))
    assert bytes(from_seven_bits(characters, len(data))) == data


def test_decoded_data_is_read_only() -> None:
    assert from_seven_bits(to_seven_bits(b"12345678"), 8).readonly
