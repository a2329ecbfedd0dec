"""The two clusters of a run of chaos: what of them may go away, and the members that they list."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from tests.kit import metaq_members, rocketmq_admin, rocketmq_members
from tests.kit.metaq import MetaqBroker, MetaqCluster, metaq_cluster
from tests.kit.metaq_members import MetaqMember
from tests.kit.rocketmq import RocketMq, rocketmq_55
from tests.kit.rocketmq_members import RocketMqMember

GROUP = "chaos"
_TOPIC = "orders"
_QUEUES = 4
_SHARED_S = 240.0
_POLL_S = 5.0
Queue = tuple[str, str, int]


class Member(Protocol):
    """The interface that the members of both systems share."""

    @property
    def has_ended(self) -> bool: ...

    @property
    def reports(self) -> Sequence[metaq_members.Report | rocketmq_members.Report]: ...

    def stop(self, timeout_s: float) -> None: ...

    def kill(self) -> None: ...

    def wait_until(self, claim: Callable[[], bool], timeout_s: float) -> None: ...


class ChaosCluster(Protocol):
    """One of the two.

    Attributes:
        things: What may go away, by name.
        keeper: That of the things which members must reach in order to stop in order, if there is one.
        arguments: How `collect` finds it.
        forgiven_ms: A broker that is away for less moves no queue.
        takes_moves_ms: How long after a broker came back queues may still be reported as added or removed.
    """

    things: Sequence[str]
    keeper: str | None
    arguments: Sequence[str]
    forgiven_ms: int
    takes_moves_ms: int

    def take_away(self, thing: str, what: str) -> None: ...

    def bring_back(self, thing: str) -> None: ...

    def start_member(self, name: str) -> Member: ...

    def member_id(self, name: str) -> str: ...

    def members(self) -> set[str] | None:
        """Return the members that the cluster has; None: no broker can report them."""

    def wait_until_shared(self, members: Sequence[Member]) -> dict[str, list[Queue]]:
        """Wait until these share all queues; return who holds what, by member id."""

    def close(self) -> None: ...


class RocketMqChaos:
    """Two brokers of RocketMQ 5.5 and a name server."""

    keeper = None
    forgiven_ms = 25_000
    takes_moves_ms = 60_000

    def __init__(self, cluster: RocketMq) -> None:
        self._cluster = cluster
        self._servers = {"name server": cluster.name_server, **cluster.brokers}
        self.things = tuple(self._servers)
        self.arguments = ("--rocketmq", cluster.address)

    def take_away(self, thing: str, what: str) -> None:
        """Kill a server, or stop it."""
        if what == "stops":
            self._servers[thing].stop()
        else:
            self._servers[thing].kill()

    def bring_back(self, thing: str) -> None:
        """Start a server again."""
        self._servers[thing].start()

    def start_member(self, name: str) -> RocketMqMember:
        """Start a consumer."""
        return rocketmq_members.start_member(self._cluster, GROUP, [_TOPIC], instance=name, rebalance_interval_ms=5_000)

    def member_id(self, name: str) -> str:
        """Return how the cluster calls it."""
        return f"127.0.0.1@{name}"

    def members(self) -> set[str] | None:
        """Return the members that any broker lists."""
        found: set[str] | None = None
        for name in self._cluster.brokers:
            with contextlib.suppress(OSError, rocketmq_admin.RocketMqError):
                found = (found or set()) | set(self._cluster.member_ids(GROUP, name))
        return found

    def wait_until_shared(self, members: Sequence[RocketMqMember]) -> dict[str, list[Queue]]:
        """Wait until these share all queues."""
        queues = rocketmq_members.queues_of(_TOPIC, _QUEUES, tuple(self._cluster.brokers))
        rocketmq_members.wait_until_assigned(members, queues, _SHARED_S)
        return {member.wait_until_started(): sorted(member.held()) for member in members}

    def close(self) -> None:
        """Nothing is held."""


class MetaqChaos:
    """Two brokers of MetaQ 1.4 and a ZooKeeper."""

    keeper = "zookeeper"
    forgiven_ms = 0
    takes_moves_ms = 60_000

    def __init__(self, cluster: MetaqCluster, second: MetaqBroker) -> None:
        self._cluster = cluster
        self._brokers = {"broker 0": cluster.broker, "broker 1": second}
        self.things = ("zookeeper", *self._brokers)
        self.arguments = ("--metaq", cluster.zookeeper.address)
        # A broker that starts or stops without its ZooKeeper hangs.
        self._keeper_in_use = threading.Lock()
        self._client = KazooClient(hosts=cluster.zookeeper.address, timeout=10.0)
        self._client.start(timeout=30)

    def take_away(self, thing: str, what: str) -> None:
        """Kill a server, or stop it."""
        server = self._brokers.get(thing)
        if server is None:
            self._keeper_in_use.acquire()
            taken = self._cluster.zookeeper
            (taken.stop if what == "stops" else taken.kill)()
        elif what == "stops":
            with self._keeper_in_use:
                server.stop()
        else:
            server.kill()

    def bring_back(self, thing: str) -> None:
        """Start a server again."""
        server = self._brokers.get(thing)
        if server is None:
            self._cluster.zookeeper.start()
            self._keeper_in_use.release()
        else:
            with self._keeper_in_use:
                server.start()

    def start_member(self, name: str) -> MetaqMember:
        """Start a consumer."""
        # ZooKeeper is back within its session, on a busy machine too.
        return metaq_members.start_metaq_member(
            self._cluster, GROUP, [_TOPIC], consumer_id=name, session_timeout_ms=15_000
        )

    def member_id(self, name: str) -> str:
        """Return how the cluster calls it."""
        return f"{GROUP}_{name}"

    def members(self) -> set[str] | None:
        """Return whose nodes ZooKeeper has."""
        try:
            nodes = self._client.get_children_async(f"{self._cluster.root}/consumers/{GROUP}/ids").get(timeout=_POLL_S)
        except NoNodeError:
            return set()
        except (KazooException, KazooTimeoutError):
            return None
        return set(nodes)

    def wait_until_shared(self, members: Sequence[MetaqMember]) -> dict[str, list[Queue]]:
        """Wait until these share all partitions."""
        wanted = [part for number in (0, 1) for part in metaq_members.partitions_of(_TOPIC, _QUEUES, number)]

        def shared() -> bool:
            held = [partition for member in members for partition in member.held]
            return sorted(held) == sorted(wanted)

        metaq_members.wait_until(members, shared, _SHARED_S)
        return {member.member_id: sorted(member.held) for member in members}

    def close(self) -> None:
        """Hang up."""
        self._client.stop()
        self._client.close()


@contextlib.contextmanager
def chaos_cluster(system: str, folder: Path) -> Iterator[RocketMqChaos | MetaqChaos]:
    """Run one of the two until the block is left."""
    if system == "rocketmq":
        with rocketmq_55(folder) as cluster:
            cluster.add_broker()
            cluster.create_topic(_TOPIC, _QUEUES)
            yield RocketMqChaos(cluster)
        return
    with metaq_cluster(folder, {_TOPIC: _QUEUES}) as metaq, metaq.add_broker({_TOPIC: _QUEUES}) as second:
        chaos = MetaqChaos(metaq, second)
        try:
            yield chaos
        finally:
            chaos.close()
