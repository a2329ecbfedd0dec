"""A real standalone cluster of Spark: a master and workers of one core, each a process of its own on loopback.

Nothing of the checkout is within reach of a worker: its environment, working folder and Python, an environment with the
dependencies alone, are made for it.
"""

from __future__ import annotations

import contextlib
import os
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyspark

from streaming.setup.java import find_java
from tests.kit.jars import compiled_guard
from tests.kit.processes import QUICK_START, JavaServer, free_port, listens

_START_TIMEOUT_S = 120
_STOP_TIMEOUT_S = 30
_WORKER_MEMORY = "2g"
SPARK_HOME = Path(pyspark.__file__).parent


class SparkCluster:
    """One cluster; the workers may be killed and replaced.

    Attributes:
        master: Its URL.
        python: The workers' Python: with the project's dependencies, without the project.
        workers: Those that were started.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self.master = f"spark://127.0.0.1:{self._port}"
        self.python = python_with_dependencies(folder / "python")
        self.workers: list[JavaServer] = []
        self._master = self._server(
            "master",
            "org.apache.spark.deploy.master.Master",
            *("--host", "127.0.0.1", "--port", str(self._port), "--webui-port", "0"),
        )

    def start(self, workers: int) -> None:
        """Start the master and this many workers."""
        self._master.start(lambda: listens(self._port), _START_TIMEOUT_S)
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> JavaServer:
        """Start one more worker, of one core; return once the master has it."""
        name = f"worker-{len(self.workers)}"
        place = self._folder / name
        place.mkdir(parents=True)
        worker = self._server(
            name,
            "org.apache.spark.deploy.worker.Worker",
            *("--host", "127.0.0.1", "--cores", "1", "--memory", _WORKER_MEMORY),
            *("--work-dir", str(place), "--webui-port", "0", self.master),
        )
        self.workers.append(worker)
        worker.start(lambda: "Successfully registered with master" in worker.last_output(), _START_TIMEOUT_S)
        return worker

    def executors(self, worker: JavaServer) -> list[psutil.Process]:
        """Return the processes of the executors that a worker runs now."""
        return [
            process
            for process in psutil.Process(worker.pid).children()
            if "CoarseGrainedExecutorBackend" in _command(process)
        ]

    def kill_worker(self, worker: JavaServer) -> None:
        """End a worker and all that runs on it as a power cut does (SIGKILL)."""
        family = [*psutil.Process(worker.pid).children(recursive=True)]
        worker.kill()
        _kill(family)

    def stop(self) -> None:
        """End all of it; nothing is left running."""
        family = [child for worker in self.workers if worker.is_running for child in _family(worker)]
        for server in (*self.workers, self._master):
            server.stop(_STOP_TIMEOUT_S)
        _kill(family)

    def _server(self, name: str, main: str, *arguments: str) -> JavaServer:
        place = self._folder / f"{name}-home"
        place.mkdir(parents=True)
        env = {
            "PATH": os.defpath,
            "HOME": str(place),
            "TMPDIR": str(place),
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_LOCAL_DIRS": str(place),
            "SPARK_LOCAL_IP": "127.0.0.1",
            # For executors: they inherit it.
            "JDK_JAVA_OPTIONS": " ".join(QUICK_START),
        }
        class_path = f"{compiled_guard()}:{SPARK_HOME}/jars/*"
        return JavaServer(name, place, class_path, ["-Xmx256m"], [main, *arguments], env)


def python_with_dependencies(folder: Path) -> Path:
    """Make an environment that has this one's packages and not the project; return its Python."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    # A line of a .pth file adds a folder without the .pth files in it, of which one leads to the checkout.
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder / "bin/python"


def _family(worker: JavaServer) -> list[psutil.Process]:
    return psutil.Process(worker.pid).children(recursive=True)


def _command(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        return " ".join(process.cmdline())
    return ""


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=_STOP_TIMEOUT_S)


@contextlib.contextmanager
def running_spark_cluster(folder: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """Run one until the block is left."""
    cluster = SparkCluster(folder)
    try:
        cluster.start(workers)
        yield cluster
    finally:
        cluster.stop()
