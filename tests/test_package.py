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

from tests.job.commands import CONFIG
from tests.kit.processes import QUICK_START
from tests.kit.wheel import installed_bytes, required_packages
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
    env["JDK_JAVA_OPTIONS"] = " ".join(QUICK_START)

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


@pytest.fixture
def read(installed_reader, tmp_path):
    """Run the command of the wheel that was installed without an extra."""

    def read(*arguments):
        command = [installed_reader, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)

    return read


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
def test_installed_alone_it_runs_the_job_and_shows_the_tables(run, tmp_path):
    (tmp_path / "small.toml").write_text(CONFIG)
    fleet = ["--groups", "6", "--duration", "10s"]
    simulated = run("simulate", "--out", "fleet", *fleet)
    assert simulated.returncode == 0, simulated.stderr
    places = ["--tables", "fleet/tables", "--checkpoint", "fleet/checkpoint", "--config", "small.toml"]
    ran = run("run", "--events", "fleet/events", "--once", "--flush", *places)
    assert ran.returncode == 0, ran.stderr[-3000:]
    shown = run("show", "rebalances", "--tables", "fleet/tables", "--json")
    first, *_ = map(json.loads, shown.stdout.splitlines())
    assert first["trigger"]
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


def test_each_command_is_run_from_the_wheel(run):
    listed = run("--help").stdout.partition("Commands:")[2]
    commands = re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE)
    tests = Path(__file__).read_text()
    assert "explain" in commands
    assert [command for command in commands if not re.search(rf'"{command}[ "]', tests)] == []


@pytest.mark.parametrize(("extras", "most_mb"), [((), 700), (("job",), 1_250)])
def test_what_is_installed_stays_as_small_as_the_docs_say(wheel, extras, most_mb):
    packages = required_packages(wheel, *extras)
    assert ("pyspark" in packages) == ("job" in extras)
    assert installed_bytes(packages) < most_mb * 1e6


def test_the_wheel_itself_is_small(wheel):
    assert wheel.stat().st_size < 2e6


def test_without_an_extra_there_is_no_spark(installed_reader):
    python = installed_reader.with_name("python")
    found = subprocess.run([python, "-c", "import duckdb, pyspark"], capture_output=True, text=True, check=False)
    assert found.stderr.endswith("ModuleNotFoundError: No module named 'pyspark'\n")


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("show groups", "orders"),
        ("show group orders", "orders"),
        ("explain bb33", "session_expired"),
        ("check", "REBALANCES"),
        ("query", "most-rebalances"),
        ("query most-rebalances", "orders"),
        ("who-owned t 0 --cluster c1", "t"),
        ("optimize", "changes"),
        ("replay --group orders --cluster c1", ""),
        ("advise --group orders --cluster c1", ""),
        ("what-if --group absent --add 1", "there is no group absent"),
        ("simulate --out fleet --seed 1 --duration 5s", "rebalances"),
        ("annotate deployed --out events", ""),
        ("collect --kafka 127.0.0.1:1 --cluster c --once --out events", "no Kafka broker can be reached"),
        ("alerts --once", "no channel is configured"),
    ],
)
def test_without_spark_what_only_reads_or_collects_works(read, tmp_path, arguments, shown):
    write_story(tmp_path / "tables")
    done = read(*arguments.split())
    assert "Traceback" not in done.stderr
    assert "Spark" not in done.stderr
    assert shown in done.stdout + done.stderr


def test_without_spark_the_pages_are_served(installed_reader, tmp_path):
    write_story(tmp_path / "tables")
    pipe = subprocess.PIPE
    command = [installed_reader, "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=pipe, text=True) as server:
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


@pytest.mark.parametrize("command", ["run --events .", "demo --for 1s", "state show --checkpoint .", "setup"])
def test_without_spark_a_command_of_the_job_says_what_to_install(read, command):
    done = read(*command.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-2:] == [
        "error: This command needs Spark, which is not installed with this rebalance-monitor.",
        f"  {Path(done.args[0]).with_name('python')} -m pip install 'rebalance-monitor[job]'",
    ]


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        ("pipx_metadata.json", "pipx install --force 'rebalance-monitor[job]'"),
        ("uv-receipt.toml", "uv tool install 'rebalance-monitor[job]'"),
    ],
)
def test_the_remedy_is_that_of_the_tool_that_installed_it(read, installed_reader, mark, expected):
    marked = installed_reader.parents[1] / mark
    marked.touch()
    try:
        assert read("setup").stderr.splitlines()[-1] == f"  {expected}"
    finally:
        marked.unlink()


def test_setup_fetches_the_jars_and_writes_nothing_beside_itself(run, installed_monitor):
    def files():
        return {path for path in installed_monitor.parents[1].rglob("*") if "__pycache__" not in path.parts}

    before = files()
    done = run("setup")
    assert done.returncode == 0, done.stderr
    jars, summary = done.stdout.splitlines()
    assert any("delta-spark" in jar.name for jar in Path(jars.removeprefix("jars: ")).iterdir())
    assert "each with its SHA-256; Java " in summary
    # An environment of pipx, or one that others may only read, is enough.
    assert files() == before
