"""The search for garbage in cycles is put off, and always taken up again."""

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from udfs.model.garbage_collection import makes_no_cycles


@pytest.fixture(autouse=True)
def _enabled() -> Iterator[None]:
    before = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if before else gc.disable)()


@makes_no_cycles
def searching(*, fails: bool = False) -> bool:
    """Return whether the search runs."""
    if fails:
        raise ValueError("as wanted")
    return gc.isenabled()


def test_the_search_is_off_inside_and_on_again_after_a_return_and_after_an_error() -> None:
    assert searching() is False
    assert gc.isenabled()
    with pytest.raises(ValueError, match="as wanted"):
        searching(fails=True)
    assert gc.isenabled()


def test_one_inside_another_leaves_it_off_until_the_outer_one_returns() -> None:
    @makes_no_cycles
    def outer() -> tuple[bool, bool]:
        return searching(), gc.isenabled()

    assert outer() == (False, False)
    assert gc.isenabled()


def test_a_process_without_the_search_stays_without() -> None:
    gc.disable()
    assert searching() is False
    assert not gc.isenabled()


def test_the_function_keeps_its_name_arguments_and_documentation() -> None:
    assert (searching.__name__, searching.__doc__) == ("searching", "Return whether the search runs.")


def test_loaded_modules_are_exempt_once_and_what_comes_later_is_collected() -> None:
    script = """
import gc, weakref
import pandas
from udfs.model.garbage_collection import exempt_loaded_modules

class Node: pass

def cycle():
    node = Node()
    node.itself = node
    return weakref.ref(node)

before = len(gc.get_objects())
exempt_loaded_modules()
exempt, left = gc.get_freeze_count(), len(gc.get_objects())
later = [cycle() for _ in range(10)]
exempt_loaded_modules()
gc.collect()
print(exempt > 0.9 * before, left < 0.01 * before, gc.get_freeze_count() <= exempt)
print([node() for node in later] == [None] * 10)
"""
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["True"] * 4
