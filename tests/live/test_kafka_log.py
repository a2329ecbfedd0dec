"""Coordinators' log lines, beside their records: how members departed, and which were fenced."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.core_config import core_config
from tests.job.commands import ManyRuns, Running
from tests.kit.brokers import Broker
from tests.kit.members import Member, wait_until, wait_until_assigned
from tests.kit.topics import create_topic
from tests.live.job import CLUSTER, running_job
from tests.live.story import partitions, wait_for_commits
from tests.simulation.core_run import CoreRun
from udfs.model.journal import FindingOpened, MemberClosed, Rebalance

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]


def collected(broker: Broker, folder: Path) -> CoreRun:
    """Return what the core decides of the broker's records and log."""
    log = ["--kafka-log", str(broker.server.log)]
    command = ["collect", "--kafka", broker.bootstrap, *log, "--cluster", "c", "--out", str(folder), "--once"]
    running = Running(command, folder.with_suffix(".txt"))
    try:
        ended = running.wait()
    finally:
        running.kill()
    assert ended.exit_code == 0, ended.stderr
    assert '"unknown": 0' in ended.stderr, ended.stderr
    lines = [line for file in sorted(folder.glob("*.jsonl")) for line in file.read_bytes().splitlines()]
    run = CoreRun(core_config())
    now = int(time.time() * 1_000)
    run.batch(now, lines)
    run.flush(now)
    return run


def causes(rows: list[Rebalance], group: str) -> list[tuple[str, str | None]]:
    """Return the main cause of each generation, and its detail."""
    mine = sorted((row for row in rows if row.group_id == group), key=lambda row: row.generation)
    return [(row.triggers[0].kind, row.triggers[0].detail) for row in mine]


def test_the_log_reports_how_each_member_departed(
    each_kafka: Broker, new_member: Callable[..., Member], tmp_path: Path
) -> None:
    check_departures(each_kafka, new_member, tmp_path)


def check_departures(broker: Broker, new_member: Callable[..., Member], folder: Path) -> None:
    """Let members be killed and leave, and compare what is reported of it."""
    group = "logged"
    create_topic(broker, group, 4)
    all_of_it = partitions(group, 4)
    a = new_member(broker, group, [group], client_id="a")
    b = new_member(broker, group, [group], client_id="b")
    wait_until_assigned([a, b], all_of_it)
    b.kill()
    wait_until_assigned([a], all_of_it)
    c = new_member(broker, group, [group], client_id="c")
    wait_until_assigned([a, c], all_of_it)
    wait_for_commits(broker, group, all_of_it)
    c.stop()
    wait_until_assigned([a], all_of_it)

    run = collected(broker, folder / "out")
    found = causes(run.rebalances, group)
    assert ("session_expired", "broker log: heartbeat expiration") in found
    last = "broker log: LeaveGroup; client reason: the consumer is being closed"
    # Kafka 1.0 logs an expiry and not a leave: there commits up to the end show it.
    assert found[-1] == ("member_left", last) if broker.version != "1.0.2" else found[-1][0] == "member_left"
    rows = [row for row in run.rebalances if row.group_id == group]
    for row in rows:
        assert row.completed_at == row.event_time
        assert (row.began_at or 0) <= (row.joined_at or 0) <= row.completed_at
        assert row.began_at


