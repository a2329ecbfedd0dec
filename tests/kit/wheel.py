"""The wheel, built once, and environments with it and its dependencies in which nothing leads to the checkout."""

import subprocess
import sys
import venv
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from streaming.spark.class_archive import archive_file
from tests.kit.spark_cluster import python_with_dependencies

_ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 200


def build_wheel(folder: Path) -> Path:
    """Build the wheel; return its file."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, timeout=_TIMEOUT_S)
    (built,) = folder.glob("*.whl")
    return built


def install_wheel(wheel: Path, folder: Path, required: dict[str, Distribution] | None = None) -> Path:
    """Install a wheel into an environment of its own; return its command `rebalance-monitor`.

    Args:
        wheel: The wheel.
        folder: Where the environment is to be.
        required: The packages that it has; without them, all that are installed here.
    """
    python = python_with_dependencies(folder) if required is None else _python_with(folder, required)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], cwd=folder, check=True, timeout=_TIMEOUT_S)
    if required is None and archive_file().exists():
        # Its Spark has the same jars, so that its JVM starts as quickly.
        (folder / archive_file().name).symlink_to(archive_file())
    return python.with_name("rebalance-monitor")


def required_packages(wheel: Path, *extras: str) -> dict[str, Distribution]:
    """Return what pip installs for the wheel with these extras: each package by its name."""
    (info,) = (place for place in zipfile.Path(wheel).iterdir() if place.name.endswith(".dist-info"))
    found: dict[str, Distribution] = {}
    todo, seen = _requirements(PathDistribution(info), set(extras)), set()
    while todo:
        wanted = todo.pop()
        name, extras_of = canonicalize_name(wanted.name), frozenset(wanted.extras)
        if (name, extras_of) not in seen:
            seen.add((name, extras_of))
            found[name] = distribution(name)
            todo += _requirements(found[name], wanted.extras)
    return found


def _requirements(package: Distribution, extras: set[str]) -> list[Requirement]:
    given = [{"extra": extra} for extra in ("", *extras)]
    wanted = map(Requirement, package.requires or [])
    return [each for each in wanted if each.marker is None or any(map(each.marker.evaluate, given))]


def installed_bytes(packages: dict[str, Distribution]) -> int:
    """Return what packages occupy on the disk."""
    return sum(path.stat().st_size for package in packages.values() for path in _files(package))


def _files(package: Distribution) -> list[Path]:
    paths = [Path(str(file.locate())) for file in package.files or []]
    return [path for path in paths if path.is_file()]


def _python_with(folder: Path, packages: dict[str, Distribution]) -> Path:
    """Make an environment of links to the files of these packages; return its Python."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    for package in packages.values():
        root = Path(str(package.locate_file("")))
        for path in _files(package):
            if path.is_relative_to(root) and path.suffix != ".pyc":
                link = site / path.relative_to(root)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(path)
    return folder / "bin/python"
