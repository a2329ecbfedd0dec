"""Ids in the tables: the same in every release, and different for what differs."""

import hashlib

import pytest

from udfs.model.ids import finding_id, rebalance_id

ONE = ("c", "g", 1_700_000_000_000, "counted", 1, 0)


def test_the_id_of_a_rebalance_is_that_of_every_release() -> None:
    # Tables join on it: lengths before the parts, BLAKE2b of 16 bytes.
    content = b"1:c1:g13:17000000000007:counted1:11:0"
    assert rebalance_id(*ONE) == hashlib.blake2b(content, digest_size=16).hexdigest()
    content = b"1:c1:g13:source_silent1:5"
    assert finding_id("c", "g", "source_silent", 5) == hashlib.blake2b(content, digest_size=16).hexdigest()


@pytest.mark.parametrize("place", range(len(ONE)))
def test_each_part_makes_another_id(place: int) -> None:
    other = list(ONE)
    other[place] = "x" if isinstance(other[place], str) else 77
    assert rebalance_id(*other) != rebalance_id(*ONE)  # type: ignore[arg-type]


def test_names_do_not_run_into_each_other() -> None:
    assert finding_id("ab", "c", "k", 1) != finding_id("a", "bc", "k", 1)
    assert finding_id("1:a", "b", "k", 1) != finding_id("1", "a1:b", "k", 1)


def test_a_name_that_is_no_valid_unicode_has_an_id_too() -> None:
    assert len(finding_id("\ud800", "g", "k", 1)) == 32
