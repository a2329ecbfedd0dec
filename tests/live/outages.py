"""Does the outage in a row contain the one that consumers noted themselves, and how wide is it?

    python -m tests.live.outages [CHANGES]

Members of several client libraries join, leave, are killed, hang, or come back as static ones, while messages come all
the time. Each notes when it got messages of which partition. The truth of one queue in one rebalance is the time from
the last message that anybody got before it to the first one after it. A table is printed.
"""

from __future__ import annotations

import bisect
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from tests.kit.brokers import Broker, kafka_41
from tests.kit.java_members import wait_until
from tests.kit.members import Member, start_member
from tests.kit.noting_members import start_noting_member
from tests.kit.topics import create_topic, set_session_timeout
from tests.live.collecting import collecting, run_of_folder
from tests.live.repeated import messages
from tests.simulation.core_run import CoreRun
from udfs.model.journal import MemberReplaced

_SESSION_MS = 6_000
_COMMIT_MS = 1_000
_PARTITIONS = 4
_MESSAGE_S = 0.02  # between two messages of a partition
_KINDS = ("leave", "kill", "hang", "static restart")
# Java's members can stop to poll, while their heartbeats go on: they leave after this time.
_KINDS_OF_JAVA = (*_KINDS, "poll timeout")
_MAX_POLL_MS = 8_000
_SETTLED_S = 2.5
SETTLED_S = 8.0  # of members of RocketMQ and MetaQ
_FOLLOWED_MS = 3_000  # within which members of RocketMQ and MetaQ have followed a change

Start = Callable[[Broker, str, str, str | None], Member]


class Reading(Protocol):
    """A member that reports of which queue messages came."""

    @property
    def reports(self) -> Sequence[Any]: ...


class Regime(NamedTuple):
    """Members of one library that share their queues in one way."""

    name: str
    start: Start
    is_new: bool = False  # of the new protocol
    kinds: Sequence[str] = _KINDS


class Checked(NamedTuple):
    """One queue in one rebalance: what the consumers noted, and what the row has, in ms."""

    kind: str
    truth: int
    least: int | None
    most: int | None

    @property
    def holds(self) -> bool:
        """Whether the truth lies within the bounds that are known."""
        return (self.least or 0) <= self.truth and (self.most is None or self.truth <= self.most)


def _java(strategy: str, **settings: str) -> Start:
    def start(broker: Broker, group: str, name: str, instance_id: str | None) -> Member:
        return start_member(
            broker,
            group,
            [group],
            client_id=name,
            instance_id=instance_id,
            strategies=(strategy,),
            session_timeout_ms=_SESSION_MS,
            commit_interval_ms=_COMMIT_MS,
            settings={"max.poll.interval.ms": str(_MAX_POLL_MS)}
            | {key.replace("_", "."): value for key, value in settings.items()},
        )

    return start


