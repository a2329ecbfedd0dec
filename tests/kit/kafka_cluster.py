"""Three Kafka brokers of which any one may go away: each is a controller too, and groups have three copies.

with three_brokers(tmp_path) as cluster:
    create_topic(cluster, "orders", 4, replicas=3)
    cluster.nodes[0].kill()
    cluster.nodes[0].start()
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.kit.brokers import Broker, kraft_broker
from tests.kit.processes import free_port

OFFSETS_PARTITIONS = 6
_NODES = (1, 2, 3)
_HEAP_MB = 256
_SAFE = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "default.replication.factor": "3",
    # What one broker alone has is no record yet: a killed one takes nothing with it.
    "min.insync.replicas": "2",
    "transaction.state.log.replication.factor": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    # A broker that is killed is missed soon.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1500",
}


@dataclass
class KafkaCluster(Broker):
    """Several brokers, reached through any of them.

    Attributes:
        nodes: each broker; `start`, `stop` and `kill` are for one of them.
    """

    nodes: tuple[Broker, ...] = ()


@contextlib.contextmanager
def three_brokers(
    folder: Path, settings: Mapping[str, str] | None = None, *, racks: Sequence[str] = ()
) -> Iterator[KafkaCluster]:
    """Run three brokers of Kafka 4.1.1.

    Args:
        folder: an empty folder for their data and logs.
        settings: lines of server.properties over those of the kit.
        racks: where each of them stands.
    """
    controllers = {node: free_port() for node in _NODES}
    properties = {**_SAFE, **(settings or {})}
    placed = {node: {"broker.rack": rack} for node, rack in zip(_NODES, racks, strict=False)}
    nodes = tuple(
        kraft_broker(
            folder / f"broker-{node}", properties | placed.get(node, {}), controllers, node=node, heap_mb=_HEAP_MB
        )
        for node in _NODES
    )
    first = nodes[0]
    bootstrap = ",".join(node.bootstrap for node in nodes)
    try:
        # Two are a quorum: one that waits for it answers nothing.
        with ThreadPoolExecutor(len(nodes)) as pool:
            list(pool.map(Broker.start, nodes))
        yield KafkaCluster(first.version, bootstrap, first.clients, first.server, nodes=nodes)
    finally:
        for node in nodes:
            node.kill()
