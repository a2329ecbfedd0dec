"""The clock is set: ages follow the clock that nobody sets, and the notice names the clock that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.blind_play import play_scene

# `make blindness` plays it, too.
pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


def test_a_clock_that_is_set_makes_nothing_known_that_is_not(tmp_path: Path) -> None:
    reported = {
        "machine's clock set 2 min ahead": ("was set ahead by 2 min", ""),
        "and set right again": ("was set back by 2 min", "source_silent"),
        "reader's clock 10 min ahead": ("has not reported since", ""),
        "reader's clock 10 min behind": ("one of the two clocks is wrong", ""),
    }
    play_scene("clock", tmp_path, reported)
