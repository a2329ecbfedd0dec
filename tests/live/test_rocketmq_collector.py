"""The collector beside real RocketMQ clusters and real consumers; the core reads what it wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.rocketmq import RocketMq
from tests.kit.rocketmq_members import RocketMqMember, queues_of, wait_until_assigned
from tests.live.rocketmq_story import Story, are_missed, collecting, lags_of

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]
StartMember = Callable[..., RocketMqMember]


def test_members_that_join_stop_and_are_killed_and_queues_that_come_and_go(
    each_rocketmq: RocketMq, new_rocketmq_member: StartMember, tmp_path: Path
) -> None:
    cluster = each_rocketmq
    cluster.create_topic("collected", 5)
    quick = {"rebalance_interval_ms": 2_000}
    with collecting(cluster, tmp_path / "events", include_groups=("life",)) as collected:
        story = Story("life", collected)
        collected.poll()
        a = new_rocketmq_member(cluster, "life", ["collected"], instance="a", **quick)
        wait_until_assigned([a], queues_of("collected", 5))
        story.record("the first joins", [a], ("group_created", None), ("member_joined", "127.0.0.1@a"))
        b = new_rocketmq_member(cluster, "life", ["collected"], instance="b", **quick)
        wait_until_assigned([a, b], queues_of("collected", 5))
        story.record("a second joins", [a, b], ("member_joined", "127.0.0.1@b"))
        cluster.set_queues("collected", 7)
        wait_until_assigned([a, b], queues_of("collected", 7))
        story.record("queues come", [a, b], ("queue_count_changed", "collected"))
        collected.restart()
        cluster.set_queues("collected", 3)
        wait_until_assigned([a, b], queues_of("collected", 3))
        story.record("queues go", [a, b], ("queue_count_changed", "collected"))
        b.kill()
        wait_until_assigned([a], queues_of("collected", 3))
        story.record("one is killed", [a], ("member_gone", "127.0.0.1@b"))
        a.stop()
        story.record("the last stops", [], ("member_gone", "127.0.0.1@a"))
    run = story.check()
    rows = [row for row in run.rebalances if row.group_id == "life"]
    details = [trigger.detail for row in rows for trigger in row.triggers if trigger.kind == "member_gone"]
    assert all("connection" in (detail or "") for detail in details)


def test_the_growing_backlog_of_a_stuck_member_is_reported(
    each_rocketmq: RocketMq, new_rocketmq_member: StartMember, tmp_path: Path
) -> None:
    cluster, queues = each_rocketmq, queues_of("piled-up", 3)
    cluster.create_topic("piled-up", 3)
    more: dict[str, Any] = {"consume_ms": 600_000, "settings": {"persist_interval_ms": 500}}
    with collecting(cluster, tmp_path / "events", include_groups=("stuck",)) as collected:
        story = Story("stuck", collected)
        member = new_rocketmq_member(cluster, "stuck", ["piled-up"], instance="a", **more)
        wait_until_assigned([member], queues)
        story.record("one joins", [member], ("group_created", None), ("member_joined", "127.0.0.1@a"))

        def poll_until_reported(waiting: int) -> None:
            reported = dict.fromkeys(queues, (0, waiting, False))
            collected.poll_until(
                lambda events: lags_of(events, "stuck") == reported, f"{waiting} messages in each queue"
            )

        cluster.send("piled-up", 2)
        poll_until_reported(2)
        cluster.send("piled-up", 3)
        poll_until_reported(5)
        member.kill()
        story.record("it is killed", [], ("member_gone", "127.0.0.1@a"))
        cluster.send("piled-up", 1)
        poll_until_reported(6)
    story.check()


def test_a_member_that_hangs_expires(rocketmq55: RocketMq, new_rocketmq_member: StartMember, tmp_path: Path) -> None:
    rocketmq55.create_topic("hung", 4)
    with collecting(rocketmq55, tmp_path / "events", include_groups=("hanging",), client_timeout_ms=500) as collected:
        story = Story("hanging", collected)
        a = new_rocketmq_member(rocketmq55, "hanging", ["hung"], instance="a", rebalance_interval_ms=2_000)
        b = new_rocketmq_member(rocketmq55, "hanging", ["hung"], instance="b", rebalance_interval_ms=2_000)
        wait_until_assigned([a, b], queues_of("hung", 4))
        collected.poll()
        story.record(
            "both join",
            [a, b],
            ("group_created", None),
            ("member_joined", "127.0.0.1@a"),
            ("member_joined", "127.0.0.1@b"),
        )
        b.freeze()
        collected.poll_until(lambda events: are_missed(events, "127.0.0.1@b"), "it does not answer")
        wait_until_assigned([a], queues_of("hung", 4))
        story.record("one hangs", [a], ("session_expired", "127.0.0.1@b"), queues=queues_of("hung", 4))
    story.check()


def test_brokers_and_name_servers_that_start_anew_are_no_departure(
    each_rocketmq: RocketMq, new_rocketmq_member: StartMember, tmp_path: Path
) -> None:
    cluster = each_rocketmq
    cluster.create_topic("steady", 4)
    with collecting(cluster, tmp_path / "events", include_groups=("staying",)) as collected:
        story = Story("staying", collected)
        members = [new_rocketmq_member(cluster, "staying", ["steady"], instance=name) for name in "ab"]
        wait_until_assigned(members, queues_of("steady", 4))
        story.record(
            "both join",
            members,
            ("group_created", None),
            ("member_joined", "127.0.0.1@a"),
            ("member_joined", "127.0.0.1@b"),
        )
        cluster.broker.kill()
        collected.poll()
        cluster.broker.start()
        collected.poll()
        cluster.wait_until(lambda: len(cluster.member_ids("staying")) == 2, "the members are back")
        wait_until_assigned(members, queues_of("steady", 4))
        story.record("the broker is killed and starts again", members, queues=queues_of("steady", 4))
        cluster.name_server.kill()
        collected.poll()
        cluster.name_server.start()
        for _ in range(3):
            collected.poll()
        collected.restart()
        all_of_them = queues_of("steady", 4)
        story.record(
            "the name server is killed and starts again, and so does the collector", members, queues=all_of_them
        )
    story.check()


def test_ways_of_sharing_and_two_with_one_id_are_reported_as_they_are(
    rocketmq55: RocketMq, new_rocketmq_member: StartMember, tmp_path: Path
) -> None:
    rocketmq55.create_topic("shared-ways", 4)
    rocketmq55.create_group("popping")
    rocketmq55.set_message_request_mode("shared-ways", "popping", "POP", 2)
    for name in "ab":
        new_rocketmq_member(rocketmq55, "popping", ["shared-ways"], instance=f"p{name}", client_rebalance=False)
        new_rocketmq_member(rocketmq55, "telling", ["shared-ways"], instance=f"t{name}", broadcasting=True)
        new_rocketmq_member(rocketmq55, "twins", ["shared-ways"], instance="twin")
    groups = ("popping", "telling", "twins")
    with collecting(rocketmq55, tmp_path / "events", include_groups=groups) as collected:

        def last(kind: str, group: str) -> dict[str, Any]:
            found = [event for event in collected.events() if event["type"] == kind and event.get("group") == group]
            return found[-1] if found else {}

        collected.poll_until(
            lambda _: all(len(last("group_snapshot", group).get("members", ())) == 2 for group in groups), "members"
        )
        collected.poll_until(lambda _: last("group_settings", "popping")["mode"] == "message", "POP")
        assert last("group_settings", "popping")["strategy_settings"] == {"share_number": 2}
        assert last("group_settings", "telling")["mode"] == "broadcasting"

        def held(group: str) -> int:
            queues = last("assignment_reported", group).get("queues", ())
            return sum(queue["topic"] == "shared-ways" for queue in queues)

        # Each listener holds every queue, each twin the first half.
        collected.poll_until(lambda _: (held("telling"), held("twins")) == (4, 2), "what they hold")
        assert last("assignment_reported", "popping") == {}
        twins = last("group_snapshot", "twins")
        assert [member["member_id"] for member in twins["members"]] == ["127.0.0.1@twin", "127.0.0.1@twin"]
        assert len({member["host"] for member in twins["members"]}) == 2
        assert "duplicate_unreachable" in {observation["kind"] for observation in twins["observations"]}
        assert "host" not in last("assignment_reported", "twins")
