"""Records what real RocketMQ servers answer, byte for byte, for the tests of the client.

    .venv/bin/python -m tests.kit.rocketmq_recording [--wire | --proxy] [5.5.0] [4.9.7]

Writes ``tests/streaming/rocketmq/golden/VERSION/``: one file for each answer, the whole frame as it came;
``members.json``, what the members said about themselves at that time; ``wire.tsv``, what RocketMQ's own classes make of
chosen values (java/RocketMqWire.java). It asks over plain sockets, so that nothing of the client under test but the
encoding of requests has a part in it.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from streaming.collectors.rocketmq.remoting.codes import RequestCode
from streaming.collectors.rocketmq.remoting.frames import Frame, HeaderForm, encode
from streaming.setup.java import find_java
from tests.kit.jars import class_path
from tests.kit.rocketmq import RocketMq, rocketmq_49, rocketmq_55
from tests.kit.rocketmq_members import RocketMqMember, queues_of, start_member, wait_until, wait_until_assigned
from tests.kit.rocketmq_proxy import running_proxy, start_grpc_member

GOLDEN: Final = Path(__file__).resolve().parents[1] / "streaming" / "collectors" / "rocketmq" / "golden"
_CLUSTERS: Final = {"5.5.0": rocketmq_55, "4.9.7": rocketmq_49}
# From 4.9.4 (401) on, servers write routes as standard JSON.
_OLD_VERSION: Final = 395
# What JSON must escape, and what UTF-8 writes in more than one byte.
_ODD_NAME: Final = 'größe "5"\\工'
_ANSWER_S: Final = 30
# What the monitor does not ask: answers of more shapes for the reader of frames.
_CONSUMER_OFFSET: Final = 14
_MAX_OFFSET: Final = 30
_CONSUMER_LIST: Final = 38
_TOPIC_LIST: Final = 206


def exchange(address: str, request: Frame) -> bytes:
    """Send a request over a connection of its own and return the whole frame of its answer."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=_ANSWER_S) as connection:
        connection.sendall(encode(request))
        length = _read(connection, 4)
        return length + _read(connection, int.from_bytes(length))


def _read(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = connection.recv(count - len(data))
        assert piece, "the server closed the connection"
        data += piece
    return bytes(data)


@contextmanager
def _members(cluster: RocketMq) -> Iterator[dict[str, RocketMqMember]]:
    """Run two members that share, one that reads in order, one that reads all, and on 5.x one that pops."""
    cluster.create_topic("orders", 5)
    cluster.create_topic("bills", 3)
    cluster.send("orders", 3)
    with ExitStack() as running:

        def start(group: str, topics: list[str], **more: Any) -> RocketMqMember:
            return running.enter_context(start_member(cluster, group, topics, **more))

        members = {
            "plain-1": start("plain", ["orders", "bills"], instance="p1"),
            "plain-2": start("plain", ["orders", "bills"], instance="p2"),
            "ordered": start("ordered", ["orders"], instance=_ODD_NAME, ordered=True, strategy="CONSISTENT_HASH"),
            "everyone": start("everyone", ["orders"], broadcasting=True),
        }
        wait_until_assigned([members["plain-1"], members["plain-2"]], queues_of("orders", 5) + queues_of("bills", 3))
        for name in ("ordered", "everyone"):
            wait_until_assigned([members[name]], queues_of("orders", 5))
        if cluster.version.startswith("5."):
            cluster.create_topic("%RETRY%popping", 1)
            cluster.set_message_request_mode("orders", "popping", "POP", -1)
            members["popping"] = start("popping", ["orders"], instance="pop", client_rebalance=False)
            wait_until([members["popping"]], lambda: ("orders", "broker-a", -1) in members["popping"].held())
        plain = [members["plain-1"], members["plain-2"]]
        wait_until(plain, lambda: any(member.records_read for member in plain))
        yield members


def _questions(cluster: RocketMq, members: Mapping[str, RocketMqMember]) -> dict[str, tuple[str, Frame]]:
    """Name every request, and the server that gets it."""
    server, broker = cluster.address, cluster.broker.address
    code = RequestCode

    def request(address: str, number: int, body: Any = None, **fields: str) -> tuple[str, Frame]:
        return address, Frame(number, 7, fields=fields, body=b"" if body is None else json.dumps(body).encode())

    def old(question: tuple[str, Frame]) -> tuple[str, Frame]:
        address, frame = question
        return address, Frame(frame.code, 7, fields=frame.fields, version=_OLD_VERSION)

    def binary(question: tuple[str, Frame]) -> tuple[str, Frame]:
        address, frame = question
        return address, Frame(frame.code, 7, fields=frame.fields, form=HeaderForm.ROCKETMQ)

    def assignment(group: str, member: str) -> tuple[str, Frame]:
        return request(
            broker,
            code.QUERY_ASSIGNMENT,
            {
                "topic": "orders",
                "consumerGroup": group,
                "clientId": members[member].client_id,
                "strategyName": "AVG",
                "messageModel": "CLUSTERING",
            },
        )

    requests = {
        "cluster": request(server, code.GET_BROKER_CLUSTER_INFO),
        "cluster-binary": binary(request(server, code.GET_BROKER_CLUSTER_INFO)),
        "topics": request(server, _TOPIC_LIST),
        "route": request(server, code.GET_ROUTEINFO_BY_TOPIC, topic="orders", acceptStandardJsonOnly="true"),
        "route-old": old(request(server, code.GET_ROUTEINFO_BY_TOPIC, topic="orders")),
        "route-nobody": request(server, code.GET_ROUTEINFO_BY_TOPIC, topic="nobody"),
        "runtime": request(broker, code.GET_BROKER_RUNTIME_INFO),
        "topic-configs": request(broker, code.GET_ALL_TOPIC_CONFIG),
        "groups": request(broker, code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG),
        "connections-plain": request(broker, code.GET_CONSUMER_CONNECTION_LIST, consumerGroup="plain"),
        "connections-ordered": request(broker, code.GET_CONSUMER_CONNECTION_LIST, consumerGroup="ordered"),
        "connections-everyone": request(broker, code.GET_CONSUMER_CONNECTION_LIST, consumerGroup="everyone"),
        "connections-nobody": request(broker, code.GET_CONSUMER_CONNECTION_LIST, consumerGroup="nobody"),
        "ids-plain": request(broker, _CONSUMER_LIST, consumerGroup="plain"),
        "ids-nobody": request(broker, _CONSUMER_LIST, consumerGroup="nobody"),
        "stats-plain": request(broker, code.GET_CONSUME_STATS, consumerGroup="plain"),
        "stats-nobody": request(broker, code.GET_CONSUME_STATS, consumerGroup="nobody"),
        "offset": request(broker, _CONSUMER_OFFSET, consumerGroup="plain", topic="orders", queueId="0"),
        "offset-nobody": request(broker, _CONSUMER_OFFSET, consumerGroup="nobody", topic="orders", queueId="0"),
        "max-offset": request(broker, _MAX_OFFSET, topic="orders", queueId="0"),
        "modes": request(broker, code.GET_ALL_MESSAGE_REQUEST_MODE),
        "assignment": assignment("plain", "plain-1"),
        "unknown-code": request(broker, 29_999),
        "running-nobody": request(
            broker, code.GET_CONSUMER_RUNNING_INFO, consumerGroup="plain", clientId="nobody", jstackEnable="false"
        ),
    }
    for name, member in members.items():
        group = name.removesuffix("-1").removesuffix("-2")
        client_id = member.wait_until_started()
        fields = {"consumerGroup": group, "clientId": client_id, "jstackEnable": "false"}
        requests[f"running-{name}"] = request(broker, code.GET_CONSUMER_RUNNING_INFO, **fields)
    if "popping" in members:
        requests["assignment-popping"] = assignment("popping", "popping")
    return requests


def record(version: str) -> None:
    """Record all answers of one version."""
    folder = GOLDEN / version
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as data,
        _CLUSTERS[version](Path(data)) as cluster,
        _members(cluster) as members,
    ):
        for name, (address, request) in _questions(cluster, members).items():
            (folder / f"{name}.frame").write_bytes(exchange(address, request))
        reported = {
            name: {"client_id": member.client_id, "held": member.held(retries=True)} for name, member in members.items()
        }
        reported["servers"] = {"broker": cluster.broker.address}
        (folder / "members.json").write_text(json.dumps(reported, indent=1, ensure_ascii=False) + "\n")
        # A client that hangs: its broker says so after 10 s.
        members["plain-2"].freeze()
        silent = {"consumerGroup": "plain", "clientId": members["plain-2"].client_id or "", "jstackEnable": "false"}
        request = Frame(RequestCode.GET_CONSUMER_RUNNING_INFO, 7, fields=silent)
        (folder / "running-silent.frame").write_bytes(exchange(cluster.broker.address, request))


