"""Errors that keep the job from starting: one line with the remedy, exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.job.commands import Running, once

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ('driver_memory = "lots"', "Invalid maximum heap size: -Xmxlots"),
        ('master = "local[x]"', "Could not parse Master URL: 'local[x]'"),
    ],
)
def test_a_spark_that_does_not_start_is_explained(setting: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    config = tmp_path / "monitor.toml"
    config.write_text(f"[spark]\n{setting}\n")
    ended = Running(once(tmp_path / "events", tmp_path, config), tmp_path / "said.txt").wait()
    assert ended.exit_code == 2, ended.stderr
    assert f"{reason}\n" in ended.stderr
    assert str(tmp_path / "checkpoint" / "spark.log") in ended.stderr
    assert "Traceback" not in ended.stderr
