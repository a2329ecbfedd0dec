"""The examples in all docstrings run, and each strategy's docstring has its required parts."""

import doctest
import importlib
import pkgutil

import pytest

import dashboard
import streaming
import udfs
from udfs.strategies import registry

_MODULES = [
    module.name
    for package in (udfs, streaming, dashboard)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


@pytest.mark.parametrize("name", _MODULES)
def test_the_examples_in_docstrings_are_so(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples_to_run() -> None:
    examples = [
        example
        for name in _MODULES
        for found in doctest.DocTestFinder().find(importlib.import_module(name))
        for example in found.examples
    ]
    assert len(examples) >= 80


@pytest.mark.parametrize("name", registry.names())
@pytest.mark.parametrize("part", ["Source:", "Rolling restart:", "nown imbalance:", "Example:"])
def test_a_strategys_docstring_has_all_its_parts(name: str, part: str) -> None:
    entry = registry.registered(name, name.split(".")[0])
    assert part in " ".join((entry.answer.__doc__ or "").split())
