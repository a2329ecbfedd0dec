"""A real HDFS (Hadoop 3.5.0): a name node on a loopback port and a data node, in one process, over a folder."""

import contextlib
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from streaming.setup.java import find_java
from tests.kit.jars import JAVA, compiled, compiled_guard, kit_jars
from tests.kit.processes import QUICK_START, JavaServer, free_port

_START_TIMEOUT_S = 120
_JARS = "hdfs-3.5.0"
_MEMORY = ("-Xmx400m",)


class HdfsServer:
    """One HDFS.

    Attributes:
        uri: Its root.
    """

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.uri = f"hdfs://127.0.0.1:{port}"
        # What else it needs of Hadoop, Spark brings.
        spark = f"{Path(pyspark.__file__).parent}/jars/*"
        classes = compiled(_JARS, "MiniHdfs", [JAVA / "MiniHdfs.java"], beside=spark)
        self._class_path = f"{compiled_guard()}:{classes}:{kit_jars(_JARS)[0].parent}/*:{spark}"
        main = ["MiniHdfs", str(port), str(folder / "data")]
        self._server = JavaServer("hdfs", folder, self._class_path, _MEMORY, main)

    def folder(self, _monkeypatch: pytest.MonkeyPatch) -> str:
        """Return the URI of a folder that nobody uses yet; it needs no options."""
        return f"{self.uri}/{uuid.uuid4().hex}"

    def administer(self, *arguments: str) -> None:
        """Run `hdfs dfsadmin`."""
        main = "org.apache.hadoop.hdfs.tools.DFSAdmin"
        command = [find_java().java, *QUICK_START, "-cp", self._class_path, main, "-fs", self.uri, *arguments]
        subprocess.run(command, check=True, capture_output=True)

    def start(self) -> None:
        """Start it, and wait for its data node."""
        self._server.start(lambda: "\nactive\n" in f"\n{self._server.log.read_text()}", _START_TIMEOUT_S)

    def stop(self) -> None:
        """End it."""
        self._server.kill()


@contextlib.contextmanager
def running_hdfs(folder: Path) -> Iterator[HdfsServer]:
    """Run one until the block is left."""
    server = HdfsServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
