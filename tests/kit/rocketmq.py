"""Real RocketMQ clusters on loopback ports and in temporary folders: 5.5.0 and 4.9.7.

with rocketmq_55(tmp_path) as cluster:
    ...                                 # cluster.address
    cluster.create_topic("orders", 5)
    cluster.broker.kill()               # an outage
    cluster.broker.start()              # the same port, the same data
    second = cluster.add_broker()
"""

import contextlib
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.kit import rocketmq_admin as admin
from tests.kit.jars import class_path, jar_of
from tests.kit.processes import JavaServer, free_port, wait_until

CLUSTER = "kit"
_START_TIMEOUT_S = 180
# A broker of 5 takes ten seconds to end in order.
_STOP_TIMEOUT_S = 60

# Small files: by default a broker begins with a gigabyte.
_SMALL = {
    "mappedFileSizeCommitLog": "33554432",
    "mappedFileSizeConsumeQueue": "600000",
    "maxIndexNum": "20000",
    "maxHashSlotNum": "5000",
    # Otherwise a machine whose disk is rather full takes no messages.
    "diskMaxUsedSpaceRatio": "98",
    # The shortest that brokers take: a name server that has lost all gets it again after it.
    "registerNameServerPeriod": "10000",
}
_ONLY_55 = {
    "bindAddress": "127.0.0.1",
    "mappedFileSizeTimerLog": "1048576",
    # Of messages for later, of which there are none: writing its wheel each second is what an idle broker does most.
    "timerFlushIntervalMs": "60000",
    # Its thread does not wait before the first time: by default it computes through its first ten seconds.
    "transactionMetricFlushInterval": "500",
}
# 5.5 looks for rmq.logback.xml on the class path, 4.9 for files of these names in its home; its own
# configurations write dozens of files.
_LOGGING = """\
<configuration>
  <appender name="CONSOLE" class="{package}ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %p %t %c{{0}} - %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="CONSOLE"/></root>
</configuration>
"""


class RocketMqServer:
    """A name server or a broker; `stop`, `kill` and `start` again keep its port and its data.

    All listen on the loopback address alone; see java/RocketMqLoopback.java.

    Attributes:
        name: of the broker, or `name-server`.
        address: `127.0.0.1:PORT`.
    """

    def __init__(
        self, name: str, folder: Path, version: str, main: str, settings: Mapping[str, str], tls: bool
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.address = f"127.0.0.1:{settings['listenPort']}"
        written = folder / "server.properties"
        written.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        jars = f"rocketmq-server-{version}"
        _log_quietly(folder / "conf")
        self._is_broker = main.endswith("BrokerStartup")
        options = [
            *("-Xms48m", "-Xmx256m" if self._is_broker else "-Xmx96m"),
            # For the javassist of RocketMqLoopback, which defines classes as older Javas allowed it, and for a broker
            # of 4.9 that lets go of a mapped file: after a kill it could not start again.
            *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "java.nio", "jdk.internal.ref")),
            *(f"-Drocketmq.home.dir={folder}", f"-Duser.home={folder}"),
            # Making the key of its test certificate takes seconds on a busy machine.
            f"-Dtls.server.mode={'permissive' if tls else 'disabled'}",
        ]
        classes = f"{quiet_logging()}:{class_path(jars, 'Guarded')}:{class_path(jars, 'RocketMqLoopback')}"
        self.process = JavaServer(name, folder, classes, options, ["RocketMqLoopback", main, "-c", str(written)])

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self.process.is_running

    def start(self) -> None:
        """Start it (again) and wait until it answers. A broker may not be known to the name server yet."""
        self.process.start(self._answers, _START_TIMEOUT_S)

    def stop(self) -> None:
        """Shut it down in order: a broker takes leave of the name server."""
        self.process.stop(_STOP_TIMEOUT_S)

    def kill(self) -> None:
        """End it without any order (SIGKILL)."""
        self.process.kill()

    def restart(self) -> None:
        """Shut it down in order and start it again."""
        self.stop()
        self.start()

    def freeze(self) -> None:
        """Stop its clock (SIGSTOP): connections stay open and nothing answers."""
        self.process.freeze()

    def thaw(self) -> None:
        """Let it go on."""
        self.process.thaw()

    def _answers(self) -> bool:
        return admin.broker_answers(self.address) if self._is_broker else admin.name_server_answers(self.address)


