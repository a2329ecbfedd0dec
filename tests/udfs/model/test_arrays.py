"""Arrays between rooms have the widths that packets and states write."""

import typing

import numpy as np
import pytest

from udfs.model import arrays
from udfs.model.arrays import distinct, find_sorted


@pytest.mark.parametrize(("name", "element"), [("UInt64", "<u8"), ("UInt32", "<u4"), ("Int64", "<i8")])
def test_an_array_has_the_elements_of_its_name(name: str, element: str) -> None:
    _, dtype = typing.get_args(getattr(arrays, name))
    assert np.dtype(*typing.get_args(dtype)) == np.dtype(element)


def test_a_key_that_is_not_there_is_found_nowhere() -> None:
    sorted_keys = np.asarray([3, 5, 9], dtype=np.uint64)
    keys = np.asarray([9, 4, 3, 10, 0, 2**64 - 1], dtype=np.uint64)
    assert find_sorted(sorted_keys, keys).tolist() == [2, -1, 0, -1, -1, -1]
    assert find_sorted(sorted_keys[:0], keys).tolist() == [-1] * 6


def test_distinct_keys_are_those_that_numpy_finds() -> None:
    keys = np.random.default_rng(3).integers(0, 2**64, 50, np.uint64)[np.random.default_rng(4).integers(0, 50, 400)]
    assert distinct(keys).tolist() == np.unique(keys).tolist()
    assert distinct(keys[:0]).tolist() == []
