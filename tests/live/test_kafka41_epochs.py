"""Consumer groups of the new protocol on a real Kafka 4.1 broker: each epoch with its cause, recomputed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from tests.kit.brokers import Broker
from tests.kit.java_members import wait_until
from tests.kit.members import Member
from tests.kit.topics import add_partitions, create_topic, delete_group, set_session_timeout
from tests.live.collecting import collecting, run_of_folder
from tests.simulation.core_run import CoreRun, rows_of
from udfs.model.journal import Rebalance

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]
StartMember = Callable[..., Member]
CONSUMER = {"group.protocol": "consumer"}
RANGE = {**CONSUMER, "group.remote.assignor": "range"}
# A record shows that a member is gone; its last commits may show how.
DEPARTED = ("member_gone", "member_left", "session_expired")


def test_every_epoch_has_its_cause_and_its_target_is_recomputed(
    kafka41: Broker, new_member: StartMember, tmp_path: Path
) -> None:
    check_stories(
        kafka41, new_member, tmp_path, [uniform, ranged, static, pattern, matching, mixed, moving, librdkafka]
    )


def check_stories(
    broker: Broker, start: StartMember, folder: Path, stories: Sequence[Callable[[Broker, StartMember], list[str]]]
) -> None:
    """Let groups live beside each other while the collector reads, and check each of them."""
    # The stories run side by side, because they mostly wait.
    with collecting(broker, folder), ThreadPoolExecutor(len(stories)) as pool:
        played = [pool.submit(story, broker, start) for story in stories]
        expected = [reported.result() for reported in played]
    run = run_of_folder(folder)
    assert "epochs-mixed" not in {row["group_id"] for row in rows_of(run.changes)["groups"]}
    for story, causes in zip(stories, expected, strict=True):
        check(run, f"epochs-{story.__name__}", causes)


def check(run: CoreRun, group: str, causes: Sequence[str]) -> None:
    """Each epoch is a row or changed nothing; all causes are there, in order; every target is the recomputed one."""
    rows = sorted((row for row in run.rebalances if row.group_id == group), key=lambda row: row.generation)
    reported = [(row.generation, row.error, [cause.kind for cause in row.triggers], row.agrees) for row in rows]
    assert [kind for row in rows for kind in kinds(row)] == list(causes), reported
    assert all(row.generations_missed is None for row in rows), reported
    assert all(row.agrees or row.agrees_reason in ("no_members", "no_target", "topics_unknown") for row in rows), (
        reported
    )
    assert all(row.generation_source == "reported" for row in rows)
    for row in rows:
        if row.error is None and row.began_at is not None:
            assert row.completed_at == row.event_time >= row.began_at
    last = rows[-1]
    if last.error is None and last.members_after:
        assert owned_now(run, group, "computed") == owned_now(run, group, "reported")
        assert len(owned_now(run, group, "reported")) == last.queues_after


def owned_now(run: CoreRun, group: str, origin: str) -> list[tuple[str, int, str]]:
    spans = rows_of(run.changes)["assignments"]
    mine = [span for span in spans if span["group_id"] == group and span["origin"] == origin]
    return sorted((span["topic"], span["queue_id"], span["member_id"]) for span in mine if span["valid_to"] is None)


def kinds(row: Rebalance) -> list[str]:
    return ["member_gone" if cause.kind in DEPARTED else cause.kind for cause in row.triggers]


def wait_for(partitions: int, *members: Member) -> None:
    wait_until(members, lambda: sum(len(member.owned) for member in members) == partitions)


def uniform(broker: Broker, start: StartMember) -> list[str]:
    """Join, join, crash, subscribe to more, growth, leave."""
    group = "epochs-uniform"
    orders, bills = f"{group}.orders", f"{group}.bills"
    create_topic(broker, orders, 4)
    create_topic(broker, bills, 2)
    a = start(broker, group, [orders], client_id="a", settings=CONSUMER)
    wait_for(4, a)
    b = start(broker, group, [orders], client_id="b", settings=CONSUMER)
    wait_until([a, b], lambda: len(a.owned) == len(b.owned) == 2)
    b.kill()
    wait_for(4, a)
    a.subscribe([orders, bills])
    wait_for(6, a)
    add_partitions(broker, orders, 6)
    wait_for(8, a)
    a.stop()
    return [
        *("group_created", "member_joined"),
        "member_joined",
        "member_gone",
        "subscription_changed",
        "queue_count_changed",
        "member_gone",
    ]


def ranged(broker: Broker, start: StartMember) -> list[str]:
    """Start three members, and let one of them leave."""
    group, topic = "epochs-ranged", "epochs-ranged.orders"
    create_topic(broker, topic, 5)
    members: list[Member] = []
    for name in ("a", "b", "c"):
        members.append(start(broker, group, [topic], client_id=name, settings=RANGE))
        wait_until(members, lambda: min(len(member.owned) for member in members) >= 5 // len(members))
        wait_for(5, *members)
    members.pop().stop()
    wait_for(5, *members)
    return ["group_created", *["member_joined"] * 3, "member_gone"]


def static(broker: Broker, start: StartMember) -> list[str]:
    """A static member that restarts, then stays away.

    Brokers before 4.0 know no settings of one group (`Unknown resource type 32`): their own must suit both.
    """
    group, topic = "epochs-static", "epochs-static.orders"
    create_topic(broker, topic, 4)
    has_group_settings = broker.version != "3.9.1"
    if has_group_settings:
        set_session_timeout(broker, group, 60_000)  # a process takes long to start on a busy machine
    first = start(broker, group, [topic], client_id="s1", instance_id="one", settings=CONSUMER)
    wait_for(4, first)
    second = start(broker, group, [topic], client_id="s2", instance_id="two", settings=CONSUMER)
    wait_until([first, second], lambda: len(first.owned) == len(second.owned) == 2)
    second.stop()
    second = start(broker, group, [topic], client_id="s2", instance_id="two", settings=CONSUMER)
    wait_until([second], lambda: len(second.owned) == 2)
    if has_group_settings:
        set_session_timeout(broker, group, 6_000)
    second.stop()
    wait_for(4, first)
    return ["group_created", "member_joined", "member_joined", "member_gone"]


def _poll_until(reader: Consumer, count: int) -> None:
    while len(reader.assignment()) != count:
        reader.poll(0.1)


def pattern(broker: Broker, start: StartMember) -> list[str]:
    """A pattern that the coordinator resolves, and a new topic that it matches."""
    group = "epochs-pattern"
    create_topic(broker, f"{group}.a", 3)
    settings = {"group.id": group, **CONSUMER, "topic.metadata.refresh.interval.ms": 1000}
    reader = Consumer({**broker.client_settings(), **settings})
    reader.subscribe([f"^{group}\\..*"])
    _poll_until(reader, 3)
    reader.close()
    # A newer coordinator has resolved the pattern when it makes the first epoch.
    later = ["subscription_changed"] if broker.version == "4.1.1" else []
    return ["group_created", "member_joined", *later, "member_gone"]


def matching(broker: Broker, start: StartMember) -> list[str]:
    """A Java member whose pattern the coordinator resolves, and again when another topic matches."""
    group = "epochs-matching"
    create_topic(broker, f"{group}.a", 3)
    member = start(broker, group, [], client_id="m", settings=CONSUMER)
    member.subscribe_server_pattern(f"{group}\\..*")
    wait_for(3, member)
    create_topic(broker, f"{group}.b", 2)
    wait_for(5, member)
    member.stop()
    first = ["subscription_changed"] if broker.version == "4.1.1" else []
    return ["group_created", "member_joined", *first, "subscription_changed", "member_gone"]


def mixed(broker: Broker, start: StartMember) -> list[str]:
    """Members of different topics; then the group is deleted."""
    group = "epochs-mixed"
    orders, bills = f"{group}.orders", f"{group}.bills"
    create_topic(broker, orders, 5)
    create_topic(broker, bills, 3)
    a = start(broker, group, [orders], client_id="a", settings=CONSUMER)
    wait_for(5, a)
    b = start(broker, group, [orders, bills], client_id="b", settings=CONSUMER)
    wait_until([a, b], lambda: len(a.owned) == len(b.owned) == 4)
    a.stop()
    wait_for(8, b)
    b.stop()
    delete_group(broker, group)
    return ["group_created", "member_joined", "member_joined", "member_gone", "member_gone"]


def moving(broker: Broker, start: StartMember) -> list[str]:
    """A classic group that a consumer of the new protocol takes over, and that goes back when it leaves."""
    group, topic = "epochs-moving", "epochs-moving.orders"
    create_topic(broker, topic, 4)
    old = start(broker, group, [topic], client_id="old", session_timeout_ms=30_000)
    wait_for(4, old)
    new = start(broker, group, [topic], client_id="new", settings=CONSUMER)
    wait_until([old, new], lambda: len(old.owned) == len(new.owned) == 2)
    new.stop()
    wait_for(4, old)
    return [
        *("group_created", "member_joined"),
        *("member_joined", "strategy_changed"),
        *("member_gone", "strategy_changed"),
    ]


def librdkafka(broker: Broker, start: StartMember) -> list[str]:
    """A member of another library beside a Java one."""
    group, topic = "epochs-librdkafka", "epochs-librdkafka.orders"
    create_topic(broker, topic, 4)
    java = start(broker, group, [topic], client_id="java", settings=CONSUMER)
    wait_for(4, java)
    reader = Consumer({**broker.client_settings(), "group.id": group, **CONSUMER})
    reader.subscribe([topic])
    _poll_until(reader, 2)
    wait_for(2, java)
    reader.close()
    wait_for(4, java)
    return ["group_created", "member_joined", "member_joined", "member_gone"]
