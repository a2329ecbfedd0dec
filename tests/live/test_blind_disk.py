"""The disk of a job is full: nothing says OK any more, each says why, and it is over afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.blind_play import play_scene

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]


def test_a_full_disk_is_reported_while_it_lasts(tmp_path: Path) -> None:
    play_scene("disk", tmp_path, {"its disk is full": ("shop blind since", "job_silent")})
