"""The examples in the docstrings of strategies and of what they stand on."""

import doctest
import importlib
import pkgutil

import pytest

import udfs.strategies

_MODULES = [
    "udfs.java",
    "udfs.scala",
    *(f"udfs.strategies.{module.name}" for module in pkgutil.iter_modules(udfs.strategies.__path__)),
]


@pytest.mark.parametrize("name", ["udfs.strategies", *_MODULES])
def test_the_examples_in_docstrings_are_so(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples_to_run() -> None:
    examples = [
        example
        for name in ["udfs.strategies", *_MODULES]
        for found in doctest.DocTestFinder().find(importlib.import_module(name))
        for example in found.examples
    ]
    assert len(examples) >= 8


@pytest.mark.parametrize("name", udfs.strategies.names())
@pytest.mark.parametrize("part", ["Source:", "Rolling restart:", "nown imbalance:", "Example:"])
def test_a_strategys_docstring_has_all_its_parts(name: str, part: str) -> None:
    entry = udfs.strategies.registered(name, name.split(".")[0])
    assert part in " ".join((entry.answer.__doc__ or "").split())
