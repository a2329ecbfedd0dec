"""Unusual RocketMQ groups on real clusters: rows show what the members report themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.rocketmq import RocketMq
from tests.kit.rocketmq_members import Queue, RocketMqMember, queues_of, wait_until_assigned, wait_until_held
from tests.live.rocketmq_findings import causes_of, found_in, opened_in, rebalances_of
from tests.live.rocketmq_story import Story, collecting
from tests.live.steps import held_at, own
from tests.simulation.core_run import run_of

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]
StartMember = Callable[..., RocketMqMember]
Event = dict[str, Any]
A, B = "127.0.0.1@a", "127.0.0.1@b"
QUICK: dict[str, Any] = {"rebalance_interval_ms": 2_000}


def test_members_with_one_id_are_two_and_both_hold_the_share_of_one(
    each_rocketmq: RocketMq, new_rocketmq_member: StartMember, tmp_path: Path
) -> None:
    cluster, twin = each_rocketmq, "127.0.0.1@twin"
    cluster.create_topic("one-id", 4)
    half, all_of_them = queues_of("one-id", 2), queues_of("one-id", 4)
    at: list[int] = []
    with collecting(cluster, tmp_path / "events", include_groups=("one-id-group",)) as collected:

        def poll_until_reported(connections: int, held: list[Queue]) -> None:
            def is_reported(events: list[Event]) -> bool:
                mine = [event for event in events if event.get("group") == "one-id-group"]
                members = [event["members"] for event in mine if event["type"] == "group_snapshot"]
                queues = [event["queues"] for event in mine if event["type"] == "assignment_reported"]
                latest = (
                    [(queue["topic"], queue["broker"], queue["queue_id"]) for queue in queues[-1]] if queues else []
                )
                return bool(members) and len(members[-1]) == connections and latest[-len(held) :] == held

            collected.poll_until(is_reported, f"{connections} of them")
            at.append(collected.events()[-1]["event_time"])

        first = new_rocketmq_member(cluster, "one-id-group", ["one-id"], instance="twin", **QUICK)
        wait_until_held({first: all_of_them})
        poll_until_reported(1, all_of_them)
        second = new_rocketmq_member(cluster, "one-id-group", ["one-id"], instance="twin", **QUICK)
        wait_until_held({first: half, second: half})
        poll_until_reported(2, half)
        first.kill()
        wait_until_held({second: all_of_them})
        poll_until_reported(1, all_of_them)
    run = run_of(collected.lines())
    assert causes_of(run, "one-id-group") == [
        [("group_created", None), ("member_joined", twin)],
        [("member_joined", f"{twin}#2")],
        [("member_gone", twin)],
    ]
    computed = [own(held_at(run, "one-id-group", "computed", time)) for time in at]
    assert computed == [
        {twin: all_of_them},
        {twin: half, f"{twin}#2": half},
        {f"{twin}#2": all_of_them},
    ]
    # Of two members with one id the broker queries one and does not say which: the report counts for both.
    reported = [own(held_at(run, "one-id-group", "reported", time)) for time in at]
    assert reported == [
        {twin: all_of_them},
        {twin: half},
        {f"{twin}#2": all_of_them},
    ]
    assert {"duplicate_ids", "duplicate_unreachable", "unassigned_queues"} <= opened_in(run, "one-id-group")
    assert found_in(run, "one-id-group") == set()


def test_members_with_different_strategies_each_hold_what_their_own_gives(
    each_rocketmq: RocketMq, new_rocketmq_member: StartMember, tmp_path: Path
) -> None:
    cluster = each_rocketmq
    cluster.create_topic("torn", 6)
    with collecting(cluster, tmp_path / "events", include_groups=("tearing",)) as collected:
        story = Story("tearing", collected)
        blocks = new_rocketmq_member(cluster, "tearing", ["torn"], instance="a", **QUICK)
        wait_until_held({blocks: queues_of("torn", 6)})
        story.record("one by blocks", [blocks], ("group_created", None), ("member_joined", A))
        circle = new_rocketmq_member(cluster, "tearing", ["torn"], instance="b", strategy="AVG_BY_CIRCLE", **QUICK)
        wait_until_held({blocks: queues_of("torn", 3), circle: [("torn", "broker-a", number) for number in (1, 3, 5)]})
        story.record("one in a circle", [blocks, circle], ("member_joined", B))
        blocks.stop()
        again = new_rocketmq_member(cluster, "tearing", ["torn"], instance="a", strategy="AVG_BY_CIRCLE", **QUICK)
        wait_until_assigned([again, circle], queues_of("torn", 6))
        # Under the same id, and between two polls: to a poll it is the member that it was.
        story.record("the first starts anew like the other", [again, circle], ("strategy_changed", A))
    run = story.check()
    torn = next(row for row in rebalances_of(run, "tearing") if row.members_after == 2)
    assert torn.strategy == "rocketmq.AVG, rocketmq.AVG_BY_CIRCLE"
    assert torn.unassigned_queues == 1  # 4; two hold 1
    assert {"strategies_differ", "unassigned_queues"} <= opened_in(run, "tearing")
    assert found_in(run, "tearing") == set()
    assert "expected_differs" not in opened_in(run, "tearing")


def test_topics_are_assigned_to_all_members_regardless_of_subscriptions(
    each_rocketmq: RocketMq, new_rocketmq_member: StartMember, tmp_path: Path
) -> None:
    cluster = each_rocketmq
    cluster.create_topic("left", 4)
    cluster.create_topic("right", 4)
    with collecting(cluster, tmp_path / "events", include_groups=("unlike",)) as collected:
        story = Story("unlike", collected)
        a = new_rocketmq_member(cluster, "unlike", ["left"], instance="a", **QUICK)
        wait_until_held({a: queues_of("left", 4)})
        story.record("one reads the left", [a], ("group_created", None), ("member_joined", A))
        b = new_rocketmq_member(cluster, "unlike", ["right"], instance="b", **QUICK)
        wait_until_held({a: queues_of("left", 2), b: queues_of("right", 4)[2:]})
        story.record("another the right", [a, b], ("member_joined", B))
        a.subscribe("right")
        wait_until_held({a: [*queues_of("left", 2), *queues_of("right", 2)], b: queues_of("right", 4)[2:]})
        story.record("one reads both", [a, b], ("subscription_changed", A))
        a.unsubscribe("left")
        wait_until_held({a: queues_of("right", 2), b: queues_of("right", 4)[2:]})
        story.record("both read the right", [a, b], ("subscription_changed", A))
    run = story.check()
    assert {"subscriptions_differ", "unassigned_queues"} <= opened_in(run, "unlike")
    assert not {"subscriptions_differ", "unassigned_queues", "expected_differs"} & found_in(run, "unlike")


def test_members_that_read_in_order_hold_queues_that_are_locked(
    each_rocketmq: RocketMq, new_rocketmq_member: StartMember, tmp_path: Path
) -> None:
    cluster = each_rocketmq
    cluster.create_topic("one-by-one", 4)
    with collecting(cluster, tmp_path / "events", include_groups=("orderly",)) as collected:
        story = Story("orderly", collected)
        a = new_rocketmq_member(cluster, "orderly", ["one-by-one"], instance="a", ordered=True, **QUICK)
        wait_until_assigned([a], queues_of("one-by-one", 4))
        story.record("the first joins", [a], ("group_created", None), ("member_joined", A))
        b = new_rocketmq_member(cluster, "orderly", ["one-by-one"], instance="b", ordered=True, **QUICK)
        wait_until_assigned([a, b], queues_of("one-by-one", 4))
        story.record("another joins", [a, b], ("member_joined", B))
        b.stop()
        wait_until_assigned([a], queues_of("one-by-one", 4))
        story.record("it stops", [a], ("member_gone", B))
    story.check()
    reports = [event for event in collected.events() if event["type"] == "assignment_reported"]
    assert {queue["locked"] for queue in reports[-1]["queues"]} == {True}


def test_every_broadcasting_member_is_reported_to_hold_all(
    each_rocketmq: RocketMq, new_rocketmq_member: StartMember, tmp_path: Path
) -> None:
    cluster = each_rocketmq
    cluster.create_topic("broadcast", 3)
    with collecting(cluster, tmp_path / "events", include_groups=("audience",)) as collected:
        story = Story("audience", collected)
        a = new_rocketmq_member(cluster, "audience", ["broadcast"], instance="a", broadcasting=True, **QUICK)
        wait_until_held({a: queues_of("broadcast", 3)})
        story.record("one listens", [a], ("group_created", None), ("member_joined", A))
        b = new_rocketmq_member(cluster, "audience", ["broadcast"], instance="b", broadcasting=True, **QUICK)
        wait_until_held({a: queues_of("broadcast", 3), b: queues_of("broadcast", 3)})
        story.record("two listen", [a, b], ("member_joined", B))
        cluster.set_queues("broadcast", 5)
        wait_until_held({a: queues_of("broadcast", 5), b: queues_of("broadcast", 5)})
        story.record("queues come", [a, b], ("queue_count_changed", "broadcast"))
        a.kill()
        story.record("one is killed", [b], ("member_gone", A))
    run = story.check()
    assert {row.mode for row in rebalances_of(run, "audience")} == {"broadcasting"}


def test_members_that_pop_share_queues_by_message(
    rocketmq55: RocketMq, new_rocketmq_member: StartMember, tmp_path: Path
) -> None:
    cluster = rocketmq55
    cluster.create_topic("shared-out", 4)
    cluster.create_group("poppers")
    # Each may read its own queues and those of the next member; of two members that is all there are.
    cluster.set_message_request_mode("shared-out", "poppers", "POP", share=1)
    whole, some = [("shared-out", "broker-a", -1)], queues_of("shared-out", 4)
    wanted = [[whole], [whole, whole], [some[:3], some[2:], [some[0], some[1], some[3]]]]
    at: list[int] = []
    with collecting(cluster, tmp_path / "events", include_groups=("poppers",)) as collected:
        members: list[RocketMqMember] = []

        def are_reported(events: list[Event]) -> bool:
            snapshots = [event for event in events if event["type"] == "group_snapshot"]
            return bool(snapshots) and len(snapshots[-1]["members"]) == len(members)

        for name, held in zip("abc", wanted, strict=True):
            members.append(
                new_rocketmq_member(cluster, "poppers", ["shared-out"], instance=name, client_rebalance=False, **QUICK)
            )
            wait_until_held(dict(zip(members, held, strict=True)))
            collected.poll_until(are_reported, f"{name} pops")
            at.append(collected.events()[-1]["event_time"])
    run = run_of(collected.lines())
    rows = rebalances_of(run, "poppers")
    assert {row.mode for row in rows} == {"message"}
    assert causes_of(run, "poppers") == [
        [("group_created", None), ("member_joined", A)],
        [("member_joined", B)],
        [("member_joined", "127.0.0.1@c")],
    ]
    computed = [own(held_at(run, "poppers", "computed", time)) for time in at]
    assert computed == [dict(zip((A, B, "127.0.0.1@c"), held, strict=False)) for held in wanted]
    assert {(row.unassigned_queues, row.idle_members) for row in rows} == {(0, 0)}
    # No member owns a queue, and none is assigned one.
    assert [own(held_at(run, "poppers", "reported", time)) for time in at] == [{}, {}, {}]
