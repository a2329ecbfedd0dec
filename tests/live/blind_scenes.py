"""Clusters, jobs and readers at which knowledge ends in several ways, and comes back."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from tests.job.commands import MONITOR, Running
from tests.kit.brokers import Broker, kafka_41
from tests.kit.kafka_cluster import three_brokers
from tests.kit.machine_clock import MachineClock
from tests.kit.metaq import metaq_cluster
from tests.kit.rocketmq import rocketmq_55
from tests.kit.s3 import running_s3
from tests.kit.silent_proxy import silent_proxy
from tests.kit.topics import create_topic
from tests.live.blind_reader import CLUSTER, Reader, Said

# By default a batch begins more often, and each takes computing from everything else.
SELDOM = {"REBALANCE_MONITOR_JOB__TRIGGER_INTERVAL_MS": "2000"}
_WAIT_S = 300.0
_DISK = "400m"
# The reader's clock is wrong by this much, and so is the machine's when it is set: it is blind this long once set back.
_WRONG_S, _STEP_S = 600, 120


@dataclass
class Watched:
    """A job on its own, and a reader of its tables.

    Attributes:
        command: Of the job, without `run` and its tables. groups: How many the cluster has.
    """

    reader: Reader
    command: Sequence[str]
    folder: Path
    checkpoint: Path
    settings: Mapping[str, str]
    within: Sequence[str] = ()
    groups: int = 0
    job: Running = field(init=False)

    def start(self) -> None:
        """Start the job, again where it ends or has ended."""
        if hasattr(self, "job"):
            self.job.kill()
        self.job = Running(
            ["run", *self.command, "--tables", self.reader.tables, "--checkpoint", str(self.checkpoint)],
            self.folder / "stderr.txt",
            monitor=[*self.within, *MONITOR],
            environment=self.settings,
        )

    def start_if_ended(self) -> None:
        """Start the job if it has ended."""
        if not self.job.is_running:
            self.start()

    def wait_for(
        self,
        holds: Callable[[Said], bool],
        what: str,
        reader: Reader | None = None,
        *,
        first: Callable[[Reader], bool] = lambda _: True,
    ) -> Said:
        """Return what is said as soon as something holds of it, whether the job runs or not.

        Args:
            first: Holds before that, and costs little to look at: all that is said takes a process.
        """
        reader = reader or self.reader
        said: Said | None = None
        ends = time.monotonic() + _WAIT_S
        while not (first(reader) and holds(said := reader.said())):
            assert time.monotonic() < ends, f"{what}: {said}\n{self.job.stderr()[-3000:]}"
            time.sleep(0.5)
        return said

    def wait_until_known(self, reader: Reader | None = None) -> Said:
        """Return what is said once all say that all is well."""

        def is_well(said: Said) -> bool:
            return said.silent == [] and said.alerts == [] and said.groups >= self.groups

        return self.wait_for(is_well, "all is well", reader, first=Reader.seems_well)


@dataclass(frozen=True)
class Way:
    """One way in which knowledge ends, and what brings it back.

    Attributes:
        reader: Who reads; None: the reader of the scene. stays_known: The cluster stays known, or is known again
            soon, with no recovery.
    """

    name: str
    end: Callable[[], None]
    recover: Callable[[], None]
    reader: Reader | None = None
    stays_known: bool = False


@dataclass(frozen=True)
class Scene:
    """A job that follows a cluster, and the ways in which that is tried."""

    watched: Watched
    ways: Sequence[Way]


@contextlib.contextmanager
def _scene(
    folder: Path,
    source: Sequence[str],
    settings: Mapping[str, str],
    *,
    tables: str = "",
    within: Sequence[str] = (),
    place: Path | None = None,
    groups: int = 1,
) -> Iterator[Watched]:
    """Follow a cluster, and read the tables; the cluster is known when the block begins.

    Args:
        place: Where tables and checkpoint are, if not in the folder, which has what is logged.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place = place or folder
    settings = {**SELDOM, **settings}
    reader = Reader(tables or str(place / "tables"), folder / "reader", settings, within)
    watched = Watched(reader, [*source, "--cluster", CLUSTER], folder, place / "checkpoint", settings, within, groups)
    watched.start()
    try:
        with reader:
            watched.wait_until_known()
            yield watched
    finally:
        watched.job.signal(signal.SIGCONT)
        watched.job.kill()


