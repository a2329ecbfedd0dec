"""How often is a departure's cause right? Real consumers depart in every way, and what the monitor makes of it.

    python -m tests.live.departures [ROUNDS] [LIBRARY...]

In each round and group a member departs in each way of ``Kind``, beside one that stays. Two collectors follow the
broker meanwhile: one reads its records alone, one the log beside them. A table is printed of how often the cause was
right, wrong or left open, and how often it was said that the client was back.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from confluent_kafka import Producer

from tests.core_config import core_config
from tests.job.commands import Running
from tests.kit.brokers import Broker, kafka_41
from tests.kit.java_members import wait_until
from tests.kit.light_members import start_light_member
from tests.kit.members import Member, start_member
from tests.kit.python_processes import start_python_member
from tests.kit.topics import create_topic
from tests.live.story import partitions
from tests.simulation.core_run import CoreRun
from udfs.model.journal import Trigger

Kind: TypeAlias = Literal[
    "leaves", "is killed", "hangs briefly", "hangs", "polls too late", "host is lost", "deploy", "static restart"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
# What the cause of a departure is right to say. A member that hangs briefly, or restarts as a static one, does not
# depart.
_TRUE: dict[Kind, str | None] = {
    "leaves": "member_left",
    "is killed": "session_expired",
    "hangs briefly": None,
    "hangs": "session_expired",
    "polls too late": "member_left",
    "host is lost": "session_expired",
    "deploy": "member_left",
    "static restart": None,
}
_SESSION_MS = 6_000
_STATIC_SESSION_MS = 30_000  # a process takes a while to start on a busy machine
_POLL_INTERVAL_MS = 9_000
_COMMIT_MS = 700
_BROKER = {"group.consumer.session.timeout.ms": "9000", "group.consumer.heartbeat.interval.ms": "1000"}
_DEPARTURES = ("member_left", "session_expired", "member_gone")
_PARTITIONS = 4
_SEND_EVERY_S = 0.1
_LAST_READ_S = 15  # so that the collectors have read the last departure, and written a clock


class Library(NamedTuple):
    """Which members one group has.

    Attributes:
        start: Of a broker, a group, a client id, an instance id, and whether it may not poll for long.
        kinds: How its members depart. is_slow: The one that stays rejoins only after a session timeout.
        leaves_late: One that polls too late leaves; else it sends no heartbeat any more, and expires.
    """

    name: str
    start: Callable[[Broker, str, str, str | None, bool], Member]
    kinds: tuple[Kind, ...] = KINDS
    is_slow: bool = False
    leaves_late: bool = True

    def true_cause(self, kind: Kind) -> str | None:
        """Return what the cause of such a departure is right to be; None: there is no departure."""
        return "session_expired" if kind == "polls too late" and not self.leaves_late else _TRUE[kind]


def _java(*, protocol: str = "classic", **more: str) -> Callable[[Broker, str, str, str | None, bool], Member]:
    def start(broker: Broker, group: str, name: str, instance_id: str | None, is_late: bool) -> Member:
        settings = {key.replace("_", "."): value for key, value in more.items()}
        settings |= {"group.protocol": protocol} if protocol != "classic" else {}
        settings |= {"max.poll.interval.ms": str(_POLL_INTERVAL_MS)} if is_late else {}
        return start_member(
            broker,
            group,
            [group],
            client_id=name,
            instance_id=instance_id,
            session_timeout_ms=_STATIC_SESSION_MS if instance_id else _SESSION_MS,
            commit_interval_ms=_COMMIT_MS,
            settings=settings,
        )

    return start


def _librdkafka(*, protocol: str = "classic") -> Callable[[Broker, str, str, str | None, bool], Member]:
    def start(broker: Broker, group: str, name: str, instance_id: str | None, is_late: bool) -> Member:
        settings = {"client.id": name, "auto.commit.interval.ms": str(_COMMIT_MS)}
        if protocol == "consumer":
            settings["group.protocol"] = protocol
        else:
            session_ms = _STATIC_SESSION_MS if instance_id else _SESSION_MS
            settings |= {"session.timeout.ms": str(session_ms), "heartbeat.interval.ms": "500"}
        settings |= {"group.instance.id": instance_id} if instance_id else {}
        interval_ms = _POLL_INTERVAL_MS if is_late else 300_000
        return start_light_member(broker, group, [group], settings | {"max.poll.interval.ms": str(interval_ms)})

    return start


def _python(library: str) -> Callable[[Broker, str, str, str | None, bool], Member]:
    def start(broker: Broker, group: str, name: str, instance_id: str | None, is_late: bool) -> Member:
        settings: dict[str, Any] = {
            "client_id": name,
            "session_timeout_ms": _STATIC_SESSION_MS if instance_id else _SESSION_MS,
            "heartbeat_interval_ms": 500,
            "auto_commit_interval_ms": _COMMIT_MS,
            **({"group_instance_id": instance_id} if instance_id else {}),
            **({"max_poll_interval_ms": _POLL_INTERVAL_MS} if is_late else {}),
        }
        return start_python_member(library, broker, group, [group], settings)

    return start


_OLD_KINDS: tuple[Kind, ...] = ("leaves", "is killed")
LIBRARIES = (
    Library("Java", _java()),
    Library("Java, new protocol", _java(protocol="consumer")),
    Library("librdkafka", _librdkafka()),
    Library("librdkafka, new protocol", _librdkafka(protocol="consumer"), leaves_late=False),
    Library("kafka-python", _python("kafka-python")),
    Library("aiokafka", _python("aiokafka")),
    Library("Java, never commits", _java(enable_auto_commit="false"), _OLD_KINDS),
    Library("Java, the other rejoins late", _java(), _OLD_KINDS, is_slow=True),
)


class Truth(NamedTuple):
    """How members departed, by id, and which are clients that hung and are back."""

    departed: dict[str, Kind]
    back: list[str]


def group_of(library: Library) -> str:
    """Return the name of a group and its topic."""
    return "departures-" + library.name.lower().replace(",", "").replace(" ", "-")


class Play:
    """One group, whose members depart."""

    def __init__(self, broker: Broker, library: Library, running: ExitStack) -> None:
        self._broker, self._library, self._running = broker, library, running
        self._group = group_of(library)
        self._number = 0
        self.truth = Truth({}, [])
        self._stays = self._member("stays")

    def _member(self, name: str, instance_id: str | None = None, *, is_late: bool = False) -> Member:
        return self._running.enter_context(self._library.start(self._broker, self._group, name, instance_id, is_late))

    def _wait(self, *members: Member) -> None:
        wait_until_owned([self._stays, *members], self._group)

    def depart(self, kind: Kind) -> None:
        """Have a member depart in one way, and wait until the one that stays has all."""
        self._number += 1
        sys.stderr.write(f"{time.strftime('%T')} {self._group}: {kind}\n")
        name = f"m{self._number}"
        instance_id = name if kind == "static restart" else None
        member = self._member(name, instance_id, is_late=kind == "polls too late")
        others = [self._member(f"{name}-b")] if kind == "host is lost" else []
        self._wait(member, *others)
        # What is measured is how long ago the last commit was: three are made.
        time.sleep(3 * _COMMIT_MS / 1_000)
        for one in (member, *others):
            self.truth.departed[one.member_id or ""] = kind
        if self._library.is_slow:
            self._stays.stop_polling()
        getattr(self, f"_{kind.replace(' ', '_')}")(member, others, name)
        if self._library.is_slow:
            time.sleep(1.5 * _SESSION_MS / 1_000)  # this member is as late as that
            self._stays.poll_again()
        self._wait()

    def _leaves(self, member: Member, _others: Sequence[Member], _name: str) -> None:
        member.stop()

    def _is_killed(self, member: Member, others: Sequence[Member], _name: str) -> None:
        for one in (member, *others):
            one.kill()

    _host_is_lost = _is_killed

    def _hangs_briefly(self, member: Member, _others: Sequence[Member], _name: str) -> None:
        member.freeze()
        time.sleep(_SESSION_MS / 4 / 1_000)
        member.thaw()
        time.sleep(3 * _COMMIT_MS / 1_000)
        self._wait(member)
        member.stop()

    def _hangs(self, member: Member, _others: Sequence[Member], _name: str) -> None:
        member.freeze()
        self._wait()
        member.thaw()
        self._wait(member)
        self.truth.back.append(member.member_id or "")
        member.stop()

    def _polls_too_late(self, member: Member, _others: Sequence[Member], _name: str) -> None:
        member.stop_polling()
        self._wait()
        member.kill()

    def _deploy(self, member: Member, _others: Sequence[Member], name: str) -> None:
        member.stop()
        successor = self._member(name)
        self._wait(successor)
        successor.stop()

    def _static_restart(self, member: Member, _others: Sequence[Member], name: str) -> None:
        member.stop()
        successor = self._member(name, name)
        self._wait(successor)
        successor.kill()  # and the group waits for it


def play(broker: Broker, library: Library, rounds: int) -> Truth:
    """Return what happened to a group's members."""
    with ExitStack() as running:
        group = Play(broker, library, running)
        for _ in range(rounds):
            for kind in library.kinds:
                group.depart(kind)
        return group.truth


