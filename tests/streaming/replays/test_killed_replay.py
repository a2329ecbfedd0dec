"""A replay that is killed with all of its processes, at random moments, ends in the tables of a whole one."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streaming.history.replay_figures import Asked
from streaming.replays.replay_request import ReplayRequest
from streaming.replays.replay_run import ReplayRun
from streaming.settings.model import load
from streaming.tables.engine import DeltaRsEngine
from streaming.tables.location import table_to_read
from streaming.tables.schema import Row
from streaming.views.reader import Reader
from tests.job.commands import CONFIG, Running
from tests.streaming.replays.pasts import SEEDS, written_pasts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS = 2


def content(root: Path) -> tuple[list[Row], list[Row]]:
    """Return the rows of both tables, without the times at which they were made."""
    without = {"started_at": None, "finished_at": None}
    replays, groups = ([row | without for row in Reader(root).rows(name)] for name in ("replays", "replay_groups"))
    return replays, sorted(groups, key=lambda row: (row["cluster"], row["group_id"], row["policy"] or ""))


@pytest.mark.spark
def test_a_killed_replay_is_continued_to_equal_tables(spark: SparkSession, tmp_path: Path) -> None:
    tables, into, whole = (tmp_path / name for name in ("tables", "into", "whole"))
    tables.mkdir()
    written_pasts(tables, SEEDS)
    config = tmp_path / "small.toml"
    config.write_text(CONFIG)
    options = ["--tables", tables, "--into", into, "--config", config]
    arguments = ["replay", "--all", "--all-strategies", *options, "-p", "without g*"]
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    reached = 0
    for _ in range(KILLS):
        command = Running(arguments, tmp_path / "stderr.txt")
        at_least = reached + chance.randrange(1, 3)  # each piece is one version of the table

        def has_come_far(at_least: int = at_least) -> bool:
            log = table_to_read(into, "replay_groups")
            return log is not None and log.version() >= at_least

        try:
            command.wait_until(has_come_far, "some pieces")
            time.sleep(chance.uniform(0, 1))
        finally:
            command.kill()
        log = table_to_read(into, "replay_groups")
        assert log is not None
        reached = log.version()
    ended = Running(arguments, tmp_path / "stderr.txt").wait()
    assert ended.exit_code == 0, ended.stderr
    asked = Asked(("without g*",), all_strategies=True)
    ReplayRun(spark, tables, whole, DeltaRsEngine(), load(config, {}).core_config()).run(
        ReplayRequest(asked, (None, None))
    )
    assert content(into) == content(whole), f"seed {seed}"
    (begun,) = Reader(into).rows("replays")
    assert {row["started_at"] for row in Reader(into).rows("replay_groups")} == {begun["started_at"]}
