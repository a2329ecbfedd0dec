"""Real Kafka brokers on loopback ports and in temporary folders: 3.9 and 4.x with KRaft, 1.0 with a ZooKeeper.

with kafka_41(tmp_path) as broker:
    ...                 # broker.bootstrap
    broker.stop()       # an outage
    broker.start()      # the same port, the same data
"""

import base64
import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.kit.certificates import Certificates
from tests.kit.jars import class_path, java
from tests.kit.processes import QUICK_START, JavaServer, free_port, listens
from tests.kit.zookeeper import running_zookeeper

_START_TIMEOUT_S = 120
_READY_TIMEOUT_S = 2
_FORMAT_TIMEOUT_S = 120
_ADMIN = "admin"
_UNSTABLE = "unstable.feature.versions.enable"
NEWEST = "4.4.0"
# Where the new protocol is off by default.
_EARLY = {
    "3.9.1": {
        "unstable.api.versions.enable": "true",
        "group.coordinator.rebalance.protocols": "classic,consumer",
        "group.consumer.migration.policy": "bidirectional",
    }
}

# Small, quick to start, and quick to expire members; what a test needs otherwise it says itself.
_COMMON = {
    "num.network.threads": "2",
    "num.io.threads": "2",
    "num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "log.cleaner.dedupe.buffer.size": "2000000",
    "log.segment.bytes": "16777216",
    "log.index.size.max.bytes": "1048576",
}
_KRAFT = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
}


@dataclass
class Broker:
    """One running broker; `stop` and `start` again keep its port and its data.

    Attributes:
        version: of the broker, e.g. `4.1.1`.
        bootstrap: `127.0.0.1:PORT`.
        clients: the version of kafka-clients that talks to it for certain.
        users: name to password, where clients must log in (SASL/PLAIN); `admin` may everything.
        certificates: by which clients know it, where they speak TLS with it.
    """

    version: str
    bootstrap: str
    clients: str
    server: JavaServer
    users: Mapping[str, str] = field(default_factory=dict)
    certificates: Certificates | None = None

    def client_settings(self, user: str | None = None) -> dict[str, str]:
        """Return what a librdkafka client needs to connect, as this user, else as the administrator."""
        settings = {"bootstrap.servers": self.bootstrap, "security.protocol": self._protocol}
        if self.certificates:
            settings["ssl.ca.location"] = str(self.certificates.authority)
        if self.users:
            name = user or _ADMIN
            settings |= {
                "sasl.mechanism": "PLAIN",
                "sasl.username": name,
                "sasl.password": self.users[name],
            }
        return settings

    def java_settings(self, user: str | None = None) -> dict[str, str]:
        """Return the same for a Java client (and, prefixed with `kafka.`, for Spark's source)."""
        settings = {"bootstrap.servers": self.bootstrap, "security.protocol": self._protocol}
        if self.certificates:
            settings |= self.certificates.client_settings()
        if self.users:
            name = user or _ADMIN
            settings |= {
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": _login(name, self.users[name]) + ";",
            }
        return settings

    def start(self) -> None:
        """Start it (again) and wait until it answers."""
        self.server.start(self._answers, _START_TIMEOUT_S)

    def stop(self) -> None:
        """Shut it down in order."""
        self.server.stop()

    def kill(self) -> None:
        """End it without any order (SIGKILL)."""
        self.server.kill()

    @property
    def _protocol(self) -> str:
        return _protocol(self.users, self.certificates)

    def _answers(self) -> bool:
        if not listens(int(self.bootstrap.rpartition(":")[2])):
            return False
        client = AdminClient(self.client_settings() | {"log_level": "0"})
        try:
            return bool(client.list_topics(timeout=_READY_TIMEOUT_S).brokers)
        except KafkaException:
            return False