def _job_ways(watched: Watched) -> list[Way]:
    """Return the ways in which a job goes away."""

    def stop() -> None:
        watched.job.signal(signal.SIGINT)

    return [
        Way(
            "job hangs (SIGSTOP)",
            lambda: watched.job.signal(signal.SIGSTOP),
            lambda: watched.job.signal(signal.SIGCONT),
        ),
        Way("job stopped (Ctrl-C)", stop, watched.start),
        Way("job killed (SIGKILL)", lambda: watched.job.kill(), watched.start),
    ]


@contextlib.contextmanager
def kafka(folder: Path, settings: Mapping[str, str]) -> Iterator[Scene]:
    """A broker that goes away, or is cut off, and a job that goes away."""
    with silent_proxy() as proxy:
        advertised = {"advertised.listeners": f"CLIENTS://{proxy.address}"}
        with kafka_41(folder / "broker", advertised) as broker:
            proxy.server_port = int(broker.bootstrap.rpartition(":")[2])
            commit_something(broker)
            with _scene(folder / "job", ["--kafka", proxy.address], settings) as watched:
                ways = [
                    Way("broker killed", broker.kill, broker.start),
                    Way("broker stopped", broker.stop, broker.start),
                    Way("broker hangs (SIGSTOP)", broker.server.freeze, broker.server.thaw),
                    Way("cut off: both directions", lambda: proxy.cut(to_server=True, from_server=True), proxy.restore),
                    Way("cut off: nothing gets there", lambda: proxy.cut(to_server=True), proxy.restore),
                    Way("cut off: nothing comes back", lambda: proxy.cut(from_server=True), proxy.restore),
                ]
                yield Scene(watched, [*ways, *_job_ways(watched)])


@contextlib.contextmanager
def brokers(folder: Path, settings: Mapping[str, str]) -> Iterator[Scene]:
    """One of three brokers that goes away."""
    with three_brokers(folder / "brokers") as cluster:
        commit_something(cluster, replicas=3)
        last = cluster.nodes[-1]
        with _scene(folder / "job", ["--kafka", cluster.bootstrap], settings) as watched:

            def start_with_a_topic_of_one_replica() -> None:
                last.start()
                commit_something(cluster, "bills", partitions=3)

            ways = [
                # Other brokers now lead its partitions.
                Way("one of three brokers killed", last.kill, start_with_a_topic_of_one_replica, stays_known=True),
                Way("with the only replica of a partition", last.kill, last.start),
            ]
            yield Scene(watched, ways)


@contextlib.contextmanager
def rocketmq(folder: Path, settings: Mapping[str, str]) -> Iterator[Scene]:
    """A name server, and a broker of RocketMQ, that go away."""
    with rocketmq_55(folder / "rocketmq") as cluster:
        cluster.create_topic("orders")
        cluster.create_group("billing")
        with _scene(folder / "job", ["--rocketmq", cluster.address], settings, groups=0) as watched:
            yield Scene(
                watched,
                [
                    Way("name server killed", cluster.name_server.kill, cluster.name_server.start),
                    Way("RocketMQ's broker killed", cluster.broker.kill, cluster.broker.start),
                ],
            )


@contextlib.contextmanager
def metaq(folder: Path, settings: Mapping[str, str]) -> Iterator[Scene]:
    """A ZooKeeper that goes away."""
    with metaq_cluster(folder / "metaq", {"orders": 4}) as cluster:
        source = ["--metaq", f"{cluster.zookeeper.address}{cluster.root}"]
        keeper = cluster.zookeeper
        with _scene(folder / "job", source, settings, groups=0) as watched:
            yield Scene(
                watched,
                [
                    Way("ZooKeeper killed", keeper.kill, keeper.start),
                    Way("ZooKeeper hangs (SIGSTOP)", keeper.server.freeze, keeper.server.thaw),
                ],
            )