@dataclass
class RocketMq:
    """One running cluster.

    Attributes:
        version: of the servers, `5.5.0` or `4.9.7`.
        clients: the version of the clients that belong to them: `5.5.0` or `4.9.8`.
        folder: of all data and logs.
        tls: whether the servers take TLS connections beside plain ones.
        brokers: by name, in the order in which they were added.
        cluster: the cluster's own name.
    """

    version: str
    clients: str
    folder: Path
    name_server: RocketMqServer
    broker_settings: Mapping[str, str]
    tls: bool = False
    brokers: dict[str, RocketMqServer] = field(default_factory=dict)
    cluster: str = CLUSTER

    @property
    def address(self) -> str:
        """Where the name server listens."""
        return self.name_server.address

    @property
    def broker(self) -> RocketMqServer:
        """The first broker."""
        return next(iter(self.brokers.values()))

    def add_broker(self, name: str | None = None, settings: Mapping[str, str] | None = None) -> RocketMqServer:
        """Start one more broker and wait until the name server knows it.

        It has no topics of the others yet; `create_topic` puts them there.

        Args:
            name: else `broker-a`, `broker-b`, …
            settings: lines of broker.conf over those of the cluster.
        """
        chosen = name or f"broker-{chr(ord('a') + len(self.brokers))}"
        folder = self.folder / chosen
        port = _broker_port()
        properties = {
            "brokerClusterName": self.cluster,
            "brokerName": chosen,
            "brokerId": "0",
            "brokerIP1": "127.0.0.1",
            "brokerIP2": "127.0.0.1",
            "listenPort": str(port),
            "haListenPort": str(port + 1),
            "namesrvAddr": self.address,
            "storePathRootDir": str(folder / "store"),
            "storePathCommitLog": str(folder / "store" / "commitlog"),
            **_SMALL,
            **(_ONLY_55 if self.version.startswith("5.") else {}),
            **self.broker_settings,
            **(settings or {}),
        }
        main = "org.apache.rocketmq.broker.BrokerStartup"
        added = RocketMqServer(chosen, folder, self.version, main, properties, self.tls)
        self.brokers[chosen] = added
        added.start()
        # The name server has a route to the topic with the broker's own name.
        wait_until(lambda: bool(admin.route(self.address, chosen)), f"{chosen} is known to the name server")
        return added

    def create_topic(
        self, name: str, queues: int = 4, brokers: Sequence[str] | None = None, *, ordered: bool = False
    ) -> None:
        """Make a topic, and wait until the name server has its route.

        Args:
            name: of the topic.
            queues: readable and writable ones, on each broker.
            brokers: their names; else all.
            ordered: the topic's own flag; consumers do not look at it.
        """
        self.set_queues(name, queues, brokers=brokers, ordered=ordered)

    def set_queues(
        self,
        topic: str,
        readable: int,
        writable: int | None = None,
        brokers: Sequence[str] | None = None,
        *,
        ordered: bool = False,
    ) -> None:
        """Give a topic more or fewer queues, and wait until the name server has the new route.

        Args:
            topic: its name.
            readable: readQueueNums on each broker: what consumers share.
            writable: writeQueueNums; else the same.
            brokers: their names; else all.
            ordered: the topic's own flag.
        """
        counts = (readable, readable if writable is None else writable)
        names = self.brokers if brokers is None else brokers
        for name in names:
            admin.put_topic(self.brokers[name].address, topic, *counts, ordered)
        wait_until(
            lambda: all(self.route(topic).get(name) == counts for name in names), f"the route of {topic} is {counts}"
        )

    def delete_topic(self, topic: str) -> None:
        """Delete a topic everywhere."""
        for broker in self.brokers.values():
            admin.remove_topic_from_broker(broker.address, topic)
        admin.remove_topic_from_name_server(self.address, self.cluster, topic)

    def create_group(self, group: str, **settings: object) -> None:
        """Make a group on all brokers; members would make it themselves.

        Args:
            group: its name.
            settings: of SubscriptionGroupConfig, such as `notifyConsumerIdsChangedEnable`.
        """
        for broker in self.brokers.values():
            admin.put_group(broker.address, group, settings)

    def delete_group(self, group: str) -> None:
        """Delete a group and its offsets on all brokers."""
        for broker in self.brokers.values():
            admin.remove_group(broker.address, group)

    def set_message_request_mode(self, topic: str, group: str, mode: str, share: int = 0) -> None:
        """Let a group read a topic by `PULL` or `POP`, with so many shared queues (5.x only)."""
        for broker in self.brokers.values():
            admin.put_request_mode(broker.address, topic, group, mode, share)

    def send(self, topic: str, count: int = 1, queues: Sequence[int] | None = None) -> None:
        """Write so many messages to each of these queues (else: all that can be written) of each running broker."""
        for name, (_, writable) in self.route(topic).items():
            for queue_id in range(writable) if queues is None else queues:
                for number in range(count):
                    admin.put_message(self.brokers[name].address, topic, queue_id, f"message {number}".encode())

    def route(self, topic: str) -> admin.QueueCounts:
        """Return how many readable and writable queues each broker has, by the name server."""
        return admin.route(self.address, topic)

    def member_ids(self, group: str, broker: str | None = None) -> list[str]:
        """Return the client ids that a broker (else the first) lists, sorted."""
        return admin.member_ids((self.brokers[broker] if broker else self.broker).address, group)

    def wait_until(self, claim: Callable[[], bool], what: str, timeout_s: float = 120) -> None:
        """Return as soon as a claim about the servers holds."""
        wait_until(claim, what, timeout_s)


