"""A real ZooKeeper 3.9.4 on a loopback port; `stop` and `start` again keep its port and its data."""

import contextlib
import re
import socket
from collections.abc import Iterator
from pathlib import Path

from tests.kit.jars import class_path
from tests.kit.processes import JavaServer, free_port, listens

_START_TIMEOUT_S = 120


class ZooKeeper:
    """One server alone; sessions of its clients live on in its data.

    Attributes:
        address: `127.0.0.1:PORT`.
        server: its process.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._port = free_port()
        self.address = f"127.0.0.1:{self._port}"
        settings = {
            "tickTime": "1000",
            "dataDir": str(folder / "data"),
            "clientPort": str(self._port),
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "maxClientCnxns": "200",
            "minSessionTimeout": "2000",
        }
        written = folder / "zoo.cfg"
        written.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        options = ["-Xms32m", "-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        main = ["org.apache.zookeeper.server.ZooKeeperServerMain", str(written)]
        self.server = JavaServer("zookeeper", folder, class_path("zookeeper-3.9.4", "Guarded"), options, main)

    def start(self) -> None:
        """Start it (again)."""
        self.server.start(lambda: listens(self._port), _START_TIMEOUT_S)

    def connections(self) -> int:
        """Return how many clients are connected, without the one that asks; 0 while the server answers nobody."""
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=5) as connection:
                connection.sendall(b"srvr")
                answer = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
        except OSError:
            return 0
        found = re.search(r"^Connections: (\d+)$", answer, re.MULTILINE)
        return 0 if found is None else int(found[1]) - 1

    def stop(self) -> None:
        """Shut it down in order."""
        self.server.stop()

    def kill(self) -> None:
        """End it without any order (SIGKILL)."""
        self.server.kill()


@contextlib.contextmanager
def running_zookeeper(folder: Path) -> Iterator[ZooKeeper]:
    """Run one until the block is left."""
    keeper = ZooKeeper(folder)
    try:
        keeper.start()
        yield keeper
    finally:
        keeper.stop()