@contextlib.contextmanager
def kafka_41(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    users: Mapping[str, str] | None = None,
    *,
    certificates: Certificates | None = None,
    features: Sequence[str] = (),
    version: str = "4.1.1",
    relayed: tuple[int, int] | None = None,
) -> Iterator[Broker]:
    """Run a Kafka 4.1.1 broker with its own controller in one process.

    Args:
        folder: an empty folder for its data and log.
        settings: lines of server.properties over those of the kit.
        users: names and passwords; with them every client logs in and has only the rights that
            `tests.kit.rights` gives it. A user `admin`, who may everything, is added.
        certificates: with them clients speak TLS.
        features: that are off by default, e.g. `share.version=1`; some want `unstable.*` settings beside them.
        version: another one that has KRaft: 3.9.1 (with groups of the new protocol turned on), or `NEWEST`.
        relayed: two ports: where `tests.kit.relay` listens, and where the broker does for what comes from there.
    """
    everybody = {_ADMIN: "of-the-kit", **users} if users else {}
    client_protocol = _protocol(everybody, certificates)
    properties = {
        "listener.security.protocol.map": f"CLIENTS:{client_protocol},CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT"
        f",RELAYED:{client_protocol}"
    }
    if everybody:
        properties |= {
            "inter.broker.listener.name": "INTERNAL",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            # ANONYMOUS is the broker itself, on the two listeners that no client knows.
            "super.users": f"User:{_ADMIN};User:ANONYMOUS",
            "listener.name.clients.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": _server_login(everybody),
        }
    if certificates:
        properties |= certificates.server_settings()
    properties |= settings or {}
    broker = kraft_broker(
        folder,
        properties,
        {1: free_port()},
        version=version,
        features=features,
        speaks_apart=bool(everybody),
        relayed=relayed,
    )
    broker.users, broker.certificates = everybody, certificates
    try:
        broker.start()
        yield broker
    finally:
        broker.server.stop()


def kraft_broker(
    folder: Path,
    settings: Mapping[str, str],
    controllers: Mapping[int, int],
    *,
    node: int = 1,
    version: str = "4.1.1",
    features: Sequence[str] = (),
    heap_mb: int = 384,
    speaks_apart: bool = False,
    relayed: tuple[int, int] | None = None,
) -> Broker:
    """Return a broker that is also a controller, not started yet.

    Args:
        settings: lines of server.properties over those of the kit.
        controllers: the ports of all controllers of the cluster, by node id.
        node: which of them this one is.
        speaks_apart: it has a listener `INTERNAL` that no client knows.
        relayed: it has a listener `RELAYED`, which clients reach by the first port, and which listens on the second.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    settings = {**_EARLY.get(version, {}), **settings}
    listeners = f"CLIENTS://127.0.0.1:{port}"
    if speaks_apart:
        listeners += f",INTERNAL://127.0.0.1:{free_port()}"
    advertised = listeners
    if relayed is not None:
        advertised, listeners = (f"{listeners},RELAYED://127.0.0.1:{relayed_port}" for relayed_port in relayed)
    properties = {
        **_COMMON,
        **_KRAFT,
        "process.roles": "broker,controller",
        "node.id": str(node),
        "controller.quorum.voters": ",".join(f"{node_id}@127.0.0.1:{where}" for node_id, where in controllers.items()),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENTS",
        "advertised.listeners": advertised,
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controllers[node]}",
        "log.dirs": str(folder / "data"),
        **settings,
    }
    written = _write_properties(folder / "server.properties", properties)
    # The group coordinator's own words are evidence for the monitor, too.
    logging = {
        "defaultLogLevel": "warn",
        "log.kafka.coordinator.group": "info",
        "log.org.apache.kafka.coordinator.group": "info",
        "showDateTime": "true",
        "dateTimeFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    }
    options = [f"-Dorg.slf4j.simpleLogger.{key}={value}" for key, value in logging.items()]
    formatted = _formatted(version, tuple(features), properties.get(_UNSTABLE, "false"))
    shutil.copytree(formatted.name, folder / "data")
    _take_identity(folder / "data" / "meta.properties", node)
    jars = class_path(f"kafka-{version}", "Guarded")
    main = ["kafka.Kafka", str(written)]
    server = JavaServer(f"kafka-{version}", folder, jars, ["-Xms128m", f"-Xmx{heap_mb}m", *options], main)
    return Broker(version, f"127.0.0.1:{port}", version, server)


def _take_identity(written: Path, node: int) -> None:
    """Have storage that was formatted for node 1 be that of another one."""
    own = {"node.id": str(node), "directory.id": base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")}
    lines = written.read_text().splitlines()
    pairs = dict(line.split("=", 1) for line in lines if not line.startswith("#")) | (own if node != 1 else {})
    _write_properties(written, pairs)


@contextlib.contextmanager
def kafka_10(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """Run a Kafka 1.0.2 broker and the ZooKeeper that it needs.

    Args:
        folder: an empty folder for their data and logs.
        settings: lines of server.properties over those of the kit.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with zookeeper(folder / "zookeeper") as keeper:
        port = free_port()
        properties = {
            **_COMMON,
            "broker.id": "0",
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "zookeeper.connect": f"{keeper}/kafka",
            "log.dirs": str(folder / "data"),
            **(settings or {}),
        }
        written = _write_properties(folder / "server.properties", properties)
        logging = _write_properties(
            folder / "log4j.properties",
            {
                "log4j.rootLogger": "WARN,console",
                "log4j.logger.kafka.coordinator.group": "INFO",
                "log4j.appender.console": "org.apache.log4j.ConsoleAppender",
                "log4j.appender.console.layout": "org.apache.log4j.PatternLayout",
                "log4j.appender.console.layout.ConversionPattern": "%d %p %m%n",
            },
        )
        # Its layout has times without a zone.
        options = ["-Xms64m", "-Xmx256m", "-Duser.timezone=UTC", f"-Dlog4j.configuration=file:{logging}"]
        jars = class_path("kafka-1.0.2", "Guarded")
        server = JavaServer("kafka-1.0.2", folder, jars, options, ["kafka.Kafka", str(written)])
        broker = Broker(version="1.0.2", bootstrap=f"127.0.0.1:{port}", clients="1.0.2", server=server)
        try:
            broker.start()
            yield broker
        finally:
            # Before its ZooKeeper: without it the broker hangs.
            server.stop()