def quiet_logging() -> Path:
    """Return a jar that makes servers and clients of 5.5 write warnings to their output and no files."""
    return jar_of("rocketmq-logging", {"rmq.logback.xml": _LOGGING.format(package="org.apache.rocketmq.logging.")})


def _log_quietly(folder: Path) -> None:
    """Write what makes servers of 4.9 write warnings to their output and no files."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in ("logback_namesrv.xml", "logback_broker.xml"):
        (folder / file).write_text(_LOGGING.format(package=""))


@contextlib.contextmanager
def rocketmq_55(folder: Path, settings: Mapping[str, str] | None = None, *, tls: bool = False) -> Iterator[RocketMq]:
    """Run a name server and a broker of RocketMQ 5.5.0.

    Args:
        folder: an empty folder for their data and logs.
        settings: lines of broker.conf over those of the kit, for every broker. With `channelExpiredTimeout`
            (ms, default 120000) a hanging member is given up sooner.
        tls: take TLS connections too, with a certificate that each server makes and signs itself.
    """
    with _cluster("5.5.0", "5.5.0", folder, settings or {}, tls) as cluster:
        yield cluster


@contextlib.contextmanager
def rocketmq_49(folder: Path, settings: Mapping[str, str] | None = None, *, tls: bool = False) -> Iterator[RocketMq]:
    """Run a name server and a broker of RocketMQ 4.9.7, the last of 4.9 whose servers were published.

    Args:
        folder: an empty folder for their data and logs.
        settings: lines of broker.conf over those of the kit, for every broker.
        tls: take TLS connections too, with a certificate that each server makes and signs itself.
    """
    with _cluster("4.9.7", "4.9.8", folder, settings or {}, tls) as cluster:
        yield cluster


@contextlib.contextmanager
def _cluster(version: str, clients: str, folder: Path, settings: Mapping[str, str], tls: bool) -> Iterator[RocketMq]:
    properties = {"listenPort": str(free_port())}
    if version.startswith("5."):
        properties |= {"bindAddress": "127.0.0.1"}
    main = "org.apache.rocketmq.namesrv.NamesrvStartup"
    name_server = RocketMqServer("name-server", folder / "name-server", version, main, properties, tls)
    cluster = RocketMq(version, clients, folder, name_server, settings, tls)
    try:
        name_server.start()
        cluster.add_broker()
        yield cluster
    finally:
        # Nobody needs what they would still write, and some take ten seconds to end in order.
        for server in (*cluster.brokers.values(), name_server):
            server.kill()


def _broker_port() -> int:
    """Return a port whose neighbours are free too: a broker also takes `port - 2`, and `port + 1` for slaves."""
    while True:
        port = free_port()
        with contextlib.ExitStack() as probes, contextlib.suppress(OSError):
            for neighbour in (port - 2, port + 1):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", neighbour))
            return port
