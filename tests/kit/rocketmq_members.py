"""Real RocketMQ consumers as child processes, which say themselves which queues they hold.

with start_member(cluster, "billing", ["orders"], instance="b1") as member:
    member.wait_until(lambda: len(member.held()) == 4)
    member.kill()
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from tests.kit.jars import class_path
from tests.kit.java_members import WAIT_S, JavaMember, java_command, wait_until
from tests.kit.rocketmq import RocketMq, quiet_logging

_RETRY = "%RETRY%"
# Of the clients, against which jars the program is compiled.
_JARS = {"4.9.8": "rocketmq-client-4.9.8", "5.5.0": "rocketmq-server-5.5.0"}
# Topic, broker, queue id: -1 for all queues of a broker together (POP).
Queue = tuple[str, str, int]


class HeldQueue(msgspec.Struct, frozen=True):
    """One queue in a member's own table.

    Attributes:
        mode: `pull`, or `pop` where the queue is read by message.
        locked: as the client marks it; true for every queue of a member that does not read in order.
    """

    topic: str
    broker: str
    queue_id: int
    mode: str
    locked: bool

    @property
    def queue(self) -> Queue:
        """The queue alone."""
        return (self.topic, self.broker, self.queue_id)


class Report(msgspec.Struct, frozen=True):
    """One line of a member about itself.

    Attributes:
        event: `started`, `unanswered` (it could not start, and tries again), `held` (this is what it holds now, seen
            within 100 ms), `read` (messages came), `got` (of a queue, where it notes that), `done` (a command was
            carried out), `stopped`, `failed`.
        at_ms: by the machine's clock, epoch ms.
        client_id: as it names itself to brokers.
        held: all that it holds, sorted by topic, broker and queue; also of its retry topic.
        records: how many messages it consumed since it last said so.
        command: the command that was carried out.
        error: why it failed, or could not start.
        queue: of which messages came.
    """

    event: str
    at_ms: int
    client_id: str | None = None
    held: tuple[HeldQueue, ...] = ()
    records: int = 0
    command: str | None = None
    error: str | None = None
    queue: Queue | None = None


class RocketMqMember(JavaMember[Report]):
    """One running push consumer."""

    def __init__(self, command: Sequence[str]) -> None:
        super().__init__(command, Report, "shutdown")

    @property
    def client_id(self) -> str | None:
        """What it calls itself; None before it has started."""
        return next((report.client_id for report in self.reports if report.event == "started"), None)

    @property
    def records_read(self) -> int:
        """How many messages it has consumed."""
        return sum(report.records for report in self.reports)

    def held(self, topic: str | None = None, *, retries: bool = False) -> tuple[Queue, ...]:
        """Return what it holds by its own last words, sorted.

        Args:
            topic: only the queues of this one.
            retries: also those of retry topics, which every member of a group shares beside its own.
        """
        reports = [report for report in self.reports if report.event in ("held", "stopped")]
        queues = [held_queue.queue for held_queue in (reports[-1].held if reports else ())]
        return tuple(
            queue
            for queue in queues
            if (retries or not queue[0].startswith(_RETRY)) and (topic is None or queue[0] == topic)
        )

    def wait_until_started(self) -> str:
        """Wait until it has joined and return its client id."""
        self.wait_until(lambda: self.client_id is not None)
        assert self.client_id is not None
        return self.client_id

    def subscribe(self, topic: str, expression: str = "*") -> None:
        """Subscribe to one more topic."""
        self.send(f"subscribe {topic} {expression}")

    def unsubscribe(self, topic: str) -> None:
        """Subscribe to one topic less."""
        self.send(f"unsubscribe {topic}")

    def suspend(self) -> None:
        """Consume no more and keep the queues."""
        self.send("suspend")

    def resume(self) -> None:
        """Go on consuming."""
        self.send("resume")


def start_member(
    cluster: RocketMq,
    group: str,
    topics: Sequence[str],
    *,
    instance: str | None = None,
    clients: str | None = None,
    strategy: str = "AVG",
    broadcasting: bool = False,
    ordered: bool = False,
    client_rebalance: bool = True,
    unit: str | None = None,
    client_ip: str = "127.0.0.1",
    route_interval_ms: int = 1_000,
    heartbeat_interval_ms: int = 2_000,
    rebalance_interval_ms: int = 20_000,
    consume_ms: int = 0,
    name_server: str = "",
    settings: Mapping[str, object] | None = None,
) -> RocketMqMember:
    """Start one push consumer.

    Args:
        cluster: whose client it is.
        group: its group.
        topics: what it subscribes to from the start.
        instance: the middle of its client id, `127.0.0.1@INSTANCE`; two members with the same are duplicates. None
            leaves the client's own choice: process id and a number, DEFAULT when broadcasting.
        clients: the version of the client, 4.9.8 or 5.5.0; else the cluster's.
        strategy: AVG, AVG_BY_CIRCLE, CONSISTENT_HASH, CONFIG, MACHINE_ROOM or MACHINE_ROOM_NEARBY.
        broadcasting: every member holds every queue.
        ordered: with locks at the broker.
        client_rebalance: False lets the brokers allocate (5.x only); needed for POP.
        unit: a third part of the client id.
        client_ip: the first part of the client id; it is only a name.
        route_interval_ms: after which it notices other numbers of queues; the client's default is 30 s.
        heartbeat_interval_ms: how often it sends heartbeats to brokers; the client's default is 30 s. A broker that
            comes (back) knows it after the next one.
        rebalance_interval_ms: how often it looks by itself, when nobody notified it.
        consume_ms: how long each batch of messages takes.
        name_server: a proxy's address, of which it asks all that others ask of name servers and brokers.
        settings: of strategies: `virtual_nodes`; `queues` (CONFIG: topic/broker/id, comma-separated); `rooms`
            (MACHINE_ROOM: comma-separated); `broker_rooms`, `member_rooms` (name/room, comma-separated) and `inner`
            for MACHINE_ROOM_NEARBY. Also `namespace`, `persist_interval_ms`, `notes` (it reports of each queue when
            messages came), and `stuck_on`: the body of a message that it never finishes, while it goes on with others.
    """
    version = clients or cluster.clients
    arguments: dict[str, object] = {
        "name_server": name_server or cluster.address,
        "group": group,
        "topics": ",".join(topics),
        "strategy": strategy,
        "message_model": "BROADCASTING" if broadcasting else "CLUSTERING",
        "ordered": str(ordered).lower(),
        "client_rebalance": str(client_rebalance).lower(),
        "client_ip": client_ip,
        "route_interval_ms": route_interval_ms,
        "heartbeat_interval_ms": heartbeat_interval_ms,
        "consume_ms": consume_ms,
        **({"instance": instance} if instance else {}),
        **({"unit": unit} if unit else {}),
        **(settings or {}),
    }
    home = cluster.folder / "members"
    home.mkdir(exist_ok=True)
    return RocketMqMember(
        [
            *java_command(
                f"{quiet_logging()}:{class_path(_JARS[version], 'RocketMqMember')}",
                # Where its logs go, and its offsets when it is broadcasting.
                *(f"-Duser.home={home}", f"-Drocketmq.client.localOffsetStoreDir={home}/offsets"),
                f"-Drocketmq.client.rebalance.waitInterval={rebalance_interval_ms}",
                # Else it hangs up on a server that is late, and is no member until its next heartbeat.
                "-Dcom.rocketmq.remoting.client.closeSocketIfTimeout=false",
            ),
            "RocketMqMember",
            *(f"{key}={value}" for key, value in arguments.items()),
        ]
    )


def wait_until_held(
    expected: Mapping[RocketMqMember, Collection[Queue]], timeout_s: float = WAIT_S, *, retries: bool = False
) -> None:
    """Wait until each of these members holds exactly these queues (retry topics aside, if not asked for)."""
    wanted = {member: tuple(sorted(queues)) for member, queues in expected.items()}
    wait_until(
        list(wanted),
        lambda: all(member.held(retries=retries) == queues for member, queues in wanted.items()),
        timeout_s,
    )


def wait_until_assigned(
    members: Sequence[RocketMqMember], queues: Collection[Queue], timeout_s: float = WAIT_S
) -> None:
    """Wait until these members hold all these queues, each queue once and each member at least one."""

    def are_assigned() -> bool:
        held = [member.held() for member in members]
        return all(held) and sorted(queue for queues_of_member in held for queue in queues_of_member) == sorted(queues)

    wait_until(members, are_assigned, timeout_s)


def queues_of(topic: str, count: int, brokers: Sequence[str] = ("broker-a",)) -> list[Queue]:
    """Return the queues of a topic that has so many on each of these brokers."""
    return [(topic, broker, number) for broker in brokers for number in range(count)]
