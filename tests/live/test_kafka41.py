"""The whole job beside a real Kafka 4.1 broker and real consumers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.crash.churn_truth import read_truth
from tests.job.commands import ManyRuns
from tests.kit.brokers import Broker, kafka_41
from tests.kit.members import Member, wait_until_assigned
from tests.kit.topics import create_topic, delete_group
from tests.live.checks import check_story
from tests.live.job import RunningJob, running_job
from tests.live.story import (
    cooperative_members,
    dynamic_members,
    mixed_members,
    partitions,
    static_members,
    sticky_members,
)

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]


def test_each_generation_is_one_row_with_its_cause(
    kafka41: Broker, new_member: Callable[..., Member], runs: ManyRuns, tmp_path: Path
) -> None:
    plays = {
        "dynamic": dynamic_members,
        "static": static_members,
        "cooperative": cooperative_members,
        "mixed": mixed_members,
        "sticky": sticky_members,
    }
    # The stories run side by side, because they mostly wait.
    with running_job(runs, kafka41, tmp_path) as job, ThreadPoolExecutor() as pool:
        playing = [pool.submit(play, kafka41, group, new_member) for group, play in plays.items()]
        stories = [story.result() for story in playing]
        for story in stories:
            job.wait_for_generation(story.group, story.steps[-1].generation)
        delete_group(kafka41, "dynamic")
        job.wait_for(lambda: "dynamic" not in _groups(job) >= plays.keys() - {"dynamic"}, "the deletion of a group")
        assert job.stop() == 0
    for story in stories:
        check_story(job, story)


def _groups(job: RunningJob) -> set[str]:
    return {row["group_id"] for row in job.rows("groups")}


def test_a_broker_that_stops_and_comes_back_is_survived_and_nothing_is_missed(
    new_member: Callable[..., Member], runs: ManyRuns, tmp_path: Path
) -> None:
    # Spark's reader gives up soon; its default is a minute.
    impatient = ("--kafka-option", "default.api.timeout.ms=4000", "--kafka-option", "request.timeout.ms=3000")
    with kafka_41(tmp_path / "broker") as broker, running_job(runs, broker, tmp_path / "job", more=impatient) as job:
        create_topic(broker, "orders", 2)
        first = new_member(broker, "billing", ["orders"], client_id="a", session_timeout_ms=30_000)
        wait_until_assigned([first], partitions("orders", 2))
        job.wait_for_generation("billing", 1)

        # Spark's reader either waits for the broker, or fails and is started again.
        broker.stop()
        job.wait_for(lambda: '"cluster away"' in job.stderr(), "the collector's notice")
        broker.start()

        second = new_member(broker, "billing", ["orders"], client_id="b", session_timeout_ms=30_000)
        generation = wait_until_assigned([first, second], partitions("orders", 2))
        assert generation is not None
        job.wait_for_generation("billing", generation)
        job.wait_for(lambda: job.stderr().count('"cluster connected"') == 2, "the collector's return")
        # The coordinator's restart is not a cause, and no member expired. On a busy machine the first member may rejoin
        # by itself, even before it has assigned.
        rows = job.generations("billing")
        held = {report.generation for member in (first, second) for report in member.assignments} - {None}
        recorded = {written.number for written in read_truth(broker, ["billing"])["billing"].generations}
        assert held | {1, generation} <= rows.keys() == recorded
        assert {rows[1]["trigger"], rows[generation]["trigger"]} == {"group_created", "member_joined"}
        kinds = {trigger["kind"] for row in rows.values() for trigger in row["triggers"]}
        assert kinds <= {"group_created", "member_joined", "unexplained"}
        # Topics may get metadata after their first generation: then the audit comes with that.
        job.wait_for(lambda: all(map(job.agrees, job.generations("billing").values())), "all agree")

        broker.stop()
        job.wait_for(lambda: job.stderr().count('"cluster away"') == 2, "the collector's second notice")
        assert job.stop() == 0
