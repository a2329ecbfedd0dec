"""The kit itself: brokers start, stop and come back, and members say what they were given."""

import contextlib
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from tests.kit.brokers import kafka_41
from tests.kit.members import wait_until_assigned
from tests.kit.rights import allow, forbid_everything
from tests.kit.topics import add_partitions, create_topic, delete_topic, send

_ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.broker


def partitions(topic, count):
    return [(topic, number) for number in range(count)]


def test_two_members_share_the_partitions_and_a_killed_one_loses_its_share(each_kafka, new_member):
    create_topic(each_kafka, "shared", 4)
    first = new_member(each_kafka, "sharing", ["shared"], client_id="first", session_timeout_ms=30_000)
    assert wait_until_assigned([first], partitions("shared", 4)) == 1
    second = new_member(each_kafka, "sharing", ["shared"], client_id="second")
    assert wait_until_assigned([first, second], partitions("shared", 4)) == 2
    assert first.owned == (("shared", 0), ("shared", 1))
    assert first.member_id.startswith("first-")

    second.kill()
    assert wait_until_assigned([first], partitions("shared", 4)) == 3


def test_members_follow_new_subscriptions_and_new_partitions_and_leave(each_kafka, new_member):
    create_topic(each_kafka, "old", 2)
    create_topic(each_kafka, "new", 2)
    first = new_member(each_kafka, "following", ["old"], client_id="first", strategies=["roundrobin", "range"])
    second = new_member(each_kafka, "following", ["old"], client_id="second", strategies=["roundrobin"])
    wait_until_assigned([first, second], partitions("old", 2))

    second.subscribe(["new"])
    wait_until_assigned([first, second], partitions("old", 2) + partitions("new", 2))
    add_partitions(each_kafka, "new", 3)
    wait_until_assigned([first, second], partitions("old", 2) + partitions("new", 3))
    second.wait_until(lambda: second.owned == tuple(partitions("new", 3)))

    generation = first.generation
    second.stop()
    assert second.reports[-1].event == "closed"
    # A leader of 1.0 assigns once more as soon as it sees that no member wants the other topic: that passes.
    first.wait_until(lambda: first.generation > generation and first.owned == tuple(partitions("old", 2)))


def test_a_static_member_comes_back_into_the_same_generation(kafka41, new_member):
    create_topic(kafka41, "static", 2)
    # Back in time on a busy machine too.
    seat = {"client_id": "one", "instance_id": "seat-1", "session_timeout_ms": 60_000}
    member = new_member(kafka41, "standing", ["static"], **seat)
    generation = wait_until_assigned([member], partitions("static", 2))
    member.kill()
    again = new_member(kafka41, "standing", ["static"], **seat)
    assert wait_until_assigned([again], partitions("static", 2)) == generation
    assert again.member_id != member.member_id


@pytest.mark.parametrize("clients", ["1.0.2", "2.8.2", "3.9.1"])
def test_older_clients_read_from_the_brokers_that_still_know_them(clients, request, new_member):
    broker = request.getfixturevalue("kafka10" if clients == "1.0.2" else "kafka41")
    topic = f"for-{clients}"
    create_topic(broker, topic, 2)
    send(broker, topic, [b"one", b"two"])
    member = new_member(broker, f"clients-{clients}", [topic], client_id="old", clients=clients)
    assert wait_until_assigned([member], partitions(topic, 2)) == 1
    member.wait_until(lambda: member.records_read == 2)
    member.commit()
    member.wait_until(lambda: member.reports[-1].command == "commit")
    committed = _committed(broker, f"clients-{clients}", topic, 2)
    assert sum(committed) == 2


def test_a_cooperative_member_is_assigned_only_what_is_new(kafka41, new_member):
    create_topic(kafka41, "cooperative", 4)
    start = {"strategies": ["cooperative-sticky"]}
    first = new_member(kafka41, "cooperating", ["cooperative"], client_id="first", **start)
    wait_until_assigned([first], partitions("cooperative", 4))
    second = new_member(kafka41, "cooperating", ["cooperative"], client_id="second", **start)
    # The first gives up two in one generation, the second gets them in the next.
    assert wait_until_assigned([first, second], partitions("cooperative", 4)) == 3
    assert [report.changed for report in first.assignments[1:]] == [(), ()]


def test_a_broker_that_comes_back_has_its_port_its_topics_and_its_groups(tmp_path, new_member):
    with kafka_41(tmp_path / "broker") as broker:
        create_topic(broker, "kept", 2)
        member = new_member(broker, "enduring", ["kept"], client_id="one", session_timeout_ms=30_000)
        generation = wait_until_assigned([member], partitions("kept", 2))
        pid = broker.server.pid
        broker.stop()
        assert not psutil.pid_exists(pid)
        broker.start()
        assert broker.server.pid != pid
        add_partitions(broker, "kept", 3)
        assert wait_until_assigned([member], partitions("kept", 3)) > generation
        delete_topic(broker, "kept")


def test_a_user_has_exactly_the_rights_that_were_given(tmp_path):
    with kafka_41(tmp_path / "broker", users={"monitor": "secret"}) as broker:
        create_topic(broker, "visible", 1)
        create_topic(broker, "hidden", 1)
        allow(broker, "monitor", "DESCRIBE", "TOPIC", "visible")
        client = AdminClient(broker.client_settings("monitor"))
        assert set(client.list_topics(timeout=60).topics) == {"visible"}
        forbid_everything(broker, "monitor")
        assert set(client.list_topics(timeout=60).topics) == set()


def test_a_broker_takes_settings_of_the_test(tmp_path):
    with kafka_41(tmp_path / "broker", {"offsets.topic.num.partitions": "3"}) as broker:
        resource = ConfigResource(ConfigResource.Type.BROKER, "1")
        client = AdminClient(broker.client_settings())
        settings = client.describe_configs([resource])[resource].result(30)
        assert settings["offsets.topic.num.partitions"].value == "3"


def test_no_broker_outlives_the_process_that_started_it(tmp_path):
    program = (
        "import os, sys, psutil; from pathlib import Path; from tests.kit.brokers import zookeeper\n"
        "with zookeeper(Path(sys.argv[1])):\n"
        "    os.write(1, str(psutil.Process().children()[0].pid).encode()); os._exit(9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], cwd=_ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 9, done.stderr
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(done.stdout)).wait(timeout=60)


def _committed(broker, group, topic, count):
    consumer = Consumer(broker.client_settings() | {"group.id": group})
    try:
        requested = [TopicPartition(topic, number) for number in range(count)]
        return [max(answer.offset, 0) for answer in consumer.committed(requested, timeout=30)]
    finally:
        consumer.close()
