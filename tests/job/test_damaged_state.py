"""A checkpoint whose state is damaged: the job says whose, and the remedies that it names work."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.job.commands import Ended, ManyRuns, once
from tests.job.recordings import Line, cut, disordered, write_files
from tests.job.table_bags import bags_of, differences, repeated_keys, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def test_a_damaged_state_ends_the_job_with_a_plain_error_and_the_remedies_work(
    whole: Path, lines: list[Line], run_once: Callable[..., Ended], runs: ManyRuns, config: Path, tmp_path: Path
) -> None:
    texts = cut(disordered(lines, seed=7), 3)
    events, checkpoint, tables = tmp_path / "events", tmp_path / "checkpoint", tmp_path / "tables"
    write_files(events, texts[:1])
    assert run_once(events, tmp_path).exit_code == 0
    too_early = runs.run(["state", "rollback", "--checkpoint", checkpoint])
    assert (too_early.exit_code, "is intact" in too_early.stderr) == (2, True)
    write_files(events, texts[1:2], first=1)
    assert runs.run(once(events, tmp_path, config), within="tests.job.damaging:damaged").exit_code == 0
    before = bags_of(tables)
    write_files(events, texts[2:], first=2)

    failed = run_once(events, tmp_path)
    assert failed.exit_code == 1
    for part in (
        f"checkpoint {checkpoint}, cluster ",
        ", shard ",
        "checksum",
        f"state rollback --checkpoint {checkpoint}",
    ):
        assert part in failed.stderr
    assert "\tat " not in failed.stderr
    assert "Traceback" not in failed.stderr
    assert bags_of(tables) == before

    out = tmp_path / "new/events"
    refused = runs.run(["state", "export", "--checkpoint", checkpoint, "--out", out])
    assert refused.exit_code == 2
    for part in (f"checkpoint {checkpoint}, cluster ", ", shard ", "`state rollback`", "--batch 0"):
        assert part in refused.stderr
    assert runs.run(["state", "export", "--checkpoint", checkpoint, "--out", out, "--batch", "0"]).exit_code == 0

    # Where a file is gone that the batch had read, it is not taken back.
    file = max(events.iterdir(), key=lambda path: path.stat().st_mtime_ns if path.read_bytes() in texts[1:2] else 0)
    hidden = Path(shutil.move(file, tmp_path / "hidden"))
    refused = runs.run(["state", "rollback", "--checkpoint", checkpoint])
    assert (refused.exit_code, str(file) in refused.stderr, "--batch 0" in refused.stderr) == (2, True, True)
    shutil.move(hidden, file)
    assert runs.run(["state", "rollback", "--checkpoint", checkpoint]).exit_code == 0
    assert run_once(events, tmp_path, "--flush").exit_code == 0
    assert differences(bags_of(whole), bags_of(tables)) == []
    assert repeated_keys(tables) == []

    # The export gives the same, with tables of its own: decisions after that batch are made again.
    write_files(out, texts[1:], first=1)
    assert run_once(out, tmp_path / "new", "--flush").exit_code == 0
    decided = set(bags_of(tmp_path / "new/tables")["rebalances"])
    assert decided
    assert decided <= set(bags_of(whole)["rebalances"])
    reasons = set(rows_of(tmp_path / "new/tables", "rejected_events").column("reason").to_pylist())
    assert not any(reason.startswith("restored") for reason in reasons)
