"""A group's past under another strategy is what a real RocketMQ group that has this strategy then does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from streaming.history.group_history import found_history
from streaming.history.group_rows import GroupRows, group_rows, is_at
from streaming.history.policy_texts import policy_of
from tests.core_config import core_config
from tests.kit.rocketmq import RocketMq
from tests.kit.rocketmq_members import RocketMqMember, queues_of
from tests.live.rocketmq_story import Story, collecting
from tests.live.steps import Cause, Queue, check_steps
from tests.simulation.core_run import rows_of, run_of
from tests.simulation.given_tables import GivenTables
from udfs.group.replay.policy import decided
from udfs.group.replay.replay import replay

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]

CONFIG = core_config()
TOPIC, COUNT = "foretold", 10
STRATEGIES = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
# What clients do, one after the other: join, leave, or be killed.
SCRIPT = ("join b", "join d", "join a", "leave b", "join c", "kill d", "join e")


class Held(NamedTuple):
    """What a group holds after a step, without its retry topic."""

    members: int
    owners: dict[Queue, str]


def held(members: int, spans: Sequence[Mapping[str, Any]], time_ms: int) -> Held:
    """Return what members are to hold right after a rebalance."""
    owners = {
        (span["topic"], span["broker"], span["queue_id"]): span["member_id"]
        for span in spans
        if span["origin"] == "computed" and span["topic"] == TOPIC and is_at(span, "valid_from", "valid_to", time_ms)
    }
    return Held(members, owners)


def moved(real: GroupRows) -> int:
    """Return how many queues of the topic had another owner after a rebalance than before."""
    owners = [held(row["members_after"], real.spans, row["event_time"]).owners for row in real.rebalances]
    return sum(before[queue] != after[queue] for before, after in pairwise(owners) for queue in before)


def test_what_other_strategies_would_have_moved_is_what_groups_that_have_them_move(
    rocketmq55: RocketMq, new_rocketmq_member: Callable[..., RocketMqMember], tmp_path: Path
) -> None:
    rocketmq55.create_topic(TOPIC, COUNT)
    with collecting(rocketmq55, tmp_path / "events", include_groups=STRATEGIES) as collected:
        stories = {strategy: Story(strategy, collected) for strategy in STRATEGIES}
        members: dict[str, dict[str, RocketMqMember]] = {strategy: {} for strategy in STRATEGIES}
        for step in SCRIPT:
            what, client = step.split()
            for strategy, there in members.items():
                if what == "join":
                    there[client] = new_rocketmq_member(
                        rocketmq55, strategy, [TOPIC], instance=client, strategy=strategy, rebalance_interval_ms=2_000
                    )
                elif what == "leave":
                    there.pop(client).stop()
                else:
                    there.pop(client).kill()
            for strategy, story in stories.items():
                cause = {"join": "member_joined", "leave": "member_left", "kill": "member_gone"}[what]
                causes: list[Cause] = [(cause, f"127.0.0.1@{client}")]
                causes += [("group_created", None)] if step == SCRIPT[0] else []
                story.record(step, list(members[strategy].values()), *causes, queues=queues_of(TOPIC, COUNT))
    run = run_of(collected.lines())
    tables = GivenTables.of(run)
    for strategy, story in stories.items():
        # What members hold is what the tables say.
        check_steps(run, strategy, story.steps, any_end=True)
    reals = {strategy: group_rows(tables, "live", strategy) for strategy in STRATEGIES}
    was = reals["AVG"]
    history = found_history(was, CONFIG.settle_ms).history
    as_recorded = replay(history, CONFIG)
    for strategy in STRATEGIES:
        policy = policy_of(f"strategy={strategy}", was)
        again = decided(policy, history, as_recorded, CONFIG).replayed
        spans = rows_of(again.changes)["assignments"]
        predicted = [held(row.members_after, spans, row.event_time) for row in again.rebalances]
        real = reals[strategy]
        happened = [held(row["members_after"], real.spans, row["event_time"]) for row in real.rebalances]
        assert predicted == happened, strategy
        assert len(predicted) == len(SCRIPT)
    moves = {strategy: moved(real) for strategy, real in reals.items()}
    sys.stdout.write(f"moves of queues: {moves}\n")
    assert moves["CONSISTENT_HASH"] < moves["AVG"]
