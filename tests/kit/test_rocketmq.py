"""The kit's RocketMQ: clusters start, stop and come back, and members say which queues they hold."""

import socket
import ssl

import psutil
import pytest

from tests.kit import rocketmq_admin as admin
from tests.kit.rocketmq import rocketmq_49, rocketmq_55
from tests.kit.rocketmq_members import queues_of, wait_until, wait_until_assigned, wait_until_held

pytestmark = pytest.mark.broker


def test_two_members_share_by_avg_and_the_queues_of_a_killed_one_move_to_the_other(each_rocketmq, new_rocketmq_member):
    each_rocketmq.create_topic("shared", 5)
    first = new_rocketmq_member(each_rocketmq, "sharing", ["shared"], instance="a")
    assert first.wait_until_started() == "127.0.0.1@a"
    wait_until_assigned([first], queues_of("shared", 5))
    second = new_rocketmq_member(each_rocketmq, "sharing", ["shared"], instance="b")
    wait_until_assigned([first, second], queues_of("shared", 5))
    assert first.held() == tuple(queues_of("shared", 3))
    wait_until([first, second], lambda: first.held(retries=True)[0] == ("%RETRY%sharing", "broker-a", 0))
    assert each_rocketmq.member_ids("sharing") == ["127.0.0.1@a", "127.0.0.1@b"]

    second.kill()
    wait_until_assigned([first], queues_of("shared", 5))


def test_members_of_both_clients_follow_growth_and_shrinkage_and_leave(each_rocketmq, new_rocketmq_member):
    each_rocketmq.create_topic("growing", 5)
    old = new_rocketmq_member(
        each_rocketmq, "following", ["growing"], instance="a", clients="4.9.8", rebalance_interval_ms=2_000
    )
    new = new_rocketmq_member(
        each_rocketmq, "following", ["growing"], instance="b", clients="5.5.0", rebalance_interval_ms=2_000
    )
    wait_until_assigned([old, new], queues_of("growing", 5))

    each_rocketmq.set_queues("growing", 7)
    wait_until_assigned([old, new], queues_of("growing", 7))
    each_rocketmq.set_queues("growing", readable=3, writable=2)
    assert each_rocketmq.route("growing") == {"broker-a": (3, 2)}
    wait_until_assigned([old, new], queues_of("growing", 3))

    new.stop()
    assert new.reports[-1].event == "stopped"
    wait_until_assigned([old], queues_of("growing", 3))


def test_two_members_with_one_id_take_the_same_share_and_the_other_share_has_no_owner(
    client_rocketmq, new_rocketmq_member
):
    client_rocketmq.create_topic("twofold", 4)
    twins = [new_rocketmq_member(client_rocketmq, "kit-twins", ["twofold"], instance="twin") for _ in range(2)]
    wait_until_held({twin: queues_of("twofold", 2) for twin in twins})
    assert client_rocketmq.member_ids("kit-twins") == ["127.0.0.1@twin", "127.0.0.1@twin"]


def test_members_subscribe_and_unsubscribe_while_they_run(client_rocketmq, new_rocketmq_member):
    client_rocketmq.create_topic("wanted", 2)
    client_rocketmq.create_topic("later", 2)
    member = new_rocketmq_member(client_rocketmq, "choosing", ["wanted"], instance="a", rebalance_interval_ms=2_000)
    wait_until_held({member: queues_of("wanted", 2)})
    member.subscribe("later")
    wait_until_held({member: queues_of("wanted", 2) + queues_of("later", 2)})
    member.unsubscribe("wanted")
    wait_until_held({member: queues_of("later", 2)})


def test_a_member_that_starts_while_no_server_answers_holds_its_queues_later(each_rocketmq, new_rocketmq_member):
    each_rocketmq.create_topic("patient", 1)
    each_rocketmq.name_server.freeze()
    try:
        member = new_rocketmq_member(each_rocketmq, "waiting", ["patient"], instance="a")
        # Whether its start fails or goes on without a route is a race within the client.
        each_rocketmq.wait_until(
            lambda: any(report.event in ("started", "unanswered") for report in member.reports), "it got no answer"
        )
    finally:
        each_rocketmq.name_server.thaw()
    wait_until_held({member: queues_of("patient", 1)})


