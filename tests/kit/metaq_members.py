"""Real MetaQ consumers as child processes, which say themselves which partitions they took.

with start_metaq_member(cluster, "billing", ["orders"]) as member:
    member.wait_until(lambda: len(member.held) == 5)
    member.kill()
"""

import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from types import TracebackType

import msgspec

from streaming.java import find_java
from tests.kit.jars import class_path
from tests.kit.metaq import JARS, MetaqCluster

_WAIT_S = 60.0
# One for all members: a claim may be about several of them.
_NEWS = threading.Condition()

Partition = tuple[str, str, int]  # topic, broker, number


class Report(msgspec.Struct, frozen=True):
    """One line of a member about itself.

    Attributes:
        event: `started`, `held` (it holds other partitions than before), `read` (a message came), `stopped`, `failed`.
        at_ms: by the machine's clock, epoch ms.
        held: all that it holds, sorted.
        member_id: as it is in ZooKeeper.
        error: why it failed.
    """

    event: str
    at_ms: int
    held: tuple[Partition, ...] = ()
    member_id: str | None = None
    error: str | None = None
    records: int = 0


class MetaqMember:
    """One running consumer. Leaving the `with` block kills it if it still runs."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )
        self._reports: list[Report] = []
        self._complaints: list[str] = []
        self._ended = False
        self._threads = [threading.Thread(target=read, daemon=True) for read in (self._hear, self._hear_complaints)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> "MetaqMember":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def has_ended(self) -> bool:
        """Whether it closed its output: it stopped, failed or was killed."""
        return self._ended

    @property
    def reports(self) -> list[Report]:
        """All that it said, in order."""
        with _NEWS:
            return list(self._reports)

    @property
    def member_id(self) -> str:
        """Its id in ZooKeeper; it must have started."""
        return next(report.member_id for report in self.reports if report.member_id is not None)

    @property
    def has_started(self) -> bool:
        """Whether it has registered itself."""
        return any(report.event == "started" for report in self.reports)

    @property
    def held(self) -> tuple[Partition, ...]:
        """What it holds now, by its own last words."""
        words = [report for report in self.reports if report.event in ("held", "stopped")]
        return words[-1].held if words else ()

    def wait_until(self, claim: Callable[[], bool], timeout_s: float = _WAIT_S) -> None:
        """Return as soon as a claim holds; see `wait_until`."""
        wait_until([self], claim, timeout_s)

    def freeze(self) -> None:
        """Stop the whole process (SIGSTOP): its session expires, its connection stays open."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen process go on."""
        self._process.send_signal(signal.SIGCONT)

    def stop(self, timeout_s: float = _WAIT_S) -> None:
        """Leave in order and wait for the end."""
        assert self._process.stdin is not None
        self._process.stdin.write("stop\n")
        self._process.stdin.flush()
        self._process.wait(timeout_s)
        self._bury()

    def kill(self) -> None:
        """End it as a crash does (SIGKILL), and wait until it is gone."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._bury()

    def describe(self) -> str:
        """Tell all that it said, for the message of a failed test."""
        said = "\n".join(str(report) for report in self.reports)
        return f"the member said:\n{said}\nand complained:\n{''.join(self._complaints[-40:])}"

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.startswith('{"event"'):
                continue  # the client library prints, too
            report = msgspec.json.decode(line, type=Report)
            with _NEWS:
                self._reports.append(report)
                _NEWS.notify_all()
        with _NEWS:
            self._ended = True
            _NEWS.notify_all()

    def _hear_complaints(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._complaints.append(line)

    def _bury(self) -> None:
        for thread in self._threads:
            thread.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()


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
            str(find_java().java),
            *("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Duser.home={home}"),
            f"-Dlog4j.configuration=file:{cluster.folder / 'broker-0' / 'log4j.properties'}",
            *("-cp", class_path(JARS, "MetaqMember"), "MetaqMember"),
            *(f"{key}={value}" for key, value in settings.items()),
        ]
    )


def wait_until(members: Sequence[MetaqMember], claim: Callable[[], bool], timeout_s: float = _WAIT_S) -> None:
    """Return as soon as a claim about these members holds; it is asked again after each report.

    Raises:
        AssertionError: it did not hold in time, or one of them ended before; with what they said.
    """
    with _NEWS:
        _NEWS.wait_for(lambda: claim() or any(member.has_ended for member in members), timeout_s)
        if not claim():
            raise AssertionError("the claim did not come true:\n" + "\n".join(one.describe() for one in members))


def wait_until_shared(members: Sequence[MetaqMember], partitions: Sequence[Partition]) -> None:
    """Wait until all these members have started and hold all these partitions, each only once."""

    def shared() -> bool:
        held = [partition for member in members for partition in member.held]
        return all(member.has_started for member in members) and sorted(held) == sorted(partitions)

    wait_until(members, shared)


def partitions_of(topic: str, count: int, broker: int = 0) -> list[Partition]:
    """Answer the partitions that a broker has of a topic."""
    return [(topic, str(broker), number) for number in range(count)]
