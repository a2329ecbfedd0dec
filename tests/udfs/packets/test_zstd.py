"""Compressed blocks that claim what they do not hold."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.packets.zstd import codec, decompress


@given(st.binary(max_size=2_000), st.integers(0, 400), st.integers(1, 19))
def test_compressed_data_decompresses_to_the_same(content: bytes, times: int, level: int) -> None:
    content *= times
    assert decompress(codec(level).compress(content, asbytes=True), len(content)) == content


@pytest.mark.parametrize("size", [0, 99, 101, 2**30])
def test_another_size_than_the_frames_own_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="another size"):
        decompress(codec(1).compress(b"a" * 100, asbytes=True), size)


def test_a_frame_that_claims_more_than_its_bytes_can_hold_allocates_nothing() -> None:
    frame = bytearray(codec(1).compress(b"a" * 100_000, asbytes=True))
    frame[5:9] = (2**31).to_bytes(4, "little")
    tracemalloc.start()
    with pytest.raises(ValueError, match="cannot hold"):
        decompress(bytes(frame), 2**31)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100_000


@pytest.mark.parametrize("frame", [b"", b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfd\x20", b"gzip of something else"])
def test_data_that_is_not_a_frame_is_refused(frame: bytes) -> None:
    with pytest.raises(ValueError, match="size"):
        decompress(frame, 10)
