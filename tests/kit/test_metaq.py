"""The kit's MetaQ: brokers come and go, members say what they took."""

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.kit.metaq import MetaqCluster, metaq_cluster
from tests.kit.metaq_members import MetaqMember, partitions_of, wait_until, wait_until_shared

pytestmark = pytest.mark.broker


def test_two_members_share_in_blocks_and_a_killed_one_loses_its_share(
    metaq: MetaqCluster, new_metaq_member: Callable[..., MetaqMember]
) -> None:
    first = new_metaq_member(metaq, "sharing", ["kit-orders"], consumer_id="a")
    wait_until_shared([first], partitions_of("kit-orders", 12))
    second = new_metaq_member(metaq, "sharing", ["kit-orders"], consumer_id="b")
    wait_until_shared([first, second], partitions_of("kit-orders", 12))
    # Sorted as strings: 0-0, 0-1, 0-10, 0-11, 0-2, 0-3.
    assert sorted(number for _, _, number in first.held) == [0, 1, 2, 3, 10, 11]
    assert first.member_id == "sharing_a"
    second.kill()
    wait_until_shared([first], partitions_of("kit-orders", 12))
    first.stop()
    assert first.reports[-1].event == "stopped"


def test_consistent_hashing_assigns_by_its_ring(
    metaq: MetaqCluster, new_metaq_member: Callable[..., MetaqMember]
) -> None:
    members = [
        new_metaq_member(metaq, "GroupC", ["kit-orders"], consumer_id=name, strategy="CONSIST")
        for name in ("idA", "idB")
    ]
    wait_until_shared(members, partitions_of("kit-orders", 12))
    assert sorted(number for _, _, number in members[1].held) == [0, 2, 3, 4, 11]


def test_partitions_grow_and_shrink_and_a_second_broker_adds_its_own(
    new_metaq_member: Callable[..., MetaqMember], tmp_path: Path
) -> None:
    with metaq_cluster(tmp_path, {"orders": 5}) as cluster:
        member = new_metaq_member(cluster, "following", ["orders"])
        wait_until_shared([member], partitions_of("orders", 5))
        for count in (7, 3):
            cluster.broker.set_topics({"orders": count})
            wait_until_shared([member], partitions_of("orders", count))
        with cluster.add_broker({"orders": 2}):
            wait_until_shared([member], partitions_of("orders", 3) + partitions_of("orders", 2, broker=1))
        wait_until_shared([member], partitions_of("orders", 3))


def test_a_frozen_member_expires_and_comes_back(new_metaq_member: Callable[..., MetaqMember], tmp_path: Path) -> None:
    with metaq_cluster(tmp_path, {"orders": 4}) as cluster:
        members = [new_metaq_member(cluster, "hanging", ["orders"], consumer_id=name) for name in "ab"]
        wait_until_shared(members, partitions_of("orders", 4))
        members[1].freeze()
        wait_until(members, lambda: len(members[0].held) == 4)
        members[1].thaw()
        wait_until_shared(members, partitions_of("orders", 4))


def test_brokers_and_zookeeper_come_back_with_what_they_had_and_listen_on_loopback_alone(
    new_metaq_member: Callable[..., MetaqMember], tmp_path: Path
) -> None:
    with metaq_cluster(tmp_path, {"orders": 4}) as cluster:
        for pid in (cluster.zookeeper.server.pid, cluster.broker.server.pid):
            listening = [
                connection.laddr.ip
                for connection in psutil.Process(pid).net_connections()
                if connection.status == "LISTEN"
            ]
            assert listening
            assert set(listening) <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
        member = new_metaq_member(cluster, "enduring", ["orders"])
        wait_until_shared([member], partitions_of("orders", 4))
        cluster.broker.stop()
        wait_until([member], lambda: not member.held)
        cluster.broker.start()
        wait_until_shared([member], partitions_of("orders", 4))
        cluster.zookeeper.stop()
        cluster.zookeeper.start()
        cluster.broker.set_topics({"orders": 6})
        wait_until_shared([member], partitions_of("orders", 6))
