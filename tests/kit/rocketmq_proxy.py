"""Real proxies of RocketMQ 5.5.0 beside a cluster of the kit, and real clients of gRPC behind them.

with running_proxy(cluster, "p1") as proxy, start_grpc_member(proxy, "billing", "orders") as member:
    ...                             # proxy.address: what answers requests of the remoting protocol
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from streaming.collectors.rocketmq.remoting.codes import RequestCode
from tests.kit import rocketmq_admin as admin
from tests.kit.jars import class_path, kit_jars
from tests.kit.java_members import JavaMember, java_command
from tests.kit.processes import JavaServer, free_port, listens
from tests.kit.rocketmq import RocketMq, quiet_logging

_SERVER: Final = "rocketmq-server-5.5.0"
_START_TIMEOUT_S: Final = 180


class RocketMqProxy:
    """A proxy in cluster mode; `kill` and `start` again keep its ports.

    Attributes:
        address: `127.0.0.1:PORT` of the remoting protocol. endpoint: The same of gRPC.
    """

    def __init__(self, cluster: RocketMq, name: str, settings: Mapping[str, object]) -> None:
        folder = cluster.folder / name
        (folder / "conf").mkdir(parents=True)
        ports = {"remotingListenPort": free_port(), "grpcServerPort": free_port()}
        self.address, self.endpoint = (f"127.0.0.1:{port}" for port in ports.values())
        self._ports = ports.values()
        written = folder / "proxy.json"
        place = {"rocketMQClusterName": cluster.cluster, "namesrvAddr": cluster.address, "localServeAddr": "127.0.0.1"}
        written.write_text(json.dumps({**place, "proxyName": name, **ports, **settings}))
        options = [
            *("-Xms48m", "-Xmx200m"),
            # As of the other servers.
            *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "java.nio", "jdk.internal.ref")),
            *(f"-Drocketmq.home.dir={folder}", f"-Duser.home={folder}"),
            "-Dtls.server.mode=disabled",
        ]
        own_classes = (class_path(_SERVER, program) for program in ("Guarded", "RocketMqLoopback"))
        jars = f"{kit_jars('rocketmq-proxy-5.5.0')[0].parent}/*"
        classes = ":".join((str(quiet_logging()), *own_classes, jars))
        main = ["RocketMqLoopback", "org.apache.rocketmq.proxy.ProxyStartup", "-pm", "cluster", "-pc", str(written)]
        self.process = JavaServer(name, folder, classes, options, [*main, "-n", cluster.address])

    def start(self) -> None:
        """Start it (again) and wait until clients can connect."""
        self.process.start(lambda: all(listens(port) for port in self._ports), _START_TIMEOUT_S)

    def kill(self) -> None:
        """End it without any order (SIGKILL)."""
        self.process.kill()

    def member_ids(self, group: str) -> list[str]:
        """Return the client ids that it lists, sorted; those of an old and a new connection of one client twice."""
        answer = admin.request(self.address, RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": group})
        listed = json.loads(answer.body)["connectionSet"] if answer.body else []
        return sorted(connection["clientId"] for connection in listed)


class GrpcReport(msgspec.Struct, frozen=True):
    """One line of a client about itself: `started`, `read` (a message), `stopped`, `failed`."""

    event: str
    at_ms: int
    records: int = 0
    error: str | None = None


class GrpcMember(JavaMember[GrpcReport]):
    """One running push consumer. It makes its client id itself: `HOST@PROCESS@NUMBER@TIME`."""

    @property
    def records_read(self) -> int:
        """How many messages it has consumed."""
        return sum(report.records for report in self.reports)


def start_grpc_member(proxy: RocketMqProxy, group: str, topic: str) -> GrpcMember:
    """Start a consumer behind a proxy, and wait until it has connected."""
    classes = class_path("rocketmq-client-java-5.0.8", "GrpcMember")
    arguments = (f"endpoint={proxy.endpoint}", f"group={group}", f"topic={topic}")
    home = f"-Duser.home={proxy.process.folder}"  # where its logs go
    member = GrpcMember([*java_command(classes, home), "GrpcMember", *arguments], GrpcReport, "shutdown")
    member.wait_until(lambda: any(report.event == "started" for report in member.reports))
    return member


@contextlib.contextmanager
def running_proxy(
    cluster: RocketMq, name: str, settings: Mapping[str, object] | None = None
) -> Iterator[RocketMqProxy]:
    """Run a proxy until the block is left.

    Args:
        settings: of ProxyConfig. With `channelExpiredTimeout` (ms, default 120000) a client that says nothing is given
            up sooner.
    """
    proxy = RocketMqProxy(cluster, name, settings or {})
    try:
        proxy.start()
        yield proxy
    finally:
        proxy.kill()
