"""A real MetaQ 1.4.6 cluster on loopback ports: a ZooKeeper and brokers.

with metaq_cluster(tmp_path, {"orders": 5}) as cluster:
    cluster.broker.set_topics({"orders": 7})
    with cluster.add_broker({"orders": 2}) as second:
        second.kill()
"""

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import ZookeeperError

from tests.kit.jars import class_path
from tests.kit.processes import JavaServer, free_port, listens, wait_until
from tests.kit.zookeeper import ZooKeeper, running_zookeeper

JARS = "metaq-server-1.4.6.2"
_START_TIMEOUT_S = 120
_SESSION_MS = 4_000
_SYNC_MS = 200
_ROOT = "/meta"
_QUIET = """\
log4j.rootLogger=WARN,stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%d %p [%c] %m%n
"""


class MetaqBroker:
    """One broker; `stop` and `start` again keep its id, its port and its data.

    Attributes:
        broker_id: as it is in the names of partitions.
    """

    def __init__(self, folder: Path, keeper: ZooKeeper, broker_id: int, topics: Mapping[str, int]) -> None:
        # Its reader of the configuration asks for the folder above the file's.
        (folder / "conf").mkdir(parents=True, exist_ok=True)
        self.broker_id = broker_id
        self._folder = folder
        self._keeper = keeper
        self._port = free_port()
        self._file = folder / "conf" / "server.ini"
        self._topics = dict(topics)
        self._was_killed = False
        (folder / "log4j.properties").write_text(_QUIET)
        self._write()
        options = [
            *("-Xms48m", "-Xmx128m", f"-Duser.home={folder}", f"-Dmeta.home={folder}"),
            f"-Dlog4j.configuration=file:{folder / 'log4j.properties'}",
        ]
        classes = f"{class_path(JARS, 'Guarded')}:{class_path(JARS, 'MetaqBroker')}"
        self.server = JavaServer(f"metaq-{broker_id}", folder, classes, options, ["MetaqBroker", str(self._file)])

    def start(self) -> None:
        """Start it (again) and wait until it has registered its topics."""
        if self._was_killed:
            # It ends at once where its node of before, which goes with its session, is still there.
            wait_until(lambda: not self._is_registered(), f"broker {self.broker_id} of before is gone")
            self._was_killed = False
        self.server.start(self._is_ready, _START_TIMEOUT_S)

    def stop(self) -> None:
        """Shut it down in order: it takes its topics out of ZooKeeper."""
        self.server.stop()

    def kill(self) -> None:
        """End it without any order (SIGKILL): its topics go when its session expires."""
        self.server.kill()
        self._was_killed = True

    def set_topics(self, topics: Mapping[str, int]) -> None:
        """Change the numbers of partitions; the running broker takes them up within a second or so."""
        self._topics = dict(topics)
        self._write()

    def put(self, topic: str, partition: int, messages: Sequence[bytes]) -> None:
        """Write messages to one partition.

        Raises:
            ValueError: the broker refuses one.
        """
        with socket.create_connection(("127.0.0.1", self._port), timeout=30) as connection:
            answers = connection.makefile("rb")
            for number, message in enumerate(messages):
                connection.sendall(b"put %s %d %d 0 -1 %d\r\n" % (topic.encode(), partition, len(message), number))
                connection.sendall(message)
                # No checksum. The answer is: result CODE LENGTH NUMBER, and a body of that length
                fields = answers.readline().split()
                answers.read(int(fields[2]))
                if fields[1] != b"200":
                    raise ValueError(b" ".join(fields).decode())

    def _write(self) -> None:
        system = {
            "brokerId": self.broker_id,
            "hostName": "127.0.0.1",
            "numPartitions": 1,
            "serverPort": self._port,
            "dashboardHttpPort": free_port(),
            "dataPath": self._folder / "data",
            "dataLogPath": self._folder / "data",
            "unflushThreshold": 0,
            "unflushInterval": 10_000,
            "maxSegmentSize": 1_048_576,
            "maxTransferSize": 1_048_576,
            "deletePolicy": "delete,168",
            "getProcessThreadCount": 4,
            "putProcessThreadCount": 4,
        }
        keeper = {
            "zk.zkConnect": self._keeper.address,
            "zk.zkRoot": _ROOT,
            "zk.zkSessionTimeoutMs": _SESSION_MS,
            "zk.zkConnectionTimeoutMs": 10_000,
            "zk.zkSyncTimeMs": _SYNC_MS,
        }
        sections = {"system": system, "zookeeper": keeper}
        sections |= {f"topic={name}": {"numPartitions": count} for name, count in self._topics.items()}
        lines = [
            line
            for section, values in sections.items()
            for line in (f"[{section}]", *(f"{key}={value}" for key, value in values.items()), "")
        ]
        unfinished = self._file.with_suffix(".new")
        unfinished.write_text("\n".join(lines))
        os.replace(unfinished, self._file)

    def _is_registered(self) -> bool:
        with client_of(self._keeper) as client:
            return client.exists(f"{_ROOT}/brokers/ids/{self.broker_id}/master") is not None

    def _is_ready(self) -> bool:
        if not listens(self._port):
            return False
        with client_of(self._keeper) as client, contextlib.suppress(ZookeeperError):
            return all(
                client.exists(f"{_ROOT}/brokers/topics-sub/{name}/{self.broker_id}-m") is not None
                for name in self._topics
            )
        return False


@dataclass
class MetaqCluster:
    """One running cluster.

    Attributes:
        root: the path of everything in ZooKeeper.
        session_ms: of brokers, and of members unless they say otherwise.
    """

    folder: Path
    zookeeper: ZooKeeper
    broker: MetaqBroker
    root: str = _ROOT
    session_ms: int = _SESSION_MS
    sync_ms: int = _SYNC_MS
    _brokers: list[MetaqBroker] = field(default_factory=list)

    @contextlib.contextmanager
    def add_broker(self, topics: Mapping[str, int]) -> Iterator[MetaqBroker]:
        """Run one more broker until the block is left."""
        number = self.broker.broker_id + len(self._brokers) + 1
        added = MetaqBroker(self.folder / f"broker-{number}", self.zookeeper, number, topics)
        self._brokers.append(added)
        try:
            added.start()
            yield added
        finally:
            added.stop()

    def client(self) -> contextlib.AbstractContextManager[KazooClient]:
        """Give a connected client of its ZooKeeper."""
        return client_of(self.zookeeper)


@contextlib.contextmanager
def client_of(keeper: ZooKeeper) -> Iterator[KazooClient]:
    """Give a connected client of a ZooKeeper."""
    client = KazooClient(hosts=keeper.address, timeout=10.0)
    client.start(timeout=30)
    try:
        yield client
    finally:
        client.stop()
        client.close()


@contextlib.contextmanager
def metaq_cluster(folder: Path, topics: Mapping[str, int]) -> Iterator[MetaqCluster]:
    """Run a ZooKeeper and one broker.

    Args:
        folder: an empty folder for their data and logs.
        topics: their numbers of partitions.
    """
    with running_zookeeper(folder / "zookeeper") as keeper:
        broker = MetaqBroker(folder / "broker-0", keeper, 0, topics)
        try:
            broker.start()
            yield MetaqCluster(folder, keeper, broker)
        finally:
            # A broker without a ZooKeeper does not end when it is asked to.
            if keeper.server.is_running:
                broker.stop()
            elif broker.server.is_running:
                broker.kill()
