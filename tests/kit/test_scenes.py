"""Each entry names tests that exist, and what it says remains in `make test`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.scenes import SCENES, is_scene

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("prefix", SCENES)
def test_an_entry_names_tests_that_exist(prefix: str) -> None:
    file, _, name = prefix.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    function, bracket, _ = name.partition("[")
    assert f"def {function}" + ("(" if bracket else "") in text


def test_the_beginning_of_an_id_makes_a_scene() -> None:
    assert is_scene("tests/live/test_outages.py::test_anything[of-it]")
    assert not is_scene("tests/live/test_kafka41.py::test_each_generation_is_one_row_with_its_cause[new]")
