"""The wheel, built once, and an environment with it and its dependencies in which nothing leads to the checkout."""

import subprocess
import sys
from pathlib import Path

from tests.kit.spark_cluster import python_with_dependencies

_ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 200


def build_wheel(folder: Path) -> Path:
    """Build the wheel; return its file."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, timeout=_TIMEOUT_S)
    (built,) = folder.glob("*.whl")
    return built


def install_wheel(wheel: Path, folder: Path) -> Path:
    """Install a wheel into an environment of its own; return its command `rebalance-monitor`."""
    python = python_with_dependencies(folder)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], cwd=folder, check=True, timeout=_TIMEOUT_S)
    return python.with_name("rebalance-monitor")
