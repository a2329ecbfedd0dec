"""RocketMQ clusters that grow by a broker and lose it again: queues come and go, members stay."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.kit import rocketmq_admin as admin
from tests.kit.rocketmq import RocketMq, rocketmq_49, rocketmq_55
from tests.kit.rocketmq_members import RocketMqMember, queues_of, wait_until_assigned
from tests.live.rocketmq_findings import found_in, opened_in
from tests.live.rocketmq_story import Story, collecting

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]
GROUP, TOPIC = "spreading", "spread"
_MESSAGES = 20  # five to a file of the second broker's log
IDS = ["127.0.0.1@a", "127.0.0.1@b"]


@pytest.mark.parametrize("start", [rocketmq_55, rocketmq_49])
def test_a_second_broker_joins_is_killed_and_comes_back(
    start: Callable[[Path], AbstractContextManager[RocketMq]],
    new_rocketmq_member: Callable[..., RocketMqMember],
    tmp_path: Path,
) -> None:
    with (
        start(tmp_path) as cluster,
        # Members of the kit read routes every second, so that they miss a broker's queues as soon.
        collecting(cluster, tmp_path / "events", include_groups=(GROUP,), route_grace_ms=1_000) as collected,
    ):
        cluster.create_topic(TOPIC, 3)
        story, changed = Story(GROUP, collected), ("queue_count_changed", TOPIC)
        members = [
            new_rocketmq_member(cluster, GROUP, [TOPIC], instance=name, rebalance_interval_ms=2_000) for name in "ab"
        ]
        alone = queues_of(TOPIC, 3)
        joins = [("member_joined", member_id) for member_id in IDS]
        story.record("two on one broker", members, ("group_created", None), *joins, queues=alone)
        second = cluster.add_broker(settings={"mappedFileSizeCommitLog": "262144"})
        cluster.create_topic(TOPIC, 2, ["broker-b"])
        spread = [*alone, *queues_of(TOPIC, 2, ["broker-b"])]
        cluster.wait_until(lambda: cluster.member_ids(GROUP, "broker-b") == IDS, "the second broker lists them")
        wait_until_assigned(members, spread)
        story.record("a second broker joins", members, changed, queues=spread)
        for _ in range(_MESSAGES):
            admin.put_message(second.address, TOPIC, 0, b"x" * 50_000)
        second.kill()
        # As retention deletes: whole files, the oldest first.
        for file in sorted((cluster.folder / "broker-b/store/commitlog").iterdir())[:2]:
            file.unlink()
        wait_until_assigned(members, alone)
        collected.poll_until(lambda events: _count(events) == 3, "its queues are gone")
        story.record("it is killed", members, changed, queues=alone)
        second.start()
        cluster.wait_until(lambda: cluster.member_ids(GROUP, "broker-b") == IDS, "it lists them again")
        wait_until_assigned(members, spread)
        collected.poll_until(lambda events: _count(events) == 5, "its queues are back")
        story.record("it comes back", members, changed, queues=spread)
        collected.poll_until(lambda events: not _observed(events), "brokers agree again, and each can be asked")
        begins = admin.start_of_queue(second.address, TOPIC, 0)
        assert 0 < begins < _MESSAGES
        collected.poll_until(lambda events: _starts(events)[-1:] == [begins], "where its queue begins now")
    # Members had consumed what was deleted, or get none of it: a broker that was killed may have lost their commits.
    run = story.check()
    assert not {"brokers_disagree", "expected_differs"} & found_in(run, GROUP)
    assert not {"duplicate_ids", "messages_lost"} & opened_in(run, GROUP)


def _count(events: list[dict[str, Any]]) -> int:
    return [len(event["queues"]) for event in events if event["type"] == "topic_queues" and event["topic"] == TOPIC][-1]


def _starts(events: list[dict[str, Any]]) -> list[int]:
    """Return where the first queue of the second broker began, each time that it was reported."""
    return [
        queue["start_offset"]
        for event in events
        if event["type"] == "queue_ends" and event["topic"] == TOPIC
        for queue in event["queues"]
        if (queue["broker"], queue["queue_id"]) == ("broker-b", 0)
    ]


def _observed(events: list[dict[str, Any]]) -> object:
    snapshots = [event for event in events if event["type"] == "group_snapshot"]
    return snapshots[-1].get("observations")