def record_proxy(version: str) -> None:
    """Record what a proxy answers: for the group of a gRPC client, for that of another client, and for a member."""
    with (
        tempfile.TemporaryDirectory() as data,
        _CLUSTERS[version](Path(data)) as cluster,
        running_proxy(cluster, "proxy") as proxy,
    ):
        cluster.create_topic("orders", 2)
        for group in ("modern", "classic"):
            cluster.create_group(group)
        with (
            start_grpc_member(proxy, "modern", "orders"),
            start_member(cluster, "classic", ["orders"], instance="c1", name_server=proxy.address) as classic,
        ):
            fields = {"consumerGroup": "classic", "clientId": classic.wait_until_started(), "jstackEnable": "false"}
            requests = {
                "proxy-modern": Frame(RequestCode.GET_CONSUMER_CONNECTION_LIST, 7, fields={"consumerGroup": "modern"}),
                "proxy-classic": Frame(
                    RequestCode.GET_CONSUMER_CONNECTION_LIST, 7, fields={"consumerGroup": "classic"}
                ),
                "proxy-nobody": Frame(RequestCode.GET_CONSUMER_CONNECTION_LIST, 7, fields={"consumerGroup": "nobody"}),
                "proxy-running": Frame(RequestCode.GET_CONSUMER_RUNNING_INFO, 7, fields=fields),
            }
            for name, request in requests.items():
                (GOLDEN / version / f"{name}.frame").write_bytes(exchange(proxy.address, request))


def record_wire(version: str) -> None:
    """Record what the classes of one version write without any server."""
    classes = class_path(f"rocketmq-server-{version}", "RocketMqWire")
    command = [str(find_java().java), "-Dfile.encoding=UTF-8", "-cp", classes, "RocketMqWire"]
    written = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_ANSWER_S).stdout
    # Between them lie lines of RocketMQ's logging about itself.
    lines = [line for line in written.splitlines(keepends=True) if re.match(r"[a-z-]+\t", line)]
    (GOLDEN / version / "wire.tsv").write_text("".join(lines))


def main() -> int:
    """Record the versions that are named, else all; with an option, only without servers, or of a proxy."""
    chosen = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    for version in chosen or _CLUSTERS:
        if not {"--wire", "--proxy"} & set(sys.argv):
            record(version)
        if "--wire" not in sys.argv and version.startswith("5."):
            record_proxy(version)
        if "--proxy" not in sys.argv:
            record_wire(version)
    return 0


if __name__ == "__main__":
    sys.exit(main())
