"""Owners of queues as runs, and values of single queues."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from udfs.group.format.owners_format import SharedValues, pack_by_queue, pack_owners, unpack_by_queue, unpack_owners

NAMES = ["a", "b", "c"]
QUEUES = st.tuples(st.sampled_from("tu"), st.none() | st.sampled_from("xy"), st.integers(0, 9))
HOLDERS = st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map(sorted).map(tuple)


@given(st.dictionaries(QUEUES, HOLDERS))
def test_owners_come_back_as_they_were(owners: dict) -> None:
    table = SharedValues()
    assert unpack_owners(pack_owners(owners, NAMES, table), NAMES, table.values) == owners


def test_neighbouring_queues_of_one_owner_are_one_run() -> None:
    table = SharedValues()
    held = {0: ("a",), 1: ("a",), 2: ("b",), 5: ("b",), 6: ("a", "c")}
    owners = {("t", None, number): holders for number, holders in held.items()}
    # Gap before, length, owner.
    assert pack_owners(owners, NAMES, table) == [[0, None, [0, 2, 0, 0, 1, 1, 2, 1, 1, 0, 1, [0, 2]]]]
    assert pack_owners({}, NAMES, table) == []


def test_topics_and_brokers_are_named_once() -> None:
    table = SharedValues()
    pack_owners({("t", "x", 0): ("a",), ("u", "x", 0): ("a",), ("t", "y", 0): ("b",)}, NAMES, table)
    pack_by_queue({("t", "x", 0): 1}, table)
    assert table.values == ["t", "x", "y", "u"]


def test_more_queues_than_there_can_be_are_damage_before_any_is_made() -> None:
    with pytest.raises(ValueError, match="more queues than possible"):
        unpack_owners([[0, None, [0, 1_000_000, 0]], [0, None, [0, 1, 0]]], NAMES, ["t"])
    # A negative length hides none.
    with pytest.raises(ValueError, match="more queues than possible"):
        unpack_owners([[0, None, [0, 1_000_001, 0, 0, -5, 0]]], NAMES, ["t"])
    assert len(unpack_owners([[0, None, [3, 2, 1]]], NAMES, ["t"])) == 2


@given(st.dictionaries(QUEUES, st.none() | st.integers(0, 5)))
def test_values_of_single_queues_come_back_sorted_by_queue(by_queue: dict) -> None:
    table = SharedValues()
    packed = pack_by_queue(by_queue, table)
    found = list(unpack_by_queue(packed, table.values))
    assert dict(found) == by_queue
    assert [queue for queue, _ in found] == sorted(by_queue, key=lambda queue: (queue[0], queue[1] or "", queue[2]))
    assert len(packed) == len({queue[:2] for queue in by_queue})


def test_a_value_has_one_number_by_its_key() -> None:
    table = SharedValues(["there"])
    assert [table.number(key, value) for key, value in (("k", 1), ("l", 2), ("k", 3))] == [1, 2, 1]
    assert table.values == ["there", 1, 2]
