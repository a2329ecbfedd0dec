"""A job goes away, or its disk or store does: nothing says OK any more, each says why, and it is over afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.blind_play import play_scene

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]


def test_a_job_that_goes_away_is_reported_while_it_lasts(tmp_path: Path) -> None:
    reported = {
        "job hangs (SIGSTOP)": ("is stopped by a signal", "job_silent"),
        "job stopped (Ctrl-C)": ("the job was stopped at", "job_stopped"),
        "job killed (SIGKILL)": ("it was killed", "job_silent"),
    }
    play_scene("job", tmp_path, reported)


def test_a_full_disk_is_reported_while_it_lasts(tmp_path: Path) -> None:
    play_scene("disk", tmp_path, {"its disk is full": ("shop blind since", "job_silent")})
