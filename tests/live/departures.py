"""How often is a departure's cause right? Real consumers depart in every way, and what the monitor makes of it.

    python -m tests.live.departures [ROUNDS] [LIBRARY...] [--minutes MOST] [--light-groups N] [--keep FOLDER]
    python -m tests.live.departure_verdicts FOLDER...

In each round and group a member departs in each way of ``Kind``, beside one that stays; static members are in a group
of their own. Two collectors follow the broker meanwhile: one reads its records alone, one the log beside them. Tables
are printed of how often the cause was right, wrong or left open. What was collected is kept if wanted; the second
command prints the tables of runs that were kept, as today's core decides them.
"""

from __future__ import annotations

import argparse
import dataclasses
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.job.commands import Running
from tests.kit.brokers import Broker, kafka_41
from tests.kit.java_members import wait_until
from tests.kit.light_members import start_light_member
from tests.kit.members import Member, start_member
from tests.kit.processes import free_port
from tests.kit.python_processes import start_python_member
from tests.kit.relay import relay
from tests.kit.topics import create_topic, set_session_timeout
from tests.live.departure_verdicts import KINDS, SESSION_MS, Departed, Kind, Truth, print_tables, read
from tests.live.repeated import messages
from tests.live.story import partitions

_STATIC_SESSION_MS = 45_000  # a process takes a while to start on a busy machine
_POLL_INTERVAL_MS = 15_000
_COMMIT_MS = 700
_COMMITS = 6  # each member commits this often before it departs
_BROKER = {"group.consumer.session.timeout.ms": str(SESSION_MS), "group.consumer.heartbeat.interval.ms": "1000"}
_PARTITIONS = 4
_SEND_EVERY_S = 0.1
_LAST_READ_S = 15  # so that the collectors have read the last departure, and written a clock
_OTHER_HOST = "127.0.0.2"

Start = Callable[[Broker, str, str, str | None, bool], Member]


class Library(NamedTuple):
    """The members of a group.

    Attributes:
        start: Of a broker, a group, a client id, an instance id, and whether it may not poll for long.
        kinds: How its members depart. is_slow: The one that stays rejoins only after a session timeout.
        leaves_late: One that polls too late leaves; else it sends no heartbeat any more, and expires.
    """

    name: str
    start: Start
    kinds: tuple[Kind, ...] = KINDS
    is_slow: bool = False
    leaves_late: bool = True


def _java(*, protocol: str = "classic", **more: str) -> Start:
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
            session_timeout_ms=_STATIC_SESSION_MS if instance_id else SESSION_MS,
            commit_interval_ms=_COMMIT_MS,
            settings=settings,
        )

    return start


def _librdkafka(*, protocol: str = "classic") -> Start:
    def start(broker: Broker, group: str, name: str, instance_id: str | None, is_late: bool) -> Member:
        settings = {"client.id": name, "auto.commit.interval.ms": str(_COMMIT_MS)}
        if protocol == "consumer":
            settings["group.protocol"] = protocol
        else:
            session_ms = _STATIC_SESSION_MS if instance_id else SESSION_MS
            settings |= {"session.timeout.ms": str(session_ms), "heartbeat.interval.ms": "500"}
        settings |= {"group.instance.id": instance_id} if instance_id else {}
        interval_ms = _POLL_INTERVAL_MS if is_late else 300_000
        return start_light_member(broker, group, [group], settings | {"max.poll.interval.ms": str(interval_ms)})

    return start


