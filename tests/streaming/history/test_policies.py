"""The law of policies: a history under a policy is what the core decides where the events were so from the start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streaming.history.group_history import found_history
from streaming.history.group_rows import GroupRows, group_rows
from streaming.history.policy_texts import policy_of
from tests.core_config import core_config
from tests.model.check import one_batch
from tests.model.core_tables import run_core
from tests.model.histories import FEATURES, history
from tests.model.times import Event
from tests.simulation.given_tables import GivenTables
from tests.streaming.history.test_identity import groups_of
from udfs.group.replay.policy import under
from udfs.group.replay.replay import replay

# What a history does not have, see test_identity.py. Reports of members say what they held under the other strategy.
_NOT_RECORDED = frozenset(("settles", "late", "ties", "reports"))
_COMPARED = (
    *("event_time", "members_before", "members_after", "queues_after", "queues_moved", "queues_revoked"),
    *("idle_members", "unassigned_queues", "spread", "strategy"),
)
QUICK, SLOW = 25, 3_000


def decided(rebalances: list[Any]) -> list[tuple[Any, ...]]:
    return sorted(tuple(getattr(row, name) for name in _COMPARED) for row in rebalances)


def check(seed: int, text_of: Callable[[GroupRows], str], change: Callable[[Event, str], Event | None]) -> int:
    """Compare what was changed in the tables' history with what was changed in the events; return how many differ."""
    made = history(seed, frozenset(FEATURES) - _NOT_RECORDED)
    (batch,) = one_batch(made)
    tables = GivenTables.of(run_core([batch], made.how))
    moved = 0
    for cluster, group_id in groups_of(tables):
        rows = group_rows(tables, cluster, group_id)
        if rows.system == "kafka" or not rows.topics:
            continue
        text = text_of(rows)
        changed = [
            found
            for event in batch
            if (found := change(event, text) if event["cluster"] == cluster and is_of(event, group_id) else event)
        ]
        if text.startswith("strategy"):
            mine = [event for event in batch if event["cluster"] == cluster and event.get("group") == group_id]
            first = min(mine, key=lambda event: event["event_time"])
            named = {name: first[name] for name in ("system", "cluster", "group", "event_time", "schema_version")}
            set_at = [
                first["event_time"],
                *(event["event_time"] + 1 for event in mine if event["type"] == "group_deleted"),
            ]
            setting = named | {"type": "group_settings", "strategy": text.partition("=")[2]}
            changed = [*(setting | {"event_time": time_ms} for time_ms in set_at), *changed]
        expected = [
            row
            for row in run_core([changed], made.how).rebalances
            if (row.cluster, row.group_id) == (cluster, group_id)
        ]
        config = core_config()
        past = found_history(rows, config.settle_ms).history
        again = replay(under(policy_of(text, rows), past), config).rebalances
        assert decided(again) == decided(expected), (seed, cluster, group_id, text)
        moved += decided(again) != decided(replay(past, config).rebalances)
    return moved


def is_of(event: Event, group_id: str) -> bool:
    return event.get("group") in (None, group_id)


def other_strategy(rows: GroupRows) -> str:
    own = rows.rebalances[0]["strategy"]
    return (
        "strategy="
        + {"rocketmq": "CONSISTENT_HASH", "metaq": "consistent-hash"}[rows.system] * ("HASH" not in own.upper())
        + {"rocketmq": "AVG_BY_CIRCLE", "metaq": "default"}[rows.system] * ("HASH" in own.upper())
    )


def with_strategy(event: Event, _: str) -> Event | None:
    if event["type"] == "group_settings":
        kept = {
            name: value for name, value in event.items() if name not in ("strategy", "strategy_settings", "inferred")
        }
        return kept if "mode" in kept else None
    return {name: value for name, value in event.items() if name != "strategy"}


def more_queues(rows: GroupRows) -> str:
    return f"queues {max(row['topic'] for row in rows.topics)}=7"


def seven_queues(event: Event, text: str) -> Event | None:
    if event["type"] != "topic_queues" or event["topic"] != text.split()[1].partition("=")[0]:
        return event
    if event.get("queues"):
        brokers = sorted({queue.get("broker") for queue in event["queues"]}, key=str)
        return event | {"queues": [{"broker": broker, "queue_id": number} for broker in brokers for number in range(7)]}
    return event | {"queue_count": 7} if event.get("queue_count") else event


def without_member(rows: GroupRows) -> str:
    return f"without {rows.sessions[len(rows.sessions) // 2]['member_id']}"


def less_member(event: Event, text: str) -> Event | None:
    member_id = text.partition(" ")[2]
    if event.get("member_id") == member_id:
        return None
    if "members" in event:
        return event | {"members": [member for member in event["members"] if member["member_id"] != member_id]}
    return event


@pytest.mark.parametrize(
    ("text_of", "change", "least"),
    [(other_strategy, with_strategy, 3), (without_member, less_member, 3), (more_queues, seven_queues, 3)],
)
def test_a_policy_on_the_tables_is_the_policy_on_the_events(
    text_of: Callable[[GroupRows], str], change: Callable[[Event, str], Event | None], least: int
) -> None:
    assert sum(check(seed, text_of, change) for seed in range(QUICK)) > least


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("text_of", "change"),
    [(other_strategy, with_strategy), (without_member, less_member), (more_queues, seven_queues)],
)
def test_very_many_policies_on_the_tables_are_those_on_the_events(
    text_of: Callable[[GroupRows], str], change: Callable[[Event, str], Event | None]
) -> None:
    assert sum(check(seed, text_of, change) for seed in range(QUICK, SLOW)) > 1_000