def wait_until_owned(members: Sequence[Member], group: str) -> None:
    """Wait until members have all partitions, each some; those of the new protocol need not report the same epoch."""

    def are_owned() -> bool:
        held = sorted(one for member in members for one in member.owned)
        return all(member.owned for member in members) and held == sorted(partitions(group, _PARTITIONS))

    wait_until(members, are_owned)


@contextmanager
def messages(broker: Broker, topics: Sequence[str]) -> Iterator[None]:
    """Send to each partition all the time: libraries commit what they have read."""
    over = threading.Event()

    def send() -> None:
        producer = Producer(broker.client_settings())
        while not over.wait(_SEND_EVERY_S):
            for topic in topics:
                for number in range(_PARTITIONS):
                    producer.produce(topic, b"x", partition=number)
            producer.poll(0)
        producer.flush(10)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def started(broker: Broker, folder: Path, log: Path | None) -> Running:
    """Follow a broker from now on."""
    beside = [] if log is None else ["--kafka-log", str(log)]
    command = ["collect", "--kafka", broker.bootstrap, *beside, "--cluster", "c", "--out", str(folder)]
    return Running(command, folder.with_suffix(".txt"))


def causes(collector: Running, folder: Path) -> list[Trigger]:
    """Return the causes of all generations, in their order."""
    collector.signal(signal.SIGTERM)
    ended = collector.wait()
    if ended.exit_code:
        raise RuntimeError(ended.stderr)
    run = CoreRun(core_config())
    now = int(time.time() * 1_000)
    run.batch(now, [line for file in sorted(folder.glob("*.jsonl")) for line in file.read_bytes().splitlines()])
    run.flush(now)
    return [one for row in run.rebalances for one in row.triggers]


