"""A store of the tables goes away: nothing says OK any more, each says why, and it is over afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.blind_play import play_scene

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]


def test_a_store_that_goes_away_is_reported_while_it_lasts(tmp_path: Path) -> None:
    play_scene("store", tmp_path, {"its store hangs (SIGSTOP)": ("is unavailable", "tables_unreadable")})
