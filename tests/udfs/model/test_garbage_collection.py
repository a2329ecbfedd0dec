"""The search for garbage in cycles is put off, and always taken up again."""

import gc
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
