"""What `make` says: its targets, and the remedy where something is missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def make(*arguments, **environment):
    # What an outer make hands down would turn this one into its part.
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["/usr/bin/env", "make", *arguments],
        cwd=ROOT,
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("arguments", [(), ("help",)])
def test_help_is_the_default_and_lists_each_target_with_what_it_does(arguments):
    done = make(*arguments)
    listed = {line.split()[1] for line in done.stdout.splitlines()}
    assert listed >= {"help", "setup", "demo", "test", "quick", "bench", "soak", "lint", "clean"}
    assert all(len(line.split()) > 3 for line in done.stdout.splitlines())


def test_the_demo_passes_on_how_long_it_runs():
    assert "rebalance-monitor demo --for 60s" in make("--dry-run", "demo", "FOR=60s").stdout
    assert "--for" not in make("--dry-run", "demo").stdout


def test_a_missing_python_is_reported_with_the_remedy():
    done = make("--always-make", "setup", "PYTHON=no-such-python")
    assert done.returncode == 2
    assert "no-such-python is not there" in done.stderr
    assert "make PYTHON=" in done.stderr


def test_a_missing_java_is_reported_with_the_remedy(tmp_path):
    (tmp_path / "make").symlink_to(shutil.which("make"))
    done = make("--always-make", "setup", f"PYTHON={sys.executable}", PATH=str(tmp_path), JAVA_HOME="")
    assert done.returncode == 2
    assert "No Java was found" in done.stderr
    assert "JAVA_HOME" in done.stderr


def make_with_tools(target, folder, *failing):
    """Make a target with tools that print their name, and fail if that is asked of them."""
    for tool in ("ruff", "mypy", "lint-imports", "pytest"):
        (folder / tool).write_text(f"#!/bin/sh\necho {tool} ran\nexit {int(tool in failing)}\n")
        (folder / tool).chmod(0o755)
    return make("--old-file=.venv/.set-up-dev", target, f"BIN={folder}")


@pytest.mark.parametrize("target", ["test", "quick"])
def test_lint_beside_the_tests_is_silent_unless_it_fails(target, tmp_path):
    done = make_with_tools(target, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "pytest ran\n", "")
    done = make_with_tools(target, tmp_path, "pytest")
    assert (done.returncode, done.stdout) == (2, "pytest ran\n")
    assert "lint failed" not in done.stderr
    done = make_with_tools(target, tmp_path, "mypy")
    assert done.returncode == 2
    assert "pytest ran\n" in done.stdout
    assert "lint failed:\nruff ran\nruff ran\nmypy ran\n" in done.stderr
    assert "lint-imports ran" not in done.stdout + done.stderr
