"""Slots of hash maps that have grown into trees."""

import json
from pathlib import Path

import pytest

from udfs.jvm.collections import string_hashes, string_order
from udfs.jvm.tree_bins import order_with_trees

_ORDERS = Path(__file__).resolve().parents[2] / "golden" / "java" / "hash_map_orders.jsonl"
_LINES = [json.loads(line) for line in _ORDERS.read_text().splitlines()]


def order(keys: list[str], table: int = 16) -> list[str]:
    spread = [(code & 0xFFFFFFFF) ^ (code & 0xFFFFFFFF) >> 16 for code in string_hashes(keys)]
    return [keys[index] for index in order_with_trees(spread, table, [string_order(key) for key in keys])]


@pytest.mark.parametrize("line", _LINES, ids=lambda line: f"{len(line['put'])}-{line['put'][0]}")
def test_real_hash_maps_iterate_so(line: dict) -> None:
    # Maps without trees follow from the same rules.
    assert order(list(dict.fromkeys(line["put"]))) == line["iterated"]


def test_a_slot_of_eight_keys_is_a_list_in_the_order_of_the_puts() -> None:
    assert order_with_trees([0] * 8, 64, [b"%d" % key for key in range(8, 0, -1)]) == list(range(8))


def test_the_ninth_key_makes_a_tree_with_its_root_first() -> None:
    # Nine ascending keys: the root of the red-black tree is the fourth.
    assert order_with_trees([0] * 9, 64, [b"%d" % key for key in range(9)]) == [3, 0, 1, 2, 4, 5, 6, 7, 8]


def test_a_key_put_into_a_tree_follows_its_parent() -> None:
    # 8 goes below 9, which stands at the end; below 7 it would stand before 9.
    keys = [b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"9", b"8"]
    assert order_with_trees([0] * 10, 64, keys) == [3, 0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_a_small_table_grows_instead_and_keeps_the_list() -> None:
    assert order_with_trees([0] * 9, 16, [b"%d" % key for key in range(9)]) == list(range(9))


def test_hashes_are_compared_as_signed_numbers() -> None:
    spread = [0x80000000 + (place << 8) for place in range(5)] + [place << 8 for place in range(1, 5)]
    assert order_with_trees(spread, 64, [b""] * 9)[0] == 3