def _python(library: str) -> Start:
    def start(broker: Broker, group: str, name: str, instance_id: str | None, is_late: bool) -> Member:
        settings: dict[str, Any] = {
            "client_id": name,
            "session_timeout_ms": _STATIC_SESSION_MS if instance_id else SESSION_MS,
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


class Hosts(NamedTuple):
    """A broker, as clients of two hosts reach it."""

    here: Broker
    other: Broker


class Play:
    """One group, whose members depart."""

    def __init__(self, hosts: Hosts, library: Library, group: str, running: ExitStack) -> None:
        self._hosts, self._library, self._group, self._running = hosts, library, group, running
        self._number = 0
        self.truth = Truth([], [], [])
        self._stays = self._member("stays")
        self._static: Member | None = None

    def _member(
        self, name: str, instance_id: str | None = None, *, is_late: bool = False, is_elsewhere: bool = False
    ) -> Member:
        broker = self._hosts.other if is_elsewhere else self._hosts.here
        return self._running.enter_context(self._library.start(broker, self._group, name, instance_id, is_late))

    def _wait(self, *members: Member) -> None:
        wait_until_owned([self._stays, *members], self._group)

    def _departs(self, kind: Kind, *members: Member) -> list[str]:
        """Note that members depart, and return their ids."""
        causes: dict[Kind, str | None] = {"hangs briefly": None, "static restart": None}
        causes |= dict.fromkeys(("is killed", "hangs", "host is lost"), "session_expired")
        if kind == "polls too late" and not self._library.leaves_late:
            causes[kind] = "session_expired"
        ids = [member.member_id or "" for member in members]
        true = causes.get(kind, "member_left")
        self.truth.departed += [Departed(self._library.name, kind, member_id, true) for member_id in ids]
        return ids

    def depart(self, kind: Kind) -> None:
        """Have a member depart in one way, and wait until the one that stays has all."""
        self._number += 1
        sys.stderr.write(f"{time.strftime('%T')} {self._group}: {kind}\n")
        getattr(self, f"_{kind.replace(' ', '_')}")(f"m{self._number}")

    def _joined(self, name: str, *, number: int = 1, is_late: bool = False, is_elsewhere: bool = False) -> list[Member]:
        """Return members that have joined and committed for a while."""
        names = [name, *(f"{name}-{place}" for place in range(1, number))]
        members = [self._member(instance, is_late=is_late, is_elsewhere=is_elsewhere) for instance in names]
        self._wait(*members)
        time.sleep(_COMMITS * _COMMIT_MS / 1_000)
        if self._library.is_slow:
            self._stays.stop_polling()
        return members

    def _ends(self) -> None:
        """Wait until the member that stays has all; a slow one rejoins late."""
        if self._library.is_slow:
            time.sleep(1.5 * SESSION_MS / 1_000)
            self._stays.poll_again()
        self._wait()

    def _leaves(self, name: str) -> None:
        (member,) = self._joined(name)
        self._departs("leaves", member)
        member.stop()
        self._ends()

    def _is_killed(self, name: str) -> None:
        (member,) = self._joined(name, is_elsewhere=True)
        self._departs("is killed", member)
        member.kill()
        self._ends()

    def _host_is_lost(self, name: str) -> None:
        members = self._joined(name, number=2, is_elsewhere=True)
        self.truth.lost.append(self._departs("host is lost", *members))
        for member in members:
            member.freeze()
        for member in members:
            member.kill()
        self._ends()

    def _hangs_briefly(self, name: str) -> None:
        (member,) = self._joined(name)
        self._departs("hangs briefly", member)
        member.freeze()
        time.sleep(SESSION_MS / 4 / 1_000)
        member.thaw()
        time.sleep(_COMMITS * _COMMIT_MS / 1_000)
        self._wait(member)
        member.stop()
        self._ends()

    def _hangs(self, name: str) -> None:
        (member,) = self._joined(name)
        self._departs("hangs", member)
        former = member.member_id
        member.freeze()
        self._wait()
        member.thaw()
        # Until it learns that it has expired, it reports its old assignment. In the new protocol it keeps its id.
        wait_until([member], lambda: "new protocol" in self._library.name or member.member_id not in (former, ""))
        self._wait(member)
        self.truth.back.append(member.member_id or "")
        member.stop()
        self._ends()

    def _polls_too_late(self, name: str) -> None:
        (member,) = self._joined(name, is_late=True)
        self._departs("polls too late", member)
        member.stop_polling()
        self._wait()
        member.kill()

    def _deploy(self, name: str) -> None:
        """One member after the other is replaced."""
        former = self._joined(name, number=2)
        self._departs("deploy", *former)
        for place, member in enumerate(former):
            member.stop()
            former[place] = self._member(name if place == 0 else f"{name}-{place}")
            self._wait(*former)
        self.truth.restarted.append(former[-1].member_id or "")
        for member in former:
            member.stop()
        self._ends()

    def _static_restart(self, _name: str) -> None:
        if self._static is None:
            self._static = self._member("static", "static")
        self._wait(self._static)
        time.sleep(_COMMITS * _COMMIT_MS / 1_000)
        former, began = self._static, time.monotonic()
        former.stop()
        self._static = self._member("static", "static")
        self._wait(self._static)
        if time.monotonic() - began < _STATIC_SESSION_MS / 1_000:
            self._departs("static restart", former)
        else:
            sys.stderr.write(f"{self._group}: the restart took longer than a session, and does not count\n")


def play(hosts: Hosts, library: Library, group: str, kinds: Sequence[Kind], rounds: int, ends_at: float) -> Truth:
    """Return what happened to a group's members."""
    with ExitStack() as running:
        story = Play(hosts, library, group, running)
        try:
            for _ in range(rounds):
                for kind in kinds:
                    if time.monotonic() < ends_at:
                        story.depart(kind)
        except AssertionError as error:
            sys.stderr.write(f"{group} ends early: {error}\n")
        return story.truth


def wait_until_owned(members: Sequence[Member], group: str) -> None:
    """Wait until members have all partitions, each some; those of the new protocol need not report the same epoch."""

    def are_owned() -> bool:
        held = sorted(queue for member in members for queue in member.owned)
        return all(member.owned for member in members) and held == sorted(partitions(group, _PARTITIONS))

    wait_until(members, are_owned)


@contextmanager
def collected(broker: Broker, folder: Path, log: Path | None) -> Iterator[None]:
    """Follow a broker until the block is left."""
    beside = [] if log is None else ["--kafka-log", str(log)]
    command = ["collect", "--kafka", broker.bootstrap, *beside, "--cluster", "c", "--out", str(folder)]
    # No job reads this folder, and a run takes longer than unread files are kept.
    keeps_all = {"REBALANCE_MONITOR_EVENT_LOG__RETENTION_MS": "0"}
    collector = Running(command, folder.with_suffix(".txt"), environment=keeps_all)
    try:
        yield
        collector.signal(signal.SIGTERM)
        ended = collector.wait()
        if ended.exit_code:
            raise RuntimeError(ended.stderr)
    finally:
        collector.kill()


def record(libraries: Sequence[Library], rounds: int, minutes: float, folder: Path, light_groups: int = 1) -> None:
    """Play all groups beside each other, and write what was collected, and what is true, into a folder.

    Args:
        light_groups: How many groups of each library whose members are no JVMs.
    """
    groups: list[tuple[Library, str, tuple[Kind, ...]]] = []
    for library in libraries:
        name = "departures-" + library.name.lower().replace(",", "").replace(" ", "-")
        kinds: tuple[Kind, ...] = tuple(kind for kind in library.kinds if kind != "static restart")
        number = 1 if library.name.startswith("Java") else light_groups
        groups += [(library, f"{name}-{place}", kinds) for place in range(number)]
        if "static restart" in library.kinds:
            groups.append((library, f"{name}-static", ("static restart",)))
    ports, ends_at = (free_port(), free_port()), time.monotonic() + minutes * 60
    with ExitStack() as running:
        broker = running.enter_context(kafka_41(folder / "broker", _BROKER, relayed=ports))
        running.enter_context(relay(*ports, _OTHER_HOST))
        hosts = Hosts(broker, dataclasses.replace(broker, bootstrap=f"127.0.0.1:{ports[0]}"))
        for _, name, kinds in groups:
            create_topic(broker, name, _PARTITIONS)
            if kinds == ("static restart",):
                set_session_timeout(broker, name, _STATIC_SESSION_MS)
        running.enter_context(collected(broker, folder / "records", None))
        running.enter_context(collected(broker, folder / "log", broker.server.log))
        time.sleep(_LAST_READ_S)  # a collector knows topics before their groups rebalance
        with (
            messages(broker, [name for _, name, _ in groups], _PARTITIONS, _SEND_EVERY_S),
            ThreadPoolExecutor(len(groups)) as pool,
        ):
            playing = [
                pool.submit(play, hosts, played_library, name, kinds, rounds, ends_at)
                for played_library, name, kinds in groups
            ]
            truths = [future.result() for future in playing]
            time.sleep(_LAST_READ_S)
    Truth.of(truths).write(folder)


def main() -> None:
    """Play what the arguments say, and print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", nargs="?", type=int, default=5)
    parser.add_argument("libraries", nargs="*")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no departure after so many")
    parser.add_argument("--light-groups", type=int, default=1, help="of each library whose members are no JVMs")
    parser.add_argument("--keep", type=Path, help="an empty folder for what is collected")
    given = parser.parse_args()
    libraries = [candidate for candidate in LIBRARIES if not given.libraries or candidate.name in given.libraries]
    with tempfile.TemporaryDirectory() as place:
        folder = given.keep or Path(place)
        record(libraries, given.rounds, given.minutes, folder, given.light_groups)
        print_tables([read(folder)])


if __name__ == "__main__":
    main()
