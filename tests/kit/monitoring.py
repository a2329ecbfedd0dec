"""Real Prometheus and Alertmanager: Debian's programs, installed when missing, on loopback ports."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx2

from tests.kit.processes import free_port, wait_until

_PACKAGES = ("prometheus", "prometheus-alertmanager")
REMEDY = "apt install prometheus prometheus-alertmanager (Debian, Ubuntu), and run the tests again"


@cache
def program(name: str) -> str:
    """Return a program of Debian's packages, which are installed when they are missing and that is allowed.

    Raises:
        RuntimeError: It is not there and cannot be installed; the message has the remedy.
    """
    if shutil.which(name) is None and os.geteuid() == 0:
        _install()
    found = shutil.which(name)
    if found is None:
        raise RuntimeError(f"{name} is missing: {REMEDY}")
    return found


def _install() -> None:
    # In run level 1 the packages do not start their services.
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for step in (["update"], ["install", "--yes", "--no-install-recommends", *_PACKAGES]):
        with contextlib.suppress(OSError):
            subprocess.run(["apt-get", *step], env=env, capture_output=True, timeout=300, check=False)


@dataclass(frozen=True)
class Service:
    """A running program with an API."""

    url: str

    def get(self, path: str) -> Any:
        """Return the JSON of its API."""
        answer = httpx2.get(f"{self.url}{path}", timeout=30, trust_env=False)
        answer.raise_for_status()
        return answer.json()


@contextlib.contextmanager
def _running(command: list[str], folder: Path, port: int) -> Iterator[Service]:
    url = f"http://127.0.0.1:{port}"
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            wait_until(lambda: _is_ready(url, process), f"{command[0]} to be ready, see {log.name}")
            yield Service(url)
        finally:
            process.terminate()
            process.wait(30)


def _is_ready(url: str, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, f"it ended with {process.returncode}"
    with contextlib.suppress(httpx2.HTTPError):
        return httpx2.get(f"{url}/-/ready", timeout=5, trust_env=False).status_code == 200
    return False


@contextlib.contextmanager
def prometheus(folder: Path, configuration: str) -> Iterator[Service]:
    """Run Prometheus with a configuration in YAML."""
    (folder / "prometheus.yml").write_text(configuration, encoding="utf-8")
    port = free_port()
    command = [program("prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
    with _running([*command, f"--web.listen-address=127.0.0.1:{port}"], folder, port) as service:
        yield service


@contextlib.contextmanager
def alertmanager(folder: Path) -> Iterator[Service]:
    """Run an Alertmanager that sends nothing on."""
    configuration = "route: {receiver: none, group_wait: 1s, group_interval: 1s}\nreceivers: [{name: none}]\n"
    (folder / "alertmanager.yml").write_text(configuration, encoding="utf-8")
    port = free_port()
    command = [program("prometheus-alertmanager"), "--config.file=alertmanager.yml", "--storage.path=data"]
    command += ["--cluster.listen-address=", f"--web.listen-address=127.0.0.1:{port}"]
    with _running(command, folder, port) as service:
        yield service