def main(rounds: int, wanted: Sequence[str]) -> None:
    """Play all groups beside each other and print the table."""
    libraries = [one for one in LIBRARIES if not wanted or one.name in wanted]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with kafka_41(folder / "broker", _BROKER) as broker, ThreadPoolExecutor(len(libraries)) as pool:
            for library in libraries:
                create_topic(broker, group_of(library), _PARTITIONS)
            running = {
                name: started(broker, folder / name, log)
                for name, log in (("records", None), ("log", broker.server.log))
            }
            time.sleep(_LAST_READ_S)  # a collector knows topics before their groups rebalance
            with messages(broker, [group_of(one) for one in libraries]):
                playing = [pool.submit(play, broker, one, rounds) for one in libraries]
                truths = [one.result() for one in playing]
                time.sleep(_LAST_READ_S)
            found = {name: causes(collector, folder / name) for name, collector in running.items()}
    print("| group | a member | read | right | wrong | open | back |\n|---|---|---|---|---|---|---|")  # noqa: T201
    for library, truth in zip(libraries, truths, strict=True):
        for kind in library.kinds:
            _report_wrong(library, truth, kind, found)
            for read, triggers in found.items():
                print(f"| {library.name} | {kind} | {read} | {_cells(library, truth, kind, triggers)} |")  # noqa: T201


def _report_wrong(library: Library, truth: Truth, kind: Kind, found: Mapping[str, Sequence[Trigger]]) -> None:
    """Write on standard error what was wrong, with its evidence."""
    for read, triggers in found.items():
        for member_id in (one for one, true in truth.departed.items() if true == kind):
            if _verdict(member_id, library.true_cause(kind), triggers) == "wrong":
                causes_of = [(one.kind, one.detail) for one in triggers if one.member_id == member_id]
                sys.stderr.write(f"wrong: {library.name}, {kind}, {read}: {causes_of}\n")


def _cells(library: Library, truth: Truth, kind: Kind, triggers: Sequence[Trigger]) -> str:
    members = [one for one, true in truth.departed.items() if true == kind]
    counts = Counter(_verdict(one, library.true_cause(kind), triggers) for one in members)
    back = [one for one in triggers if one.kind == "member_joined" and "it hung" in (one.detail or "")]
    named = f"{sum(one.member_id in truth.back for one in back)} of {len(truth.back)}" if kind == "hangs" else ""
    return " | ".join([*(str(counts[verdict]) for verdict in ("right", "wrong", "open")), named])


def _verdict(member_id: str, true: str | None, triggers: Sequence[Trigger]) -> str:
    departed = [one for one in triggers if one.member_id == member_id and one.kind in _DEPARTURES]
    if true is None:
        # It departs only when its play is over: by itself, or under another id.
        return "right" if all(one.kind != "session_expired" for one in departed) else "wrong"
    if not departed or departed[0].kind == "member_gone":
        return "open"
    return "right" if departed[0].kind == true else "wrong"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2:])
