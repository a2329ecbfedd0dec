"""Real Java consumers as child processes, which say themselves what they were given.

with start_member(broker, "billing", ["orders"], client_id="b1") as member:
    member.wait_until(lambda: len(member.owned) == 4)
    member.kill()
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from tests.kit.brokers import NEWEST, Broker
from tests.kit.jars import class_path
from tests.kit.java_members import WAIT_S, JavaMember, java_command, wait_until

_STRATEGIES = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}

_HEARTBEAT_MS = 500

Partition = tuple[str, int]


class Report(msgspec.Struct, frozen=True):
    """One line of a member about itself.

    Attributes:
        event: `assigned`, `revoked`, `lost`, `closed`, `failed`, `read` (records came), `done` (a command was
            carried out).
        at_ms: by the machine's clock, epoch ms.
        changed: what was given or taken (a cooperative member is given only what is new), or of which records came.
        owned: all that it holds after this, sorted.
        generation: as the client knows it; None where the client does not know one just then.
        member_id: as the coordinator named it.
        error: why it failed.
        command: the command that was carried out.
        records: how many came with one poll.
    """

    event: str
    at_ms: int
    changed: tuple[Partition, ...] = ()
    owned: tuple[Partition, ...] = ()
    generation: int | None = None
    member_id: str | None = None
    error: str | None = None
    command: str | None = None
    records: int = 0


class Member(JavaMember[Report]):
    """One running consumer."""

    def __init__(self, command: Sequence[str]) -> None:
        super().__init__(command, Report, "close")

    @property
    def assignments(self) -> list[Report]:
        """What it was given: one report for each generation in which it took part."""
        return [report for report in self.reports if report.event == "assigned"]

    @property
    def owned(self) -> tuple[Partition, ...]:
        """What it holds now, by its own last words."""
        reports = [report for report in self.reports if report.event not in ("done", "read")]
        return reports[-1].owned if reports else ()

    @property
    def records_read(self) -> int:
        """How many records it was given so far."""
        return sum(report.records for report in self.reports)

    @property
    def generation(self) -> int | None:
        """The generation of the last assignment."""
        given = self.assignments
        return given[-1].generation if given else None

    @property
    def member_id(self) -> str | None:
        """The id that the coordinator gave it, by the last assignment."""
        given = self.assignments
        return given[-1].member_id if given else None

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe to these topics instead of those before."""
        self.send(f"subscribe {','.join(topics)}")

    def subscribe_pattern(self, pattern: str) -> None:
        """Subscribe to all topics that match."""
        self.send(f"pattern {pattern}")

    def subscribe_server_pattern(self, pattern: str) -> None:
        """Subscribe to all topics that match by the coordinator's reckoning (new protocol, since 4.0)."""
        self.send(f"server-pattern {pattern}")

    def unsubscribe(self) -> None:
        """Leave the group and stay alive."""
        self.send("unsubscribe")

    def commit(self) -> None:
        """Commit its offsets now."""
        self.send("commit")

    def stop_polling(self) -> None:
        """Poll no more: heartbeats go on until max.poll.interval.ms, and no rebalance is answered."""
        self.send("pause")

    def poll_again(self) -> None:
        """Go on polling."""
        self.send("resume")


def start_member(
    broker: Broker,
    group: str,
    topics: Sequence[str],
    *,
    client_id: str,
    clients: str | None = None,
    instance_id: str | None = None,
    strategies: Sequence[str] = ("range",),
    session_timeout_ms: int = 6000,
    commit_interval_ms: int = 400,
    rack: str | None = None,
    user: str | None = None,
    settings: Mapping[str, str] | None = None,
    classes: str | None = None,
) -> Member:
    """Start one consumer and subscribe it.

    Args:
        broker: whose clients it is.
        group: its group.
        topics: none leaves it unsubscribed until `subscribe` is called.
        client_id: the first part of the member id.
        clients: the version of kafka-clients: 1.0.2, 2.8.2, 3.9.1, 4.1.1 or the newest; else the broker's own.
        instance_id: makes it a static member (since 2.3).
        strategies: in order of preference, by their wire names or as class names.
        session_timeout_ms: after which the coordinator gives it up.
        commit_interval_ms: how often it commits its positions.
        rack: `client.rack` (since 2.4).
        user: who it logs in as, where the broker asks.
        settings: any other setting of the consumer.
        classes: a folder of classes of its own.
    """
    version = clients or broker.clients
    properties = {
        **broker.java_settings(user),
        "group.id": group,
        "client.id": client_id,
        "partition.assignment.strategy": ",".join(_STRATEGIES.get(name, name) for name in strategies),
        "session.timeout.ms": str(session_timeout_ms),
        # A member learns of a rebalance by its next heartbeat; the default is three seconds.
        "heartbeat.interval.ms": str(min(_HEARTBEAT_MS, session_timeout_ms // 3)),
        "auto.commit.interval.ms": str(commit_interval_ms),
        "auto.offset.reset": "earliest",
        # So that new partitions and topics are seen soon; the default is five minutes.
        "metadata.max.age.ms": "1000",
        **({"group.instance.id": instance_id} if instance_id else {}),
        **({"client.rack": rack} if rack else {}),
        **(settings or {}),
    }
    if properties.get("group.protocol") == "consumer":
        # These belong to the classic protocol, and the client refuses them.
        for key in ("partition.assignment.strategy", "session.timeout.ms", "heartbeat.interval.ms"):
            del properties[key]
    jars = f"kafka-{version}" if version in ("1.0.2", "4.1.1", NEWEST) else f"kafka-clients-{version}"
    member = Member(
        [
            *java_command(
                ":".join(filter(None, (class_path(jars, "GroupMember"), classes))),
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            ),
            "GroupMember",
            *(f"{key}={value}" for key, value in properties.items()),
        ]
    )
    if topics:
        member.subscribe(topics)
    return member


def wait_until_assigned(
    members: Sequence[Member], partitions: Collection[Partition], timeout_s: float = WAIT_S
) -> int | None:
    """Wait until these members, in one generation, hold all these partitions and each only once.

    Returns:
        That generation.
    """

    def are_assigned() -> bool:
        held = [partition for member in members for partition in member.owned]
        return sorted(held) == sorted(partitions) and len({member.generation for member in members}) == 1

    wait_until(members, are_assigned, timeout_s)
    return members[0].generation
