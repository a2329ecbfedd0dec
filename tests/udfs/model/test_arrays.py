"""Arrays between rooms have the widths that packets and states write."""

import typing

import numpy as np
import pytest

from udfs.model import arrays


@pytest.mark.parametrize(("name", "element"), [("UInt64", "<u8"), ("UInt32", "<u4"), ("Int64", "<i8")])
def test_an_array_has_the_elements_of_its_name(name: str, element: str) -> None:
    _, dtype = typing.get_args(getattr(arrays, name))
    assert np.dtype(*typing.get_args(dtype)) == np.dtype(element)
