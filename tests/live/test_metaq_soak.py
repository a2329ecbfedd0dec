"""Everything around a MetaQ group comes and goes, in any order, and no rebalance is invented or lost."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.metaq import MetaqCluster, metaq_cluster
from tests.kit.metaq_members import MetaqMember, partitions_of, wait_until_shared
from tests.live.metaq_story import Collected, Story, collecting

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(3_600)]
_SPAN_S = 600
_SESSION_MS = 10_000  # ZooKeeper is back within it, on a busy machine too
_MOST_MEMBERS = 4
_QUEUES = 5
_SEED = 20_260_301


class _Cluster:
    """A group, and what may happen to it."""

    def __init__(
        self, cluster: MetaqCluster, collected: Collected, start: Callable[..., MetaqMember], chance: random.Random
    ) -> None:
        self.cluster, self.collected, self.start, self.chance = cluster, collected, start, chance
        self.story = Story("soak", collected, any_end=True)
        self.members: list[MetaqMember] = []
        self.started = 0

    def joins(self) -> list[tuple[str, str | None]]:
        self.started += 1
        member = self.start(
            self.cluster, "soak", ["orders"], consumer_id=f"m{self.started}", session_timeout_ms=_SESSION_MS
        )
        member.wait_until(lambda: member.has_started)
        self.members.append(member)
        return [("member_joined", member.member_id)]

    def stops(self) -> list[tuple[str, str | None]]:
        member = self.members.pop(self.chance.randrange(len(self.members)))
        member.stop()
        return [("member_left", member.member_id)]

    def is_killed(self) -> list[tuple[str, str | None]]:
        member = self.members.pop(self.chance.randrange(len(self.members)))
        member.kill()
        return [("session_expired", member.member_id)]

    def broker_restarts(self) -> list[tuple[str, str | None]]:
        self.cluster.broker.stop()
        self.story.record("the broker stops", self.members, [], ("queue_count_changed", "orders"))
        self.cluster.broker.start()
        return [("queue_count_changed", "orders")]

    def zookeeper_restarts(self) -> list[tuple[str, str | None]]:
        self.chance.choice([self.cluster.zookeeper.stop, self.cluster.zookeeper.kill])()
        self.cluster.zookeeper.start()
        return []

    def nothing(self) -> list[tuple[str, str | None]]:
        return []

    def step(self) -> None:
        """Let something happen, sometimes while the collector is dead."""
        may = [self.zookeeper_restarts, self.broker_restarts, self.nothing]
        may += [self.joins] * 2 if len(self.members) < _MOST_MEMBERS else []
        may += [self.stops, self.is_killed] if len(self.members) > 1 else []
        what = self.chance.choice(may)
        dies = self.chance.random() < 0.4 and what != self.broker_restarts
        if dies:
            self.collected.kill()
        causes = what()
        if dies:
            if self.chance.random() < 0.5:
                wait_until_shared(self.members, partitions_of("orders", _QUEUES))
            self.collected.start()
        self.story.record(
            f"{what.__name__}{', unseen' if dies else ''}", self.members, partitions_of("orders", _QUEUES), *causes
        )


def test_no_rebalance_is_invented_or_lost(new_metaq_member: Callable[..., MetaqMember], tmp_path: Path) -> None:
    chance = random.Random(_SEED)
    with metaq_cluster(tmp_path, {"orders": _QUEUES}) as cluster, collecting(cluster, tmp_path / "events") as collected:
        life = _Cluster(cluster, collected, new_metaq_member, chance)
        joined = life.joins()
        orders = partitions_of("orders", _QUEUES)
        life.story.record("the first joins", life.members, orders, ("group_created", None), *joined)
        ends_at = time.monotonic() + _SPAN_S
        while time.monotonic() < ends_at:
            life.step()
        collected.stop()
    life.story.check()
    assert len(life.story.steps) > 10
    assert "Traceback" not in collected.stderr()
