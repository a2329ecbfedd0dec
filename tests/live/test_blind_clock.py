"""A clock is set: what is said is right by the time that nobody sets, and says which clock is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.blind_play import play_scene

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


def test_a_clock_that_is_set_makes_nothing_known_that_is_not(tmp_path: Path) -> None:
    reported = {
        "clock of the machine 10 min ahead": ("", ""),
        "clock of the machine 10 min back": ("", ""),
        "reader's clock 10 min ahead": ("has not reported since", ""),
        "reader's clock 10 min behind": ("one of the two clocks is wrong", ""),
    }
    play_scene("clock", tmp_path, reported)
