"""Members and brokers in racks: an assignment by racks is recomputed, and equals what the members hold."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.kit.brokers import Broker
from tests.kit.java_members import WAIT_S, wait_until
from tests.kit.kafka_cluster import OFFSETS_PARTITIONS, KafkaCluster, three_brokers
from tests.kit.light_members import start_light_member
from tests.kit.members import Member
from tests.kit.topics import create_topic
from tests.live.collecting import collecting, run_of_folder

# Three brokers for this alone.
pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(600)]
RACKS = ("east", "north", "west")
PARTITIONS = 6
StartMember = Callable[..., Member]


def test_racks_are_counted_as_each_library_does(new_member: StartMember, tmp_path: Path) -> None:
    def java(strategy: str) -> Callable[[Broker, str, str], Member]:
        def start(broker: Broker, group: str, rack: str) -> Member:
            return new_member(broker, group, [group], client_id=rack, rack=rack, strategies=(strategy,))

        return start

    def server(broker: Broker, group: str, rack: str) -> Member:
        return new_member(broker, group, [group], client_id=rack, rack=rack, settings={"group.protocol": "consumer"})

    def librdkafka(broker: Broker, group: str, rack: str) -> Member:
        settings = {"client.id": f"rdkafka-{rack}", "client.rack": rack, "partition.assignment.strategy": "range"}
        return start_light_member(broker, group, [group], settings)

    stories = {
        "racks-range": java("range"),
        "racks-cooperative": java("cooperative-sticky"),
        "racks-librdkafka": librdkafka,
        "racks-uniform": server,
    }
    with three_brokers(tmp_path / "cluster", racks=RACKS) as cluster:
        for group in stories:
            create_topic(cluster, group, PARTITIONS)
        with (
            collecting(cluster, tmp_path / "events", partitions=OFFSETS_PARTITIONS),
            ThreadPoolExecutor(len(stories)) as pool,
        ):
            playing = [pool.submit(_play, cluster, group, start) for group, start in stories.items()]
            members = {group: played.result() for group, played in zip(stories, playing, strict=True)}
        for group in ("racks-range", "racks-librdkafka"):
            held = {rack: [number for _, number in consumer.owned] for rack, consumer in members[group].items()}
            assert held == _by_rack(cluster, group), group
        for consumers in members.values():
            for member in consumers.values():
                member.kill()
    run = run_of_folder(tmp_path / "events")
    for group in stories:
        rows = sorted((row for row in run.rebalances if row.group_id == group), key=lambda row: row.generation)
        shown = [(row.generation, row.library, row.agrees, row.agrees_reason, row.queues_differing) for row in rows]
        assert [row.members_after for row in rows][-1] == len(RACKS), shown
        assert all(row.agrees or row.agrees_reason in ("no_members", "no_target", "topics_unknown") for row in rows), (
            shown
        )
        assert rows[-1].agrees, shown


def _play(broker: Broker, group: str, start: Callable[[Broker, str, str], Member]) -> dict[str, Member]:
    """Let one member of each rack join; return them once they share the topic."""
    members: dict[str, Member] = {}

    def share() -> bool:
        held = [len(member.owned) for member in members.values()]
        return sum(held) == PARTITIONS and all(held)

    for rack in RACKS:
        members[rack] = start(broker, group, rack)
        wait_until(list(members.values()), share)
    return members


def _by_rack(cluster: KafkaCluster, topic: str) -> dict[str, list[int]]:
    """Return which partitions have their one copy in which rack."""
    found = AdminClient(cluster.client_settings()).list_topics(topic, timeout=WAIT_S).topics[topic].partitions
    return {
        rack: [number for number, partition in sorted(found.items()) if partition.replicas == [node]]
        for node, rack in enumerate(RACKS, 1)
    }
