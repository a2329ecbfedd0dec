"""How often is a departure's cause right? Leaves and kills of real consumers, and what the monitor makes of them.

    python -m tests.live.departures [ROUNDS]

In each round and group one of two members leaves, later it is killed. Then the broker's records are read twice: alone,
and with the log beside them. A table is printed of how often the cause was right, wrong or left open.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.core_config import core_config
from tests.job.commands import Running
from tests.kit.brokers import Broker, kafka_41
from tests.kit.java_members import wait_until
from tests.kit.members import Member, start_member
from tests.kit.topics import create_topic
from tests.live.story import partitions
from tests.simulation.core_run import CoreRun

_SESSION_MS = 6_000
# As the client's defaults are to each other: 45 s and 5 s.
_COMMIT_MS = 700
_NEW_PROTOCOL = ("group.protocol", "consumer")
# Of members of the new protocol, as brokers have them unless they are set.
_DEFAULTS = {"group.consumer.session.timeout.ms": "45000", "group.consumer.heartbeat.interval.ms": "5000"}
_ENDS = {"member_left": "left", "session_expired": "killed"}


class Regime(NamedTuple):
    """How the members of one group behave."""

    name: str
    strategy: str = "range"
    settings: tuple[tuple[str, str], ...] = ()
    is_slow: bool = False  # the member that stays polls again only after a session timeout
    commit_ms: int = _COMMIT_MS


REGIMES = (
    Regime("range, commits every 700 ms"),
    Regime("cooperative-sticky, commits every 700 ms", "cooperative-sticky"),
    Regime("range, never commits", settings=(("enable.auto.commit", "false"),)),
    Regime("range, the other member rejoins late", is_slow=True),
    Regime("new protocol, commits every 5 s", settings=(_NEW_PROTOCOL,), commit_ms=5_000),
    Regime("new protocol, never commits", settings=(_NEW_PROTOCOL, ("enable.auto.commit", "false"))),
)


def topic_of(number: int) -> str:
    """Return the name of a group and its topic."""
    return f"departures-{number}"


def play(broker: Broker, number: int, regime: Regime, rounds: int) -> dict[str, str]:
    """Return how each member departed, by its id."""
    group = topic_of(number)
    truth: dict[str, str] = {}
    with ExitStack() as running:

        def member(name: str):
            return running.enter_context(
                start_member(
                    broker,
                    group,
                    [group],
                    client_id=name,
                    strategies=(regime.strategy,),
                    session_timeout_ms=_SESSION_MS,
                    commit_interval_ms=regime.commit_ms,
                    settings=dict(regime.settings),
                )
            )

        stays = member("stays")
        for lap in range(2 * rounds):
            leaver = member("goes")
            wait_until_owned([stays, leaver], group)
            # What is measured is how long ago the last commit was: three are made.
            time.sleep(3 * regime.commit_ms / 1_000)
            how = "killed" if lap % 2 else "left"
            truth[leaver.member_id or ""] = how
            if regime.is_slow:
                stays.stop_polling()
            leaver.kill() if how == "killed" else leaver.stop()
            if regime.is_slow:
                time.sleep(1.5 * _SESSION_MS / 1_000)  # this member is as late as that
                stays.poll_again()
            wait_until_owned([stays], group)
    return truth


def wait_until_owned(members: Sequence[Member], group: str) -> None:
    """Wait until members have all partitions, each some; those of the new protocol need not report the same epoch."""

    def are_owned() -> bool:
        held = sorted(one for member in members for one in member.owned)
        return all(member.owned for member in members) and held == sorted(partitions(group, 4))

    wait_until(members, are_owned)


def causes(broker: Broker, folder: Path, log: Path | None) -> dict[str, str]:
    """Return the cause of each departure, by member."""
    beside = [] if log is None else ["--kafka-log", str(log)]
    command = ["collect", "--kafka", broker.bootstrap, *beside, "--cluster", "c", "--out", str(folder), "--once"]
    ended = Running(command, folder.with_suffix(".txt")).wait()
    if ended.exit_code:
        raise RuntimeError(ended.stderr)
    run = CoreRun(core_config())
    now = int(time.time() * 1_000)
    run.batch(now, [line for file in sorted(folder.glob("*.jsonl")) for line in file.read_bytes().splitlines()])
    run.flush(now)
    kinds = (*_ENDS, "member_gone")
    found = [one for row in run.rebalances for one in row.triggers if one.kind in kinds]
    return {one.member_id or "": one.kind for one in found}


def main(rounds: int) -> None:
    """Play all regimes beside each other and print the table."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with kafka_41(folder / "broker", _DEFAULTS) as broker, ThreadPoolExecutor(len(REGIMES)) as pool:
            for number in range(len(REGIMES)):
                create_topic(broker, topic_of(number), 4)
            # A collector that follows a cluster knows its topics before their groups rebalance.
            for name in ("records", "log"):
                causes(broker, folder / name, None)
            playing = [pool.submit(play, broker, number, one, rounds) for number, one in enumerate(REGIMES)]
            truths = [one.result() for one in playing]
            found = {
                "records": causes(broker, folder / "records", None),
                "with the log": causes(broker, folder / "log", broker.server.log),
            }
    print("| group | it | read | right | wrong | left open |\n|---|---|---|---|---|---|")  # noqa: T201
    for regime, truth in zip(REGIMES, truths, strict=True):
        for how in ("left", "killed"):
            for read, kinds in found.items():
                counts = Counter(_verdict(kinds.get(one), how) for one, true in truth.items() if true == how)
                cells = " | ".join(str(counts[verdict]) for verdict in ("right", "wrong", "open"))
                print(f"| {regime.name} | {how} | {read} | {cells} |")  # noqa: T201


def _verdict(kind: str | None, how: str) -> str:
    if kind not in _ENDS:
        return "open"
    return "right" if _ENDS[kind] == how else "wrong"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
