import json
from pathlib import Path

import pytest

from udfs.jvm.collections import hash_map_order, sorted_strings, string_hash, string_hashes

_ORDERS = Path(__file__).resolve().parents[2] / "golden" / "java" / "hash_map_orders.jsonl"


def test_the_hash_code_of_a_string_is_javas() -> None:
    # Known from the JDK's documentation and from collections of colliding strings.
    assert string_hash("") == 0
    assert string_hash("Aa") == string_hash("BB") == 2112
    assert string_hash("polygenelubricants") == -(2**31)


def test_hash_codes_of_many_are_those_of_each() -> None:
    texts = ["", "a", "", "Aa", "\U0001f600", "é", "polygenelubricants", ""]
    assert string_hashes(texts) == [string_hash(text) for text in texts]


def test_hash_codes_of_a_long_text_among_short_ones_are_those_of_each() -> None:
    texts = ["", *(f"id-{number}" for number in range(50)), "polygenelubricants" * 300, "", "é", ""]
    assert string_hashes(texts) == [string_hash(text) for text in texts]


def test_a_surrogate_pair_counts_as_two_units() -> None:
    assert string_hash("\U0001f600") == 31 * 0xD83D + 0xDE00


def test_strings_sort_by_utf_16_units_not_by_code_points() -> None:
    assert sorted_strings(["\uffff", "\U0001f600", "b", "a"]) == ["a", "b", "\U0001f600", "\uffff"]


def test_a_longer_address_sorts_before_the_shorter_one_with_its_process() -> None:
    assert sorted_strings(["10.0.0.1@1", "10.0.0.10@3"]) == ["10.0.0.10@3", "10.0.0.1@1"]


@pytest.mark.parametrize("line", _ORDERS.read_text().splitlines())
def test_maps_iterate_as_real_hash_maps_do(line: str) -> None:
    reported = json.loads(line)
    assert hash_map_order(reported["put"]) == reported["iterated"]


def test_the_recorded_maps_hold_some_with_trees() -> None:
    puts = [json.loads(line)["put"] for line in _ORDERS.read_text().splitlines()]
    assert sum(max(string_hashes(put).count(code) for code in set(string_hashes(put))) > 8 for put in puts) >= 10