def test_static_members_restart_without_a_rebalance_and_duplicate_ids_are_found(
    kafka41: Broker, new_member: Callable[..., Member], tmp_path: Path
) -> None:
    group = "logged-static"
    create_topic(kafka41, group, 4)
    how = {"session_timeout_ms": 30_000}
    other = new_member(kafka41, group, [group], client_id="o", instance_id="other", **how)
    first = new_member(kafka41, group, [group], client_id="s", instance_id="one", **how)
    wait_until_assigned([other, first], partitions(group, 4))
    generation, owned = first.generation, first.owned

    ids = [first.member_id]
    for _ in range(2):  # ids that follow one another fast
        first.stop()
        first = new_member(kafka41, group, [group], client_id="s", instance_id="one", **how)
        wait_until([first], lambda: first.owned == owned)  # noqa: B023 - waited for here
        ids.append(first.member_id)
    second = new_member(kafka41, group, [group], client_id="t", instance_id="one", **how)
    wait_until([second], lambda: second.owned == owned)
    ids.append(second.member_id)
    deadline = time.monotonic() + 60
    while not first.has_ended:
        assert time.monotonic() < deadline, first.describe()
        time.sleep(0.1)
    assert second.generation == generation

    run = collected(kafka41, tmp_path / "out")
    rows = [row for row in run.rebalances if row.group_id == group]
    assert max(row.generation for row in rows) == generation
    bodies = [change.body for change in run.changes if change.group_id == group]
    replaced = [body.member_id for body in bodies if isinstance(body, MemberClosed) and body.left_reason == "replaced"]
    assert replaced == ids[:-1]
    assert len(set(ids)) == 4
    findings = [body for body in bodies if isinstance(body, FindingOpened) and body.finding == "duplicate_instance"]
    assert len(findings) == 1


@contextmanager
def read_by_the_job(broker: Broker, _: Path) -> Iterator[Sequence[str]]:
    """Have the job read the log itself; return the options with which it does."""
    yield ("--kafka-log", str(broker.server.log))


@contextmanager
def sent_from_its_host(broker: Broker, folder: Path) -> Iterator[Sequence[str]]:
    """Have a collector send the log's lines to a topic, as one on each broker's host does."""
    create_topic(broker, "coordinator-logs", 1)
    log = ["--kafka-log", str(broker.server.log), "--out", f"kafka:{broker.bootstrap}/coordinator-logs"]
    collector = Running(
        ["collect", *log, "--cluster", CLUSTER, "--checkpoint", str(folder / "positions")], folder / "collector.txt"
    )
    try:
        yield ("--kafka-events", "coordinator-logs", "--allowed-lateness", "5s")
    finally:
        collector.kill()


@pytest.mark.spark
@pytest.mark.parametrize("source", [read_by_the_job, sent_from_its_host])
def test_a_job_distinguishes_a_leave_a_kill_and_a_poll_timeout(
    kafka41: Broker,
    new_member: Callable[..., Member],
    runs: ManyRuns,
    tmp_path: Path,
    source: Callable[[Broker, Path], AbstractContextManager[Sequence[str]]],
) -> None:
    group = f"logged-{source.__name__}"
    create_topic(kafka41, group, 4)
    all_of_it = partitions(group, 4)
    with source(kafka41, tmp_path) as log, running_job(runs, kafka41, tmp_path, more=log) as job:
        stays = new_member(kafka41, group, [group], client_id="stays")
        wait_until_assigned([stays], all_of_it)
        ends: dict[str, tuple[str, str]] = {}
        generation = None
        for how in ("leaves", "is-killed", "polls-too-late"):
            late = {"max.poll.interval.ms": "2000"} if how == "polls-too-late" else {}
            member = new_member(kafka41, group, [group], client_id=how, settings=late)
            wait_until_assigned([stays, member], all_of_it)
            member_id = member.member_id or ""
            {"leaves": member.stop, "is-killed": member.kill, "polls-too-late": member.stop_polling}[how]()
            generation = wait_until_assigned([stays], all_of_it)
            ends[member_id] = DEPARTURES[how]
            job.wait_for_generation(group, generation or 0)
        found = {
            cause["member_id"]: (cause["kind"], cause["detail"])
            for row in job.generations(group).values()
            for cause in row["triggers"]
            if cause["member_id"] in ends and cause["kind"] != "member_joined"
        }
        assert job.stop() == 0
    assert found == ends
    if source is read_by_the_job:
        assert '"unknown": 0' in job.stderr()


DEPARTURES = {
    "leaves": ("member_left", "broker log: LeaveGroup; client reason: the consumer is being closed"),
    "is-killed": ("session_expired", "broker log: heartbeat expiration"),
    "polls-too-late": ("member_left", "broker log: LeaveGroup; client reason: consumer poll timeout has expired."),
}
