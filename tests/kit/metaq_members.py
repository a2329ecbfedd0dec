"""Real MetaQ consumers as child processes, which say themselves which partitions they took.

with start_metaq_member(cluster, "billing", ["orders"]) as member:
    member.wait_until(lambda: len(member.held) == 5)
    member.kill()
"""

from collections.abc import Sequence

import msgspec

from tests.kit.jars import class_path
from tests.kit.java_members import JavaMember, java_command, wait_until
from tests.kit.metaq import JARS, MetaqCluster

Partition = tuple[str, str, int]  # topic, broker, number


class Report(msgspec.Struct, frozen=True):
    """One line of a member about itself.

    Attributes:
        event: `started`, `held` (it holds other partitions than before), `read` (a message came), `stopped`, `failed`.
        at_ms: by the machine's clock, epoch ms.
        held: all that it holds, sorted.
        member_id: as it is in ZooKeeper.
        error: why it failed.
        queue: from which a message came.
    """

    event: str
    at_ms: int
    held: tuple[Partition, ...] = ()
    member_id: str | None = None
    error: str | None = None
    records: int = 0
    queue: Partition | None = None


class MetaqMember(JavaMember[Report]):
    """One running consumer."""

    def __init__(self, command: Sequence[str]) -> None:
        super().__init__(command, Report, "stop")

    @property
    def member_id(self) -> str:
        """Its id in ZooKeeper; it must have started."""
        return next(report.member_id for report in self.reports if report.member_id is not None)

    @property
    def has_started(self) -> bool:
        """Whether it has registered itself."""
        return any(report.event == "started" for report in self.reports)

    @property
    def records_read(self) -> int:
        """How many messages it has consumed."""
        return sum(report.records for report in self.reports)

    @property
    def held(self) -> tuple[Partition, ...]:
        """What it holds now, by its own last words."""
        reports = [report for report in self.reports if report.event in ("held", "stopped")]
        return reports[-1].held if reports else ()


def start_metaq_member(
    cluster: MetaqCluster,
    group: str,
    topics: Sequence[str],
    *,
    consumer_id: str | None = None,
    strategy: str = "DEFAULT",
    session_timeout_ms: int | None = None,
    commit_interval_ms: int = 1_000,
) -> MetaqMember:
    """Start one consumer.

    Args:
        cluster: whose.
        group: its group.
        topics: what it subscribes to, for its whole life.
        consumer_id: the second part of its id in ZooKeeper; else the client makes one of address, process and time.
        strategy: `DEFAULT` or `CONSIST`.
        session_timeout_ms: after which ZooKeeper gives it up.
        commit_interval_ms: how often it writes its offsets.
    """
    settings = {
        "zookeeper": cluster.zookeeper.address,
        "root": cluster.root,
        "group": group,
        "topics": ",".join(topics),
        "strategy": strategy,
        "session_timeout_ms": str(session_timeout_ms or cluster.session_ms),
        "sync_ms": str(cluster.sync_ms),
        "commit_ms": str(commit_interval_ms),
        **({"consumer_id": consumer_id} if consumer_id else {}),
    }
    home = cluster.folder / "members"
    home.mkdir(exist_ok=True)
    return MetaqMember(
        [
            *java_command(
                class_path(JARS, "MetaqMember"),
                f"-Duser.home={home}",
                f"-Dlog4j.configuration=file:{cluster.folder / 'broker-0' / 'log4j.properties'}",
            ),
            "MetaqMember",
            *(f"{key}={value}" for key, value in settings.items()),
        ]
    )


def wait_until_shared(members: Sequence[MetaqMember], partitions: Sequence[Partition]) -> None:
    """Wait until all these members have started and hold all these partitions, each only once."""

    def shared() -> bool:
        held = [partition for member in members for partition in member.held]
        return all(member.has_started for member in members) and sorted(held) == sorted(partitions)

    wait_until(members, shared)


def partitions_of(topic: str, count: int, broker: int = 0) -> list[Partition]:
    """Return the partitions that a broker has of a topic."""
    return [(topic, str(broker), number) for number in range(count)]
