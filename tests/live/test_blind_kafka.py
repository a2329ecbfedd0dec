"""A broker goes away, hangs, or is cut off: nothing says OK any more, each says why, and it is over afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.blind_play import play_scene

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]


def test_a_broker_that_goes_away_or_is_cut_off_is_reported_while_it_lasts(tmp_path: Path) -> None:
    away = ("shop blind since", "source_silent")
    ways = ("broker killed", "broker stopped", "broker hangs (SIGSTOP)", "cut off: both directions")
    ways += ("cut off: nothing gets there", "cut off: nothing comes back")
    play_scene("kafka", tmp_path, dict.fromkeys(ways, away))


def test_if_one_of_three_brokers_goes_away_partitions_of_others_stay_known(tmp_path: Path) -> None:
    reported = {
        "one of three brokers killed": ("", ""),
        "with the only replica of a partition": ("shop partly known: ", ""),
    }
    play_scene("brokers", tmp_path, reported)
