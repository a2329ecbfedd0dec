"""A name server, a broker of RocketMQ, a ZooKeeper go away: nothing says OK, each says why, and it is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.blind_play import play_scene

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]


def test_a_name_server_or_a_broker_of_rocketmq_that_goes_away_is_reported(tmp_path: Path) -> None:
    reported = {"name server killed": ("shop ", ""), "RocketMQ's broker killed": ("shop ", "")}
    play_scene("rocketmq", tmp_path, reported)


def test_a_zookeeper_that_goes_away_is_reported(tmp_path: Path) -> None:
    play_scene("metaq", tmp_path, {"ZooKeeper hangs (SIGSTOP)": ("shop blind since", "source_silent")})