def test_every_broadcasting_member_holds_every_queue(client_rocketmq, new_rocketmq_member):
    client_rocketmq.create_topic("news", 3)
    members = [
        new_rocketmq_member(client_rocketmq, "listening", ["news"], instance=name, broadcasting=True) for name in "ab"
    ]
    wait_until_held({member: queues_of("news", 3) for member in members})


def test_members_of_different_strategies_each_follow_their_own(client_rocketmq, new_rocketmq_member):
    client_rocketmq.create_topic("mixed", 4)
    blocks = new_rocketmq_member(client_rocketmq, "mixing", ["mixed"], instance="a", strategy="AVG")
    circle = new_rocketmq_member(client_rocketmq, "mixing", ["mixed"], instance="b", strategy="AVG_BY_CIRCLE")
    wait_until_held({blocks: [("mixed", "broker-a", 0), ("mixed", "broker-a", 1)]})
    wait_until_held({circle: [("mixed", "broker-a", 1), ("mixed", "broker-a", 3)]})


@pytest.mark.parametrize(
    ("strategy", "settings", "held"),
    [
        ("CONSISTENT_HASH", {"virtual_nodes": 3}, [0, 1, 2]),
        ("CONFIG", {"queues": "by-CONFIG/broker-a/2"}, [2]),
        ("MACHINE_ROOM_NEARBY", {"broker_rooms": "broker-a/r1", "member_rooms": "127.0.0.1@a/r1"}, [0, 1, 2]),
    ],
)
def test_strategies_take_their_settings(client_rocketmq, new_rocketmq_member, strategy, settings, held):
    topic = f"by-{strategy}"
    client_rocketmq.create_topic(topic, 3)
    member = new_rocketmq_member(
        client_rocketmq, f"group-{strategy}", [topic], instance="a", strategy=strategy, settings=settings
    )
    wait_until_held({member: [(topic, "broker-a", number) for number in held]})


def test_an_ordered_member_has_its_queues_locked_until_it_leaves(each_rocketmq, new_rocketmq_member):
    each_rocketmq.create_topic("in-order", 2)
    member = new_rocketmq_member(each_rocketmq, "ordering", ["in-order"], instance="a", ordered=True)
    wait_until_held({member: queues_of("in-order", 2)})
    queues = [{"topic": "in-order", "brokerName": "broker-a", "queueId": number} for number in range(2)]
    address = each_rocketmq.broker.address
    assert admin.lock_queues(address, "ordering", "somebody-else", queues) == []
    member.stop()
    each_rocketmq.wait_until(
        lambda: len(admin.lock_queues(address, "ordering", "somebody-else", queues)) == 2, "the locks are free"
    )


def test_members_that_read_by_pop_hold_all_queues_of_a_broker_together(rocketmq55, new_rocketmq_member):
    rocketmq55.create_topic("popped", 4)
    rocketmq55.create_group("kit-popping")
    rocketmq55.set_message_request_mode("popped", "kit-popping", "POP", share=-1)
    members = [
        new_rocketmq_member(rocketmq55, "kit-popping", ["popped"], instance=name, client_rebalance=False)
        for name in "ab"
    ]
    wait_until_held({member: [("popped", "broker-a", -1)] for member in members})
    assert {held_queue.mode for held_queue in members[0].reports[-1].held if held_queue.topic == "popped"} == {"pop"}
    rocketmq55.send("popped", 5)
    wait_until(members, lambda: sum(member.records_read for member in members) == 20)


