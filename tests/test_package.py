"""The wheel: what it holds beside its code, and that it works where the checkout is not."""

import json
import os
import re
import subprocess
import urllib.request
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
def start(installed_monitor, tmp_path):
    """Start the command of the installed wheel in a folder of its own."""
    env = {name: os.environ[name] for name in ("PATH", "HOME", "REBALANCE_MONITOR_CACHE") if name in os.environ}

    def start(*arguments):
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [installed_monitor, *arguments], cwd=tmp_path, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )

    return start


@pytest.fixture
def run(start):
    """Run the command of the installed wheel to its end."""

    def run(*arguments):
        with start(*arguments) as process:
            out, err = process.communicate(timeout=200)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

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
    assigned = run("show", "assignments", "--tables", "fleet/tables", "--json")
    queue, *_ = map(json.loads, assigned.stdout.splitlines())
    owned = run("who-owned", queue["topic"], str(queue["queue_id"]), "--tables", "fleet/tables")
    assert queue["topic"] in owned.stdout, owned.stderr
    explained = run("explain", first["rebalance_id"], "--tables", "fleet/tables")
    assert first["group_id"] in explained.stdout, explained.stderr
    foreseen = run("what-if", "--group", "absent", "--add", "1", "--tables", "fleet/tables")
    assert "there is no group absent" in foreseen.stderr
    replayed = run("replay", "--group", first["group_id"], "--cluster", first["cluster"], "--tables", "fleet/tables")
    assert "decided again as recorded" in replayed.stdout or "no history" in replayed.stderr, replayed.stderr
    state = run("state", "show", "--checkpoint", "fleet/checkpoint", "--json")
    assert sum(json.loads(line)["heartbeat_members"] for line in state.stdout.splitlines()) > 0, state.stderr
    exported = run("state", "export", "--checkpoint", "fleet/checkpoint", "--out", "fleet/state")
    assert exported.stdout.endswith(" files in fleet/state\n"), exported.stderr


@pytest.mark.slow
@pytest.mark.spark
def test_installed_alone_it_shows_the_demo_and_rolls_its_state_back(run):
    shown = run("demo", "--for", "5s")
    assert shown.returncode == 0, shown.stderr[-3000:]
    rolled = run("state", "rollback", "--checkpoint", "demo/checkpoint")
    assert "Traceback" not in rolled.stderr
    assert "batch" in rolled.stdout + rolled.stderr


def test_installed_alone_it_annotates(run, tmp_path):
    noted = run("annotate", "orders 2.4.1", "--out", "events")
    assert noted.returncode == 0, noted.stderr
    assert any("orders 2.4.1" in path.read_text() for path in (tmp_path / "events").rglob("*.jsonl"))


def test_installed_alone_it_serves_pages(start, tmp_path):
    write_story(tmp_path / "tables")
    with start("serve", "--port", "0") as server:
        try:
            address = next(line for line in server.stderr if line.startswith("pages: ")).split()[1]
            page = _get(address)
            assert "orders" in page
            files = re.findall(r'"/(static/[^"]+)"', page)
            assert files
            for file in files:
                assert _get(f"{address}{file}"), file
            assert json.loads(_get(f"{address}api/v1/groups"))
        finally:
            server.terminate()
            server.communicate(timeout=60)
    assert server.returncode == 0


def test_installed_alone_it_answers_an_agent(start, tmp_path):
    write_story(tmp_path / "tables")
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    with start("mcp") as server:
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
        server.stdin.write(json.dumps(message) + "\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        server.communicate(timeout=60)
    assert answer["result"]["serverInfo"]["name"] == "rebalance-monitor"


def _get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def test_installed_alone_it_packs_itself(run, tmp_path):
    packed = run("pack", "--out", "packed")
    assert packed.returncode == 0, packed.stderr
    with zipfile.ZipFile(tmp_path / "packed/rebalance-monitor.zip") as code:
        assert {"streaming/job.py", "udfs/stateful.py", "streaming/conf/default.toml"} <= set(code.namelist())
    assert any("delta-spark" in jar.name for jar in (tmp_path / "packed/jars").iterdir())


@pytest.mark.parametrize(
    ("arguments", "exit_code", "refused"),
    [
        ("collect --kafka 127.0.0.1:1 --cluster c --once --out events", 1, "no Kafka broker can be reached"),
        ("alerts --once", 2, "no channel is configured"),
    ],
)
def test_installed_alone_it_names_what_it_lacks(run, tmp_path, arguments, exit_code, refused):
    write_story(tmp_path / "tables")
    done = run(*arguments.split())
    assert (done.returncode, "Traceback" in done.stderr) == (exit_code, False)
    assert refused in done.stderr


def test_each_command_is_run_from_the_wheel(run):
    listed = run("--help").stdout.partition("Commands:")[2]
    commands = re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE)
    tests = Path(__file__).read_text()
    assert "explain" in commands
    assert [command for command in commands if not re.search(rf'"{command}[ "]', tests)] == []


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
