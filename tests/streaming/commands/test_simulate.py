"""The command that writes simulated fleets."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from typer.testing import CliRunner, Result

from streaming.commands.simulate import simulate

app = typer.Typer()
app.command()(simulate)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_it_reports_on_standard_output_what_it_wrote(tmp_path: Path) -> None:
    done = run("--out", tmp_path, "--duration", "30s", "--groups", 6, "--json")
    assert done.exit_code == 0
    output = json.loads(done.stdout)
    lines = [text for path in (tmp_path / "events").iterdir() for text in path.read_bytes().splitlines()]
    assert output["events"] == len(lines) > 100
    assert output["rebalances"] <= len((tmp_path / "truth.jsonl").read_bytes().splitlines())
    assert output["to_time"] == "2026-01-01T00:00:30.000Z"


def test_the_same_seed_gives_the_same_truth_and_another_another(tmp_path: Path) -> None:
    for name, seed in (("a", 4), ("b", 4), ("c", 5)):
        assert run("--out", tmp_path / name, "--duration", "20s", "--seed", seed).exit_code == 0
    truth = [(tmp_path / name / "truth.jsonl").read_bytes() for name in "abc"]
    assert truth[0] == truth[1] != truth[2]


def test_impossible_fleets_are_refused(tmp_path: Path) -> None:
    done = run("--out", tmp_path, "--load", "--groups", 10, "--members", 5, "--duration", "30000d")
    assert done.exit_code == 2
    assert "10 groups need at least one member each" in done.stderr
    assert "ends before 2100" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "old.jsonl").touch()
    done = run("--out", tmp_path, "--duration", "soon", "--for", "4x", "--groups", 1, "--live", "--load")
    assert done.exit_code == 2
    for part in ("--duration", "--for", "--groups", "--out", "--live and --load"):
        assert f"error: {part}" in done.stderr
    assert done.stdout == ""


def test_live_events_are_of_now(tmp_path: Path) -> None:
    done = run("--out", tmp_path, "--live", "--for", "0.1s", "--json")
    assert done.exit_code == 0
    output = json.loads(done.stdout)
    assert output["events"] > 0
    assert output["from_time"] < output["to_time"]


def test_a_load_is_only_joins_and_heartbeats(tmp_path: Path) -> None:
    done = run("--out", tmp_path, "--load", "--groups", 5, "--members", 20, "--rounds", 1, "--json")
    assert json.loads(done.stdout)["events"] == 1_000 + 20 + 20