def test_messages_reach_the_members_that_hold_their_queues(each_rocketmq, new_rocketmq_member):
    each_rocketmq.create_topic("sent", 4)
    members = [new_rocketmq_member(each_rocketmq, "reading", ["sent"], instance=name) for name in "ab"]
    wait_until_assigned(members, queues_of("sent", 4))
    each_rocketmq.send("sent", 3, queues=[0])
    wait_until(members, lambda: members[0].records_read == 3)
    assert admin.end_of_queue(each_rocketmq.broker.address, "sent", 0) == 3
    assert members[1].records_read == 0


def test_a_hanging_member_expires_and_comes_back(rocketmq55, new_rocketmq_member):
    rocketmq55.create_topic("kit-hanging", 4)
    steady, hanging = [new_rocketmq_member(rocketmq55, "hangers", ["kit-hanging"], instance=name) for name in "ab"]
    wait_until_assigned([steady, hanging], queues_of("kit-hanging", 4))
    hanging.freeze()
    rocketmq55.wait_until(lambda: rocketmq55.member_ids("hangers") == ["127.0.0.1@a"], "the member has expired")
    wait_until_held({steady: queues_of("kit-hanging", 4)})
    hanging.thaw()
    wait_until_held({steady: queues_of("kit-hanging", 2)})


def test_topics_and_groups_are_deleted(each_rocketmq):
    each_rocketmq.create_topic("short-lived", 1)
    each_rocketmq.create_group("short-lived-group")
    each_rocketmq.delete_group("short-lived-group")
    each_rocketmq.delete_topic("short-lived")
    each_rocketmq.wait_until(lambda: each_rocketmq.route("short-lived") == {}, "the topic is gone")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("start", [rocketmq_55, rocketmq_49])
def test_brokers_and_name_server_come_back_and_a_second_broker_joins(start, tmp_path, new_rocketmq_member):
    with start(tmp_path) as cluster:
        cluster.create_topic("lasting", 2)
        members = [
            new_rocketmq_member(cluster, "staying", ["lasting"], instance=name, rebalance_interval_ms=2_000)
            for name in "ab"
        ]
        wait_until_assigned(members, queues_of("lasting", 2))
        ids = ["127.0.0.1@a", "127.0.0.1@b"]

        both = ["broker-a", "r1@broker-b"]
        second = cluster.add_broker("r1@broker-b")
        cluster.create_topic("lasting", 2, ["r1@broker-b"])
        wait_until_assigned(members, queues_of("lasting", 2, both))
        cluster.wait_until(lambda: cluster.member_ids("staying", "r1@broker-b") == ids, "the second broker lists them")
        choosy = new_rocketmq_member(
            cluster, "choosy", ["lasting"], instance="c", strategy="MACHINE_ROOM", settings={"rooms": "r1"}
        )
        wait_until_held({choosy: queues_of("lasting", 2, ["r1@broker-b"])})

        cluster.send("lasting", 2)  # a broker that was killed has to recover what it has
        second.kill()
        wait_until_assigned(members, queues_of("lasting", 2))
        second.start()
        wait_until_assigned(members, queues_of("lasting", 2, both))
        cluster.wait_until(lambda: cluster.member_ids("staying", "r1@broker-b") == ids, "it lists them again")

        cluster.name_server.kill()
        cluster.name_server.start()
        cluster.wait_until(lambda: cluster.route("lasting") == dict.fromkeys(both, (2, 2)), "the routes are back")
        cluster.broker.restart()
        cluster.wait_until(lambda: cluster.member_ids("staying") == ids, "the restarted broker lists them")


def test_servers_accept_tls_connections_where_it_is_enabled(each_rocketmq):
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    for server in (each_rocketmq.name_server, each_rocketmq.broker):
        host, port = server.address.split(":")
        with (
            socket.create_connection((host, int(port)), timeout=60) as plain,
            trusting.wrap_socket(plain) as connection,
        ):
            assert connection.version() is not None


def test_all_ports_are_open_on_loopback_alone(each_rocketmq):
    for server in (each_rocketmq.name_server, each_rocketmq.broker):
        listening = [
            connection.laddr.ip
            for connection in psutil.Process(server.process.pid).net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        assert listening
        assert {address.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}
