"""The collector beside two real proxies of RocketMQ 5.5.0 and real clients of gRPC behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.rocketmq import rocketmq_55
from tests.kit.rocketmq_members import start_member
from tests.kit.rocketmq_proxy import running_proxy, start_grpc_member
from tests.live.rocketmq_story import Collected, Event, collecting, lags_of
from tests.simulation.core_run import CoreRun, run_of
from udfs.model.journal import FindingOpened

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(600)]
GROUP, TOPIC = "modern", "orders"
# As of brokers: a client is given up so long after its last heartbeat, of which it sends one in ten seconds.
_EXPIRY = {"channelExpiredTimeout": 15_000}
_OPTIONS: dict[str, Any] = {"include_groups": (GROUP, "classic"), "boot_grace_ms": 15_000, "running_info_share": 1.0}


def last_snapshot(events: list[Event], group: str = GROUP) -> Event:
    return next(
        (event for event in reversed(events) if event["type"] == "group_snapshot" and event["group"] == group),
        {},
    )


def members_of(events: list[Event], group: str = GROUP) -> dict[str, str]:
    """Return the members of the last snapshot, with their addresses."""
    return {member["member_id"]: member["host"] for member in last_snapshot(events, group).get("members") or []}


def problems(collected: Collected) -> list[str]:
    return [observation["kind"] for observation in last_snapshot(collected.events()).get("observations") or []]


def causes(run: CoreRun, group: str) -> list[tuple[str, str | None]]:
    rows = [row for row in run.rebalances if row.group_id == group]
    return [(trigger.kind, trigger.member_id) for row in rows for trigger in row.triggers]


def test_clients_of_proxies_join_and_depart_and_are_unknown_while_their_proxies_are_away(tmp_path: Path) -> None:
    with (
        rocketmq_55(tmp_path / "cluster") as cluster,
        running_proxy(cluster, "p1", _EXPIRY) as p1,
        running_proxy(cluster, "p2", _EXPIRY) as p2,
        collecting(cluster, tmp_path / "events", proxies=(p1.address, p2.address), **_OPTIONS) as collected,
    ):
        cluster.create_topic(TOPIC, 2)
        for group in (GROUP, "classic"):
            cluster.create_group(group)

        def wait_for_members(*expected: str) -> None:
            collected.poll_until(lambda events: members_of(events).keys() == set(expected), f"members: {expected}")

        with (
            start_grpc_member(p1, GROUP, TOPIC) as a,
            start_member(cluster, "classic", [TOPIC], instance="c", name_server=p1.address) as c,
        ):
            (first,) = p1.member_ids(GROUP)
            wait_for_members(first)
            collected.poll_until(lambda events: members_of(events, "classic").keys() == {c.client_id}, "classic joins")
            cluster.send(TOPIC, 2)
            read = {(TOPIC, "broker-a", number): (2, 2, True) for number in range(2)}
            collected.poll_until(lambda events: lags_of(events, GROUP) == read, "its offsets are read")
            a.stop()
        wait_for_members()
        with start_grpc_member(p1, GROUP, TOPIC), start_grpc_member(p2, GROUP, TOPIC) as b:
            collected.poll_until(lambda events: len(members_of(events)) == 2, "both are listed")
            second, third = members_of(collected.events())
            b.kill()
            collected.poll_until(lambda events: len(members_of(events)) == 1, "one expires")
            (staying,) = members_of(collected.events())
            p1.kill()
            collected.poll()
            status = collected.collector.status()
            assert status.state == "connected"
            assert f"the proxy {p1.address} does not answer since" in (status.detail or "")
            assert p2.address not in (status.detail or "")
            p2.kill()
            for _ in range(3):
                collected.poll()
            assert (list(members_of(collected.events())), problems(collected)) == ([staying], ["not_polled"])
            p1.start()
            collected.poll_until(lambda _: not problems(collected), "the client is listed again")
            assert list(members_of(collected.events())) == [staying]
    run = run_of(collected.lines())
    assert run.rejected == []
    begun, joined, departed = (causes(run, GROUP)[part] for part in (slice(3), slice(3, 5), slice(5, None)))
    assert begun == [("group_created", None), ("member_joined", first), ("member_gone", first)]
    assert set(joined) == {("member_joined", second), ("member_joined", third)}
    assert departed == [("member_gone", ({second, third} - {staying}).pop())]
    assert {row.mode for row in run.rebalances if row.group_id == GROUP} == {"message"}
    assert {row.mode for row in run.rebalances if row.group_id == "classic"} == {"clustering"}
    assert {change.body.finding for change in run.changes if isinstance(change.body, FindingOpened)} == {"not_polled"}
