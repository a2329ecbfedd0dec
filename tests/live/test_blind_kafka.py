"""A broker goes away, hangs, or is cut off, or the job goes: nothing says OK, each says why, and it is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.blind_play import play_scene

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(1200)]


_AWAY = ("shop blind since", "source_silent")


def test_a_broker_or_a_job_that_goes_away_is_reported_while_it_lasts(tmp_path: Path) -> None:
    reported = {"broker killed": _AWAY, "job killed (SIGKILL)": ("it was killed", "job_silent")}
    play_scene("kafka", tmp_path, reported)


def test_a_broker_that_hangs_or_a_job_that_is_stopped_is_reported_while_it_lasts(tmp_path: Path) -> None:
    away = dict.fromkeys(("broker hangs (SIGSTOP)", "cut off: nothing comes back"), _AWAY)
    job = {
        "job hangs (SIGSTOP)": ("is stopped by a signal", "job_silent"),
        "job stopped (Ctrl-C)": ("the job was stopped at", "job_stopped"),
    }
    play_scene("kafka", tmp_path, away | job)


def test_if_one_of_three_brokers_goes_away_partitions_of_others_stay_known(tmp_path: Path) -> None:
    reported = {
        "one of three brokers killed": ("", ""),
        "with the only replica of a partition": ("shop partly known: ", ""),
    }
    play_scene("brokers", tmp_path, reported)
