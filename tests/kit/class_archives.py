"""Archives of the classes that the kit's Java programs load: with one a broker starts with half of the computing.

`python -m tests.kit.class_archives` makes those that this machine has not got yet, beside the compiled classes. Java
takes an archive only for the very jars and the very Java that it was made with, and starts without it elsewhere.
Source: Java 17, `java` command, "Creating Dynamic CDS Archive Files".
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from streaming.setup import ivy
from tests.kit.jars import java

if TYPE_CHECKING:
    from tests.kit.brokers import Broker

_HERE = Path(__file__).resolve().parent
# What Java says of archives would be among the lines of members.
_SILENT = ("-Xlog:cds*=off", "-Xlog:class+path=off")
_WRITTEN_S = 300.0  # a broker's archive takes seconds, on a busy machine more than a broker is given to end
_numbers = count()
_unfinished: list[Path] = []  # where archives are made, while they are


def options_of(class_path: str) -> tuple[str, ...]:
    """Return Java's options for a program of this class path, which has jars alone."""
    digest = _digest(class_path.encode())
    if _unfinished:
        return (f"-XX:ArchiveClassesAtExit={_unfinished[-1] / f'{digest}.{next(_numbers)}.jsa'}", *_SILENT)
    file = _archives() / f"{digest}.jsa"
    return (f"-XX:SharedArchiveFile={file}", *_SILENT) if file.exists() else ()


def _archives() -> Path:
    return ivy.cache_folder() / "classes"


def _digest(*texts: bytes) -> str:
    """Return what differs where these do, or Java."""
    program = Path(java()).resolve()
    return hashlib.sha256(b"".join([f"{program} {program.stat().st_mtime_ns}".encode(), *texts])).hexdigest()[:12]


@contextmanager
def _made() -> Iterator[None]:
    """Have Java programs that start inside, and end in order, leave archives."""
    _archives().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_archives()) as name:
        _unfinished.append(Path(name))
        try:
            yield
        finally:
            _unfinished.pop()
            # Of several programs of one class path, that of the one which has loaded most.
            for file in sorted(Path(name).iterdir(), key=lambda file: file.stat().st_size):
                file.replace(_archives() / f"{file.name.partition('.')[0]}.jsa")


def _kafka_41(folder: Path) -> None:
    from tests.kit.brokers import kafka_41
    from tests.kit.kafka_tools import describe_groups

    with kafka_41(folder) as broker:
        for clients in ("4.1.1", "3.9.1", "2.8.2"):
            _join(broker, clients)
        describe_groups(broker, "--members", "--verbose")
        broker.server.stop(_WRITTEN_S)


def _kafka_10(folder: Path) -> None:
    from tests.kit.brokers import kafka_10

    with kafka_10(folder) as broker:
        _join(broker, "1.0.2")
        broker.server.stop(_WRITTEN_S)


def _join(broker: Broker, clients: str) -> None:
    from tests.kit.members import start_member
    from tests.kit.topics import create_topic

    create_topic(broker, clients, 2)
    with start_member(broker, clients, [clients], client_id="a", clients=clients) as member:
        member.wait_until(lambda: len(member.owned) == 2)
        member.stop()


def _rocketmq(version: str) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        from tests.kit.rocketmq import rocketmq_49, rocketmq_55
        from tests.kit.rocketmq_members import start_member

        with (rocketmq_55 if version == "5.5" else rocketmq_49)(folder, tls=True) as cluster:
            cluster.create_topic("orders")
            with start_member(cluster, "billing", ["orders"]) as member:
                member.wait_until(lambda: bool(member.held()))
                member.stop()
            # The kit itself kills them.
            for server in (cluster.broker, cluster.name_server):
                server.process.stop(_WRITTEN_S)

    return run


def _metaq(folder: Path) -> None:
    from tests.kit.metaq import metaq_cluster
    from tests.kit.metaq_members import start_metaq_member

    with (
        metaq_cluster(folder, {"orders": 2}) as cluster,
        start_metaq_member(cluster, "billing", ["orders"], consumer_id="a") as member,
    ):
        member.wait_until(lambda: len(member.held) == 2)
        member.stop()


_RUNS = {
    "Kafka 4.1": _kafka_41,
    "Kafka 1.0": _kafka_10,
    "RocketMQ 5.5": _rocketmq("5.5"),
    "RocketMQ 4.9": _rocketmq("4.9"),
    "MetaQ": _metaq,
}


def main() -> int:
    """Make those that are missing; tests run without them, too."""
    sources = [file for folder in ("java", "ivy") for file in sorted((_HERE / folder).glob("*.*"))]
    done = _archives() / f"archives-{_digest(*(file.read_bytes() for file in (Path(__file__), *sources)))}"
    if done.exists():
        return 0
    ivy.progress("archiving the classes of brokers and clients: a minute, once on this machine")

    def make(run: Callable[[Path], None]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            run(Path(folder) / "kit")

    try:
        with _made(), ThreadPoolExecutor(2) as pool:
            list(pool.map(make, _RUNS.values()))
        done.touch()
    except (AssertionError, OSError, RuntimeError, subprocess.SubprocessError) as error:
        ivy.progress(f"not archived, brokers and clients start without: {error}")
    return 0


if __name__ == "__main__":
    # That which the kit imports, and not this copy of it.
    from tests.kit import class_archives

    sys.exit(class_archives.main())