@contextlib.contextmanager
def zookeeper(folder: Path) -> Iterator[str]:
    """Run a ZooKeeper 3.9.4 and yield where it listens, `127.0.0.1:PORT`."""
    with running_zookeeper(folder) as keeper:
        yield keeper.address


def _write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return path


def _protocol(users: Mapping[str, str], certificates: Certificates | None) -> str:
    encrypted = "SSL" if certificates else "PLAINTEXT"
    return f"SASL_{encrypted}" if users else encrypted


@cache
def _formatted(version: str, features: tuple[str, ...], unstable: str) -> tempfile.TemporaryDirectory[str]:
    """Return the storage of a new broker, made once: to make it takes as much computing as to start the broker."""
    folder = tempfile.TemporaryDirectory(prefix="kafka")
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@127.0.0.1:1",
        "controller.listener.names": "CONTROLLER",
        "listeners": "CLIENTS://127.0.0.1:2,CONTROLLER://127.0.0.1:1",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENTS",
        "log.dirs": folder.name,
        _UNSTABLE: unstable,
    }
    with tempfile.TemporaryDirectory() as place:
        written = _write_properties(Path(place) / "server.properties", properties)
        options = ["-Xmx96m", *QUICK_START]
        options += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", class_path(f"kafka-{version}", "Guarded")]
        # Any cluster id in the right form will do: 22 characters of base64.
        tool = ["kafka.tools.StorageTool", "format", "-t", "cmViYWxhbmNlLW1vbml0bw", "-c", written]
        wanted = [part for feature in features for part in ("--feature", feature)]
        done = subprocess.run(
            [java(), *options, *tool, *wanted],
            capture_output=True,
            text=True,
            timeout=_FORMAT_TIMEOUT_S,
            check=False,
        )
    if done.returncode != 0:
        raise RuntimeError(f"formatting the broker's storage failed:\n{done.stdout}{done.stderr}")
    return folder


def _login(user: str, password: str) -> str:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return f'{module} required username="{user}" password="{password}"'


def _server_login(users: Mapping[str, str]) -> str:
    passwords = " ".join(f'user_{user}="{password}"' for user, password in users.items())
    return f"org.apache.kafka.common.security.plain.PlainLoginModule required {passwords};"
