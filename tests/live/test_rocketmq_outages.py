"""Outages in rows contain those that real consumers of RocketMQ note themselves: by their pulls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit import rocketmq_admin as admin
from tests.kit.rocketmq import RocketMq
from tests.kit.rocketmq_members import RocketMqMember, queues_of, wait_until_assigned
from tests.live.outages import check, checked_by_owner, stop_and_kill
from tests.live.repeated import repeated
from tests.live.rocketmq_story import collecting
from tests.simulation.core_run import run_of

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]


def test_a_clean_stop_and_a_kill(
    rocketmq55: RocketMq, new_rocketmq_member: Callable[..., RocketMqMember], tmp_path: Path
) -> None:
    group, topic, queues = "unread", "outages", queues_of("outages", 4)
    rocketmq55.create_topic(topic, 4)
    address = rocketmq55.broker.address
    lives: dict[str, list[RocketMqMember]] = {}

    def member(instance: str) -> RocketMqMember:
        settings: dict[str, Any] = {"notes": "true"}
        found = new_rocketmq_member(rocketmq55, group, [topic], instance=instance, settings=settings)
        lives.setdefault(f"127.0.0.1@{instance}", []).append(found)
        return found

    def send() -> None:
        for _, _, queue_id in queues:
            admin.put_message(address, topic, queue_id, b"m")

    with (
        collecting(rocketmq55, tmp_path / "events", include_groups=(group,)) as collected,
        repeated(send, 0.1),
        repeated(collected.poll, 1.0),
    ):
        stop_and_kill(member, lambda members: wait_until_assigned(members, queues))
    check(checked_by_owner(run_of(collected.lines()), group, lives), 6)
