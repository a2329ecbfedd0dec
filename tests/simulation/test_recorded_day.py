"""The same events give the same rows, whatever the code looks like; a checkpoint of the release before is continued."""

from __future__ import annotations

import json
import lzma

import msgspec
import pytest

from tests.simulation.core_run import CoreRun
from tests.simulation.recorded_day import FOLDER, HALF_MS, ROWS, RULES, batches, digests, play, tables_of
from udfs.model.journal import (
    TRIGGER_ORDER,
    Body,
    Change,
    FindingChanged,
    FindingClosed,
    FindingOpened,
    GroupChanged,
    Rebalance,
)
from udfs.model.spans import QueuesReassigned

# The states of all shards after half of the day, made by commit a863199: [cluster, shard, state].
FORMER_STATES = FOLDER / "states_of_the_release_before.msgpack.xz"
MORNING = [batch for batch in batches() if batch[0] < HALF_MS]
AFTERNOON = [batch for batch in batches() if batch[0] >= HALF_MS]


def play_morning() -> CoreRun:
    return play(CoreRun(RULES), MORNING, flush=False)


@pytest.fixture(scope="module")
def day() -> tuple[CoreRun, int, int, int]:
    """Return the whole day, and how many rebalances, changes and rejected events its first half has."""
    run = play_morning()
    half = len(run.rebalances), len(run.changes), len(run.rejected)
    return play(run, AFTERNOON), *half


def test_the_rows_of_each_table_are_those_that_were_reviewed(day: tuple[CoreRun, int, int, int]) -> None:
    expected, found = json.loads(ROWS.read_text()), digests(tables_of(day[0]))
    differing = sorted(
        f"{name}: {place}: {expected.get(name, {}).get(place)} -> {found.get(name, {}).get(place)}"
        for name in expected.keys() | found.keys()
        for place in expected.get(name, {}).keys() | found.get(name, {}).keys()
        if expected.get(name, {}).get(place) != found.get(name, {}).get(place)
    )
    assert differing == [], "rows and digest; compare them with `python -m tests.simulation.recorded_day FOLDER`"


def test_the_day_has_all_that_a_rebalance_is_made_of(day: tuple[CoreRun, int, int, int]) -> None:
    rows = day[0].rebalances
    assert {row.system for row in rows} == {"kafka", "rocketmq", "metaq"}
    assert {row.generation_source for row in rows} == {"reported", "counted"}
    assert {cause.kind for row in rows for cause in row.triggers} == set(TRIGGER_ORDER)
    assert {row.agrees for row in rows} == {True, False, None}
    assert [one.reason for one in day[0].rejected].count("late") > 1


def test_states_of_the_release_before_go_on_as_those_of_this_release(day: tuple[CoreRun, int, int, int]) -> None:
    whole, rebalances, changes, rejected = day
    former = CoreRun(RULES)
    states = msgspec.msgpack.decode(lzma.decompress(FORMER_STATES.read_bytes()))
    former.take_over({(cluster, shard): state for cluster, shard, state in states})
    play(former, AFTERNOON)
    assert without_costs(former.rebalances) == without_costs(whole.rebalances[rebalances:])
    others = {one.finding_id for one in opened(whole) + opened(former) if one.finding != "flapping"}
    assert comparable(former.changes, others) == comparable(whole.changes[changes:], others)
    assert former.rejected == whole.rejected[rejected:]


def without_costs(rows: list[Rebalance]) -> list[Rebalance]:
    """Return rebalances without estimates: the release before kept no offsets, from which these are made."""
    return [msgspec.structs.replace(row, repeated_estimated_messages=None) for row in rows]


def opened(run: CoreRun) -> list[FindingOpened]:
    return [one.body for one in run.changes if isinstance(one.body, FindingOpened)]


def comparable(changes: list[Change], findings: set[str]) -> list[Change]:
    """Return changes without numbers, and of findings only these.

    The release before wrote a change for each span, and less of others. It did not remember how often a group
    rebalanced, so that `flapping` opens and closes at other times; nor did it audit groups or keep offsets.
    """
    return [
        msgspec.structs.replace(one, number=0, body=without_later_fields(one.body))
        for one in changes
        if not isinstance(one.body, FindingChanged)
        and (not isinstance(one.body, FindingOpened | FindingClosed) or one.body.finding_id in findings)
    ]


def without_later_fields(body: Body) -> Body:
    if isinstance(body, GroupChanged):
        return msgspec.structs.replace(body, strategy_verdict=None, verdict_generations=None, verdict_from=None)
    if isinstance(body, QueuesReassigned):
        topics = [msgspec.structs.replace(topic, costs=[]) for topic in body.topics]
        return msgspec.structs.replace(body, topics=topics)
    return body