def _librdkafka(**settings: str) -> Start:
    def start(broker: Broker, group: str, name: str, instance_id: str | None) -> Member:
        named = {
            "client.id": name,
            "auto.commit.interval.ms": str(_COMMIT_MS),
            **({"group.instance.id": instance_id} if instance_id else {}),
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        if named.get("group.protocol") != "consumer":
            named |= {"session.timeout.ms": str(_SESSION_MS), "heartbeat.interval.ms": "1500"}
        return start_noting_member("librdkafka", broker, group, [group], named)

    return start


def _aiokafka(broker: Broker, group: str, name: str, instance_id: str | None) -> Member:
    named = {
        "client_id": name,
        "session_timeout_ms": str(_SESSION_MS),
        "heartbeat_interval_ms": "1500",
        "auto_commit_interval_ms": str(_COMMIT_MS),
        **({"group_instance_id": instance_id} if instance_id else {}),
    }
    return start_noting_member("aiokafka", broker, group, [group], named)


REGIMES = (
    Regime("librdkafka, range", _librdkafka(partition_assignment_strategy="range")),
    Regime("librdkafka, cooperative-sticky", _librdkafka(partition_assignment_strategy="cooperative-sticky")),
    Regime("librdkafka, new protocol", _librdkafka(group_protocol="consumer"), is_new=True),
    Regime("aiokafka, roundrobin", _aiokafka),
    Regime("Java, range", _java("range"), kinds=_KINDS_OF_JAVA),
    Regime("Java, cooperative-sticky", _java("cooperative-sticky"), kinds=_KINDS_OF_JAVA),
    Regime("Java, new protocol", _java("range", group_protocol="consumer"), is_new=True, kinds=_KINDS_OF_JAVA),
)


def group_of(number: int) -> str:
    """Return the name of a group and its topic."""
    return f"outages-{number}"


class Notes:
    """When anybody of a group got messages of each partition."""

    def __init__(self) -> None:
        self.members: list[Member] = []

    def times(self) -> dict[int, list[int]]:
        """Return the times by partition, ascending."""
        found: dict[int, list[int]] = {}
        for member in self.members:
            for report in member.reports:
                if report.event == "read":
                    for _, partition in report.changed:
                        found.setdefault(partition, []).append(report.at_ms)
        return {partition: sorted(times) for partition, times in found.items()}


def play(broker: Broker, number: int, regime: Regime, changes: int) -> tuple[Notes, list[tuple[int, str]]]:
    """Let members come and go; return what they noted, and what was done from when on."""
    group, notes, done = group_of(number), Notes(), list[tuple[int, str]]()
    with ExitStack() as running:

        def member(name: str, instance_id: str | None = None) -> Member:
            found = running.enter_context(regime.start(broker, group, name, instance_id))
            notes.members.append(found)
            return found

        def settle(members: Sequence[Member], kind: str) -> None:
            wait_until(members, lambda: all(_reads(reader) for reader in members) and _all_owned(members))
            time.sleep(_SETTLED_S)
            done.append((_now(), kind))

        stays = member("stays")
        settle([stays], "join")
        for change in range(changes):
            kind = regime.kinds[change % len(regime.kinds)]
            instance_id = f"static-{change}" if kind == "static restart" else None
            leaver = member("leaver", instance_id)
            settle([stays, leaver], kind)
            if kind == "leave":
                leaver.stop()
            elif kind == "hang":
                leaver.freeze()
            elif kind == "poll timeout":
                leaver.stop_polling()
            elif kind == "static restart" and regime.is_new:
                leaver.stop()  # its coordinator lets no other one have the id before it has said that it is away
            else:
                leaver.kill()
            if kind == "static restart":
                leaver = member("leaver", instance_id)
                wait_until([stays, leaver], lambda leaver=leaver: _reads(leaver) and _all_owned([stays, leaver]))
                time.sleep(_SETTLED_S)
                done.append((_now(), "static leave"))
                leaver.stop()
            settle([stays], "join")
            if kind in ("hang", "poll timeout"):
                leaver.kill()
    return notes, done


def _now() -> int:
    return time.time_ns() // 1_000_000


def _reads(member: Member) -> bool:
    reports = member.reports
    last = max((place for place, report in enumerate(reports) if report.event == "assigned"), default=len(reports))
    return any(report.event == "read" for report in reports[last:])


def _all_owned(members: Sequence[Member]) -> bool:
    held = sorted(partition for member in members for _, partition in member.owned)
    return held == list(range(_PARTITIONS))


def checked(run: CoreRun, number: int, notes: Notes, done: Sequence[tuple[int, str]]) -> list[Checked]:
    """Compare the outages of a group with what its members noted."""
    group, times = group_of(number), notes.times()
    rows = sorted(
        (rebalance for rebalance in run.rebalances if rebalance.group_id == group),
        key=lambda rebalance: rebalance.event_time,
    )
    ends = [rebalance.event_time for rebalance in rows[1:]] + [sys.maxsize]
    found: list[Checked] = []
    for row, until in zip(rows, ends, strict=True):
        for outage in row.outages:
            if outage.member_id is not None:
                found += _checked(outage, row.event_time, until, times, _kind_at(done, row.event_time))
    for change in run.changes:
        if change.group_id == group and isinstance(change.body, MemberReplaced):
            for outage in change.body.outages:
                found += _checked(outage, change.body.replaced_at, sys.maxsize, times, "static restart")
    return found


def _checked(outage, at: int, until: int, times: dict[int, list[int]], kind: str) -> list[Checked]:
    noted = times.get(outage.queue_id, [])
    place = bisect.bisect_left(noted, at)
    if not place or place == len(noted) or noted[place] >= until:
        return []  # nobody read it between this rebalance and the next one
    return [Checked(kind, noted[place] - noted[place - 1], outage.outage_min_ms, outage.outage_max_ms)]


def _kind_at(done: Sequence[tuple[int, str]], at: int) -> str:
    place = bisect.bisect_right([time for time, _ in done], at)
    return done[place - 1][1] if place else "join"


def checked_by_owner(run: CoreRun, group: str, members: Mapping[str, Sequence[Reading]]) -> list[Checked]:
    """Compare the outages of a group whose members change at times of their own: of each queue by both owners' notes.

    Args:
        members: By their ids, in whatever lives.
    """
    times: dict[tuple[str, object], list[int]] = {}
    for member_id, lives in members.items():
        for report in (report for life in lives for report in life.reports if report.queue is not None):
            times.setdefault((member_id, tuple(report.queue)), []).append(report.at_ms)
    rows = sorted(
        (rebalance for rebalance in run.rebalances if rebalance.group_id == group),
        key=lambda rebalance: rebalance.event_time,
    )
    found: list[Checked] = []
    for place, row in enumerate(rows):
        after = rows[place - 1].event_time + _FOLLOWED_MS if place else 0
        before = rows[place + 1].event_time if place + 1 < len(rows) else sys.maxsize
        for outage in row.outages:
            queue = (outage.topic, outage.broker, outage.queue_id)
            last = [at for at in times.get((outage.former_member_id or "", queue), ()) if at < before]
            first = [at for at in times.get((outage.member_id or "", queue), ()) if after <= at < before]
            if last and first:
                truth = max(0, min(first) - max(last))
                found.append(Checked(row.trigger, truth, outage.outage_min_ms, outage.outage_max_ms))
    return found


def measure(regimes: Sequence[Regime], changes: int, at_once: int = 2) -> dict[str, list[Checked]]:
    """Play regimes, some beside each other, and return the outages of each."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with kafka_41(folder / "broker", {}) as broker:
            topics = [group_of(number) for number in range(len(regimes))]
            for topic in topics:
                create_topic(broker, topic, _PARTITIONS)
                set_session_timeout(broker, topic, _SESSION_MS)
            with (
                collecting(broker, folder / "events"),
                messages(broker, topics, _PARTITIONS, _MESSAGE_S),
                ThreadPoolExecutor(at_once) as pool,
            ):
                playing = [pool.submit(play, broker, number, regime, changes) for number, regime in enumerate(regimes)]
                played = [future.result() for future in playing]
            run = run_of_folder(folder / "events")
    return {regime.name: checked(run, number, *played[number]) for number, regime in enumerate(regimes)}


class Departing(Protocol):
    """A member that can depart."""

    def stop(self) -> None: ...
    def kill(self) -> None: ...


_Departing = TypeVar("_Departing", bound=Departing)


def stop_and_kill(member: Callable[[str], _Departing], wait: Callable[[Sequence[_Departing]], None]) -> None:
    """Let one member stay, and another one come twice: it is stopped, then killed.

    Args:
        member: Starts one. wait: Returns once these share all there is.
    """
    stays = member("a")
    wait([stays])
    for is_killed in (False, True):
        time.sleep(SETTLED_S)
        other = member("b")
        wait([stays, other])
        time.sleep(SETTLED_S)
        other.kill() if is_killed else other.stop()
        wait([stays])
    time.sleep(SETTLED_S)


def check(found: Sequence[Checked], at_least: int) -> None:
    """Assert that the truth is within all bounds, and that bounds are there."""
    assert [outage for outage in found if not outage.holds] == []
    bounded = [outage.most - (outage.least or 0) for outage in found if outage.most is not None]
    assert len(bounded) >= at_least, found
    print(f"{len(found)} outages, {len(bounded)} bounded, median width {statistics.median(bounded)} ms")  # noqa: T201


def main(changes: int) -> None:
    """Measure all regimes and print the table."""
    found = measure(REGIMES, max(1, changes // (2 * len(REGIMES))))
    write = sys.stdout.write
    write("| members | change | queues | contained | without a bound | truth, median ms | width, median ms |\n")
    write("|---|---|---|---|---|---|---|\n")
    for name, outages in found.items():
        for kind in sorted({outage.kind for outage in outages}):
            some = [outage for outage in outages if outage.kind == kind]
            widths = [outage.most - (outage.least or 0) for outage in some if outage.most is not None]
            truth = round(statistics.median(outage.truth for outage in some))
            width = round(statistics.median(widths)) if widths else "-"
            held = sum(outage.holds for outage in some)
            write(f"| {name} | {kind} | {len(some)} | {held} | {len(some) - len(widths)} | {truth} | {width} |\n")
    for name, outages in found.items():
        for outage in outages:
            if not outage.holds:
                write(f"not contained: {name}: {outage}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
