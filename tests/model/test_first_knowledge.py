"""A group is of the system that its events name, whatever it is first known by, in whatever order, cut or export."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.core_config import core_config
from tests.model.times import BATCH_MS, T0, Event
from tests.simulation.core_run import CoreRun
from udfs.model.journal import GroupChanged

DEFAULTS = {"kafka": "kafka.range", "rocketmq": "rocketmq.AVG", "metaq": "metaq.default"}


def event(system: str, at: int, kind: str, **fields: Any) -> Event:
    common = {"schema_version": 1, "event_time": T0 + at, "system": system, "cluster": "c"}
    return {**common, "type": kind, **fields}


def commit(system: str, at: int) -> Event:
    place = {} if system == "kafka" else {"broker": "b"}
    return event(system, at, "progress", group="g", queues=[{"topic": "t", "queue_id": 0, "offset": 5, **place}])


def clock(system: str, at: int) -> Event:
    return event(system, at, "clock")


def join(system: str, at: int, **fields: Any) -> Event:
    return event(system, at, "member_joined", group="g", member_id="a", subscriptions=["t"], **fields)


def batch(run: CoreRun, *events: Event) -> None:
    run.batch(BATCH_MS, [json.dumps(sent).encode() for sent in events])


def decided(run: CoreRun) -> list[tuple[str, str | None]]:
    """Return system and strategy of every rebalance."""
    run.flush(BATCH_MS + 1)
    return [(row.system, row.strategy) for row in run.rebalances]


def listed(run: CoreRun) -> list[str]:
    """Return the system of every row of group g."""
    return [
        change.body.system for change in run.changes if isinstance(change.body, GroupChanged) and change.group_id == "g"
    ]


@pytest.mark.parametrize("system", DEFAULTS)
@pytest.mark.parametrize("clock_at", [1, 9_000], ids=["the-commit-waits", "the-commit-is-due"])
@pytest.mark.parametrize("moved_to", [None, 3])
def test_a_group_that_is_first_known_by_a_commit(system: str, clock_at: int, moved_to: int | None) -> None:
    run = CoreRun(core_config(shards=2))
    batch(run, commit(system, 0))
    batch(run, clock(system, clock_at))
    if moved_to is not None:
        run.move(moved_to, BATCH_MS)
    batch(run, event(system, 20_000, "topic_queues", topic="t", queue_count=2), join(system, 21_000))
    assert decided(run) == [(system, DEFAULTS[system])]
    assert set(listed(run)) == {system}


@pytest.mark.parametrize("system", DEFAULTS)
@pytest.mark.parametrize(
    "first",
    [
        lambda system: event(system, 0, "heartbeat", group="g", member_id="a"),
        lambda system: event(system, 0, "queue_ends", topic="t", queues=[{"queue_id": 0, "end_offset": 5}]),
        lambda system: event(system, 0, "topic_queues", topic="t", queue_count=2),
        lambda system: event(system, 0, "group_settings", group="g", mode="clustering"),
        lambda system: event(system, 0, "assignment_reported", group="g", member_id="a", queues=[]),
        lambda system: event(system, 0, "member_left", group="g", member_id="a"),
        lambda system: clock(system, 0),
    ],
    ids=["heartbeat", "ends", "topic", "settings", "report", "leave", "clock"],
)
def test_a_cluster_that_is_first_known_by_anything_else(system: str, first: Any) -> None:
    run = CoreRun(core_config(shards=2))
    batch(run, first(system))
    batch(run, clock(system, 9_000))
    run.move(3, BATCH_MS)
    batch(run, commit(system, 10_000), clock(system, 15_000))
    run.move(1, BATCH_MS)
    batch(run, join(system, 21_000))
    assert {found for found, _ in decided(run)} == {system}
    assert run.rebalances[-1].strategy == DEFAULTS[system]


def test_an_event_that_names_another_system_corrects_the_system_and_the_assignment() -> None:
    run = CoreRun(core_config(shards=1))
    batch(run, event("kafka", 0, "topic_queues", topic="t", queue_count=2), join("kafka", 1_000), clock("kafka", 9_000))
    batch(run, event("rocketmq", 10_000, "heartbeat", group="g", member_id="a", subscriptions=["t"]))
    batch(run, clock("rocketmq", 20_000))
    assert decided(run) == [("kafka", "kafka.range"), ("rocketmq", "rocketmq.AVG")]
    [cause] = run.rebalances[-1].triggers
    assert (cause.kind, cause.detail) == ("strategy_changed", "system kafka -> rocketmq")
    assert listed(run)[-1] == "rocketmq"


def test_groups_of_two_systems_in_one_cluster_keep_their_own() -> None:
    run = CoreRun(core_config(shards=1))
    batch(run, commit("metaq", 0), event("kafka", 0, "heartbeat", group="h", member_id="z"), clock("kafka", 9_000))
    run.move(2, BATCH_MS)
    batch(run, join("metaq", 21_000))
    assert ("metaq", "metaq.default") in decided(run)
    assert listed(run)[0] == "metaq"
