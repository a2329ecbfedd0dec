"""Java programs as child processes: started, waited for, stopped; none outlives the tests and no other is touched."""

import contextlib
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.kit import class_archives
from tests.kit.jars import java

# Below the range from which systems take ports for outgoing connections: a port is asked for again after a restart.
_PORTS = range(20_000, 32_000)
# Short-lived JVMs: what the second compiler and a parallel collector would cost, they never earn back; nor what Spark's
# code generation does for the few rows of a test. The verification of the classes in their jars is a tenth of what a
# broker or a member computes.
QUICK_START = (
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    *("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"),
    *("-Dspark.sql.codegen.wholeStage=false", "-Dspark.sql.codegen.factoryMode=NO_CODEGEN"),
    # Derby is in Hive's metastore; its log would be in the working folder.
    "-Dderby.stream.error.file=/dev/null",
)
_POLL_S = 0.05
_PATIENCE_S = 120.0
_TAIL_BYTES = 4_000
_given: set[int] = set()  # ports, by this process: who asked for one may not listen on it yet


def free_port() -> int:
    """Return a loopback port that nobody listens on, each one once."""
    chance = random.SystemRandom()
    while True:
        port = chance.choice([candidate for candidate in _PORTS if candidate not in _given])
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            _given.add(port)
            return port


def wait_until(condition: Callable[[], object], what: str, timeout_s: float = _PATIENCE_S) -> None:
    """Return as soon as a condition holds; it is asked every 50 ms.

    Raises:
        AssertionError: It did not hold in time.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"after {timeout_s:g} s still not: {what}"
        time.sleep(_POLL_S)


class JavaServer:
    """A server started by way of `Guarded`, so that it ends with the process that started it.

    Args:
        env: Its environment; None = that of this process.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        class_path: str,
        options: Sequence[str],
        main: Sequence[str],
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._env = env
        self.folder = folder
        self.log = folder / f"{name}.log"
        self._command = [
            java(),
            *QUICK_START,
            *class_archives.options_of(class_path),
            *options,
            *("-cp", class_path, "Guarded"),
            *main,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        return self._running().pid

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self, is_ready: Callable[[], bool], timeout_s: float) -> None:
        """Start it and return once `is_ready` says so.

        Raises:
            RuntimeError: it ended, or was not ready in time; the message ends with its log.
        """
        assert self._process is None or self._process.poll() is not None, f"{self.name} runs already"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self.folder,
                env=self._env,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + timeout_s
        while not is_ready():
            if not self.is_running:
                raise RuntimeError(f"{self.name} ended while starting:\n{self.last_output()}")
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{self.name} was not ready after {timeout_s} s:\n{self.last_output()}")
            time.sleep(_POLL_S)

    def stop(self, timeout_s: float = 20) -> None:
        """Request it to end and wait; kill it if it does not."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._bury()

    def kill(self) -> None:
        """End it as a power cut does (SIGKILL)."""
        if self._process is not None:
            self._process.kill()
            self._bury()

    def freeze(self) -> None:
        """Stop its clock (SIGSTOP): connections stay open and nothing answers."""
        self._running().send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen server go on."""
        self._running().send_signal(signal.SIGCONT)

    def last_output(self) -> str:
        """Return the end of its log."""
        return self.log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, f"{self.name} was not started"
        return self._process

    def _bury(self) -> None:
        process = self._running()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
        self._process = None


def listens(port: int) -> bool:
    """Return whether somebody accepts connections on this loopback port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
