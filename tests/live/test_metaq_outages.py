"""Outages in rows contain those that real consumers of MetaQ note themselves: by their nodes in ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.metaq import MetaqCluster
from tests.kit.metaq_members import MetaqMember, partitions_of, wait_until_shared
from tests.live.metaq_story import collecting
from tests.live.outages import check, checked_by_owner, stop_and_kill
from tests.live.repeated import repeated
from tests.simulation.core_run import run_of

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]


def test_a_clean_stop_and_a_kill(
    metaq: MetaqCluster, new_metaq_member: Callable[..., MetaqMember], tmp_path: Path
) -> None:
    group, topic = "unread", "kit-orders"
    partitions = partitions_of(topic, 12)
    lives: dict[str, list[MetaqMember]] = {}

    def member(name: str) -> MetaqMember:
        found = new_metaq_member(metaq, group, [topic], consumer_id=name)
        lives.setdefault(f"{group}_{name}", []).append(found)
        return found

    def send() -> None:
        for _, _, number in partitions:
            metaq.broker.put(topic, number, [b"m"])

    with collecting(metaq, tmp_path / "events") as collected:
        with repeated(send, 0.1):
            stop_and_kill(member, lambda members: wait_until_shared(members, partitions))
        collected.stop()
    check(checked_by_owner(run_of(collected.lines()), group, lives), 12)
