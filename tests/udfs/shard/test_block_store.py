"""Cold blocks: a map in compressed blocks. The model is a dict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.model.errors import StateVersionError
from udfs.shard.block_store import BLOCK_VALUES, BlockStore


def contents(blocks: BlockStore) -> dict[int, bytes]:
    return {int(key): blocks.read(position) for position, key in enumerate(blocks.keys)}


keys = st.integers(0, 2**64 - 1) | st.integers(0, 300)


@given(st.lists(st.dictionaries(keys, st.binary(max_size=8), max_size=200), max_size=5))
def test_it_holds_what_was_written_last(writes: list[dict[int, bytes]]) -> None:
    model: dict[int, bytes] = {}
    blocks = BlockStore()
    for values in writes:
        before = sorted(model)
        inserted = blocks.write(values)
        fresh = sorted(values.keys() - model.keys())
        assert inserted.tolist() == [sum(old < key for old in before) for key in fresh]
        model |= values
        blocks = BlockStore(blocks.encode())
        assert contents(blocks) == model
        assert blocks.keys.tolist() == sorted(model)


def test_a_write_leaves_the_blocks_that_it_does_not_touch_as_they_are() -> None:
    blocks = BlockStore()
    blocks.write({key: bytes([key % 251]) * 50 for key in range(0, 10_000, 2)})
    before = [bytes(block) for block in blocks._blocks]
    blocks.write({5_000: b"other"})
    after = [bytes(block) for block in blocks._blocks]
    assert len(before) == len(after) > 50
    assert sum(block != other for block, other in zip(before, after, strict=True)) == 1


def test_every_block_of_many_is_found_again_in_the_bytes() -> None:
    blocks = BlockStore()
    blocks.write({key: f"value {key}".encode() for key in range(BLOCK_VALUES * 10)})
    assert len(blocks._blocks) > 3
    assert contents(BlockStore(blocks.encode())) == contents(blocks)


def test_a_block_that_grows_is_split() -> None:
    blocks = BlockStore()
    for key in range(BLOCK_VALUES * 10):
        blocks.write({key: b"x"})
    assert max(blocks._sizes) <= 2 * BLOCK_VALUES
    assert len(contents(blocks)) == BLOCK_VALUES * 10


def test_a_damaged_block_is_named() -> None:
    blocks = BlockStore()
    blocks.write({1: b"value"})
    data = bytearray(blocks.encode())
    data[-3] ^= 0xFF
    with pytest.raises(StateVersionError, match="damaged"):
        BlockStore(bytes(data)).read(0)


def test_keys_that_do_not_match_their_blocks_are_named() -> None:
    blocks = BlockStore()
    blocks.write({1: b"value", 2: b"value"})
    blocks._sizes = [1]
    with pytest.raises(StateVersionError, match="do not match"):
        BlockStore(blocks.encode())


def test_large_values_are_kept_as_they_are_beside_small_ones() -> None:
    values = {1: b"small", 2: bytes(range(256)) * 1_024, 3: b""}
    blocks = BlockStore()
    blocks.write(values)
    assert contents(BlockStore(blocks.encode())) == values