@contextlib.contextmanager
def disk(folder: Path, settings: Mapping[str, str]) -> Iterator[Scene]:
    """A disk, of tables and checkpoint, that is full."""
    place = folder / "small"
    place.mkdir(parents=True)
    mount = f'mount -t tmpfs -o size={_DISK} tmpfs "$0" && echo mounted && exec sleep 86400'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, str(place)]
    with ExitStack() as stack:
        holder = subprocess.Popen(command, stdout=subprocess.PIPE)
        stack.callback(holder.wait)
        stack.callback(holder.kill)
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"mounted\n"
        stack.callback(holder.stdout.close)
        within = ["nsenter", "--user", "--mount", "--preserve-credentials", f"--target={holder.pid}"]
        outside = Path(f"/proc/{holder.pid}/root{place}")
        broker = stack.enter_context(kafka_41(folder / "broker"))
        commit_something(broker)
        watched = stack.enter_context(
            _scene(folder / "job", ["--kafka", broker.bootstrap], settings, within=within, place=place)
        )

        def recover() -> None:
            (outside / "ballast").unlink()
            time.sleep(5)
            watched.start_if_ended()

        yield Scene(watched, [Way("its disk is full", lambda: _fill(outside), recover)])


def _fill(folder: Path) -> None:
    # The job writes too: space that was free a moment ago may be gone.
    with (folder / "ballast").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(64 * 1024))


@contextlib.contextmanager
def store(folder: Path, settings: Mapping[str, str]) -> Iterator[Scene]:
    """A store of the tables that goes away."""
    folder.mkdir(parents=True, exist_ok=True)
    with running_s3(folder) as s3, kafka_41(folder / "broker") as broker:
        commit_something(broker)
        tables = f"{s3.uri}/tables"

        with _scene(
            folder / "job", ["--kafka", broker.bootstrap], {**settings, **s3.options}, tables=tables
        ) as watched:

            def recover(action: Callable[[], None]) -> Callable[[], None]:
                def run() -> None:
                    action()
                    time.sleep(5)
                    watched.start_if_ended()

                return run

            yield Scene(
                watched,
                [
                    Way("its store is away", s3.stop, recover(s3.start)),
                    Way("its store hangs (SIGSTOP)", s3.freeze, recover(s3.thaw)),
                ],
            )


@contextlib.contextmanager
def clock(folder: Path, settings: Mapping[str, str]) -> Iterator[Scene]:
    """The clock of the job's machine that is set, and readers elsewhere whose clocks are wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    machine = MachineClock(folder)
    with ExitStack() as stack:
        broker = stack.enter_context(kafka_41(folder / "broker"))
        commit_something(broker)
        watched = stack.enter_context(
            _scene(folder / "job", ["--kafka", broker.bootstrap], {**settings, **machine.environment})
        )
        ways = [
            Way("machine's clock set 2 min ahead", lambda: machine.set(_STEP_S), lambda: None, stays_known=True),
            # The blindness ends by itself once the time has passed what the clock showed.
            Way("and set right again", lambda: machine.set(0), lambda: None),
        ]
        for text, seconds in (("ahead", _WRONG_S), ("behind", -_WRONG_S)):
            place = folder / f"elsewhere-{text}"
            elsewhere = MachineClock(place)
            reader = Reader(
                watched.reader.tables, place, {**settings, **elsewhere.environment}, _another_machine(place)
            )
            stack.enter_context(reader)
            ways.append(
                Way(
                    f"reader's clock 10 min {text}",
                    lambda elsewhere=elsewhere, seconds=seconds: elsewhere.set(seconds),  # type: ignore[misc]
                    lambda elsewhere=elsewhere: elsewhere.set(0),  # type: ignore[misc]
                    reader,
                )
            )
        yield Scene(watched, ways)


def _another_machine(folder: Path) -> list[str]:
    """Return a command that becomes another one, for which this is another boot, and so another machine."""
    (folder / "boot-id").write_text("00000000-0000-0000-0000-00000000000b\n")
    bind = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", bind, str(folder / "boot-id")]


def commit_something(broker: Broker, topic: str = "orders", *, partitions: int = 2, replicas: int = 1) -> None:
    """Leave a group at rest, which is well while its cluster is known."""
    create_topic(broker, topic, partitions, replicas=replicas)
    consumer = Consumer(broker.client_settings() | {"group.id": f"{topic}-readers"})
    consumer.commit(offsets=[TopicPartition(topic, number, 0) for number in range(partitions)], asynchronous=False)
    consumer.close()


SCENES: Mapping[str, Callable[[Path, Mapping[str, str]], contextlib.AbstractContextManager[Scene]]] = {
    "kafka": kafka,
    "brokers": brokers,
    "rocketmq": rocketmq,
    "metaq": metaq,
    "disk": disk,
    "store": store,
    "clock": clock,
}
