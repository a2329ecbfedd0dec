"""The wheel: what it holds beside its code, and that it works where the checkout is not."""

import json
import os
import subprocess
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.streaming.views.story import write_story

ROOT = Path(__file__).parents[1]


@pytest.fixture
def content(wheel):
    with zipfile.ZipFile(wheel) as opened:
        yield opened


@pytest.fixture
def run(installed_monitor, tmp_path):
    """Run the command of the installed wheel in a folder of its own."""

    def run(*arguments):
        return subprocess.run(
            [installed_monitor, *arguments],
            cwd=tmp_path,
            env={name: os.environ[name] for name in ("PATH", "HOME", "REBALANCE_MONITOR_CACHE") if name in os.environ},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )

    return run


def in_dist_info(content, name):
    (path,) = [path for path in content.namelist() if path.endswith(f".dist-info/{name}")]
    return content.read(path)


def test_the_wheel_names_its_licence(content):
    metadata = message_from_bytes(in_dist_info(content, "METADATA"))
    assert metadata["License-Expression"] == "Apache-2.0"
    assert set(metadata.get_all("License-File")) == {"LICENSE", "NOTICE"}


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE"])
def test_the_wheel_carries_licence_and_notice_whole(content, name):
    assert in_dist_info(content, f"licenses/{name}") == (ROOT / name).read_bytes()


def test_the_files_of_conf_are_in_it(content):
    mine = {f"streaming/{path.relative_to(ROOT)}" for path in (ROOT / "conf").rglob("*") if path.is_file()}
    assert mine <= set(content.namelist())


def test_installed_alone_it_assigns(run):
    assert "rebalance-monitor" in run("--help").stdout
    assigned = run("allocate", "--strategy", "rocketmq.AVG", "--queues", "8", "--members", "2")
    assert "rocketmq.AVG: spread 0" in assigned.stdout, assigned.stderr


@pytest.mark.spark
def test_installed_alone_it_runs_the_job_and_shows_the_tables(run):
    simulated = run("simulate", "--out", "fleet", "--seed", "1", "--duration", "30s")
    assert simulated.returncode == 0, simulated.stderr
    places = ["--tables", "fleet/tables", "--checkpoint", "fleet/checkpoint"]
    ran = run("run", "--events", "fleet/events", "--once", "--flush", *places)
    assert ran.returncode == 0, ran.stderr[-3000:]
    shown = run("show", "rebalances", "--tables", "fleet/tables", "--json")
    first, *_ = map(json.loads, shown.stdout.splitlines())
    assert first["trigger"]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("show group orders", "orders"),
        ("show rebalances", "orders"),
        ("query", "most-rebalances"),
        ("query most-rebalances", "orders"),
        ("check", "rebalance"),
        ("optimize", "changes"),
    ],
)
def test_installed_alone_its_commands_read_tables(run, tmp_path, arguments, shown):
    write_story(tmp_path / "tables")
    done = run(*arguments.split())
    # The exit code of `check` is the state of the tables.
    assert "Traceback" not in done.stderr
    assert shown.lower() in (done.stdout + done.stderr).lower()
    assert done.returncode == 0 or arguments == "check", done.stderr
