"""Shell: makes the virtual environment from the hash locks.

Standard library only: it runs before anything is installed.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from streaming.setup.errors import SetupError
from streaming.setup.java import find_java

_ROOT = Path(__file__).resolve().parents[2]
_VENV = _ROOT / ".venv"
_PYTHON = _VENV / "bin" / "python"
_RECORD = _VENV / "installed.json"
# Measured: the environment takes 1.2 GB, building pyspark's wheel another 1.3 GB of temporary space.
_NEEDED_BYTES = 2_000_000_000


def make(kind: str) -> None:
    """Install the packages of this lock into `.venv`; installed ones stay.

    Args:
        kind: `run`, or `dev` with the tools of `make test` as well.

    Raises:
        SetupError: Something is missing; the message has the remedy.
    """
    find_java()
    _require_writable(_ROOT)
    done = _read_record()
    if not _PYTHON.exists() or done.get("root") != str(_ROOT):
        _require_space()
        _make_empty_venv()
        done = {"root": str(_ROOT)}
    steps = {
        "build": ["--require-hashes", "-r", "requirements/build.lock"],
        kind: ["--require-hashes", "--no-build-isolation", "-r", f"requirements/{kind}.lock"],
        "project": ["--no-deps", "--no-build-isolation", "-e", "."],
    }
    for step, arguments in steps.items():
        source = _ROOT / ("pyproject.toml" if step == "project" else f"requirements/{step}.lock")
        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        if done.get(step) == digest:
            continue
        if step == kind:
            _require_space()
            count = len(re.findall(r"^[\w.-]+==", source.read_text(), re.MULTILINE))
            _print(f"installing {count} packages into {_VENV} (pyspark is large: 450 MB)")
        _pip(arguments)
        done[step] = digest
        _RECORD.write_text(json.dumps(done, indent=1, sort_keys=True) + "\n")


def _print(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _read_record() -> dict[str, str]:
    try:
        return dict(json.loads(_RECORD.read_text()))
    except (OSError, ValueError):
        return {}


def _require_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK):
        raise SetupError(
            f"The project's folder {folder} is not writable for this user; .venv is made inside it.",
            "Copy or clone the project to a folder that you may write, and run make there.",
        )


def _require_space() -> None:
    for folder, remedy in ((_ROOT, "Make space there."), (Path(tempfile.gettempdir()), "Or: export TMPDIR=/a/folder")):
        free = shutil.disk_usage(folder).free
        if free < _NEEDED_BYTES:
            raise SetupError(
                f"There is too little space in {folder}: {free / 1e9:.1f} GB are free, "
                f"{_NEEDED_BYTES / 1e9:.0f} are needed.",
                remedy,
            )


def _make_empty_venv() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(_VENV)], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        shutil.rmtree(_VENV, ignore_errors=True)
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise SetupError(
            f"{sys.executable} cannot make a virtual environment: {(made.stdout + made.stderr).strip()}",
            f"On Debian and Ubuntu: apt install python{version}-venv",
        )


def _pip(arguments: list[str]) -> None:
    """Run pip; it prints errors only."""
    quiet = ["--disable-pip-version-check", "--no-input", "--quiet"]
    command = [str(_PYTHON), "-m", "pip", "install", *quiet, *arguments]
    # A user's setting to install into the home folder does not fit a virtual environment.
    environment = {**os.environ, "PIP_USER": "0"}
    if subprocess.run(command, cwd=_ROOT, env=environment, check=False).returncode != 0:
        raise SetupError(
            "pip failed; see above.",
            "Fix that, then run make again: what was fetched is kept. Behind a proxy: export https_proxy=http://PROXY:PORT\n"
            "If an environment of another kind is in the way, run make clean first.",
        )


def main(arguments: list[str]) -> int:
    """Make the environment that the first argument names."""
    try:
        make(arguments[0] if arguments else "run")
    except SetupError as error:
        _print(f"error: {error}")
        return 2
    except OSError as error:
        _print(f"error: {SetupError(str(error), 'Free space or grant write permission there, then run make again.')}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
