import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.collectors.rocketmq.remoting import bodies
from streaming.collectors.rocketmq.remoting.bodies import BodyError
from streaming.collectors.rocketmq.remoting.messages import (
    Assignment,
    BrokerData,
    MessageQueue,
    MessageRequestMode,
    ProcessQueue,
    QueueData,
    QueueOffsets,
    TopicRoute,
)
from tests.streaming.collectors.rocketmq.golden_answers import VERSIONS, members, recorded

# Recorded answers, by the function that decodes them.
_DECODERS = {
    "cluster": bodies.cluster_info,
    "route": lambda body: bodies.topic_route("orders", body),
    "route-old": lambda body: bodies.topic_route("orders", body),
    "runtime": bodies.broker_runtime,
    "topic-configs": bodies.topic_configs,
    "groups": bodies.groups,
    "connections-plain": bodies.connections,
    "connections-ordered": bodies.connections,
    "stats-plain": bodies.consume_stats,
    "running-plain-1": bodies.running_info,
    "running-ordered": bodies.running_info,
    "running-everyone": bodies.running_info,
}
_ONLY_55 = {
    "proxy-classic": bodies.connections,
    "proxy-modern": bodies.connections,
    "running-popping": bodies.running_info,
    "modes": bodies.message_request_modes,
    "assignment": bodies.assignments,
    "assignment-popping": bodies.assignments,
}
_CASES = [(version, name) for version in VERSIONS for name in _DECODERS] + [("5.5.0", name) for name in _ONLY_55]
_ALL = _DECODERS | _ONLY_55


def _members_with_running_info(version):
    return [name for name in members(version) if name != "servers"]


def _queues(*numbers, topic="orders"):
    return [MessageQueue(topic, "broker-a", number) for number in numbers]


@pytest.mark.parametrize(
    ("version", "name"), [(version, name) for version in VERSIONS for name in _members_with_running_info(version)]
)
def test_running_info_has_the_queues_that_the_member_itself_reports(version, name):
    info = bodies.running_info(recorded(version, f"running-{name}").body)
    held = [MessageQueue(*queue) for queue in members(version)[name]["held"]]
    assert sorted([*info.pop_queues, *info.queues]) == held
    assert not any(queue.dropped for queue in info.queues.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_running_info_of_an_ordered_member(version):
    info = bodies.running_info(recorded(version, "running-ordered").body)
    package = "org.apache.rocketmq.client.consumer.rebalance"
    assert re.fullmatch(f"{re.escape(package)}.AllocateMessageQueueConsistentHash@[0-9a-f]+", info.strategy)
    assert (info.is_ordered, info.message_model, info.consume_type) == (True, "CLUSTERING", "CONSUME_PASSIVELY")
    assert info.is_client_rebalance is {"4.9.7": None, "5.5.0": True}[version]
    assert info.client_version == {"4.9.7": "V4_9_8", "5.5.0": "V5_5_0"}[version]
    assert {subscription.topic for subscription in info.subscriptions} == {"orders", "%RETRY%ordered"}
    held = info.queues[MessageQueue("orders", "broker-a", 0)]
    assert (held.locked, held.dropped, held.commit_offset) == (True, False, 3)
    assert min(held.last_pull_timestamp, held.last_consume_timestamp) > 1_700_000_000_000


@pytest.mark.parametrize("version", VERSIONS)
def test_running_info_of_a_broadcasting_member(version):
    info = bodies.running_info(recorded(version, "running-everyone").body)
    assert (info.is_ordered, info.message_model) == (False, "BROADCASTING")
    assert list(info.queues) == _queues(0, 1, 2, 3, 4)


def test_running_info_of_a_member_that_pops():
    info = bodies.running_info(recorded("5.5.0", "running-popping").body)
    ((queue, state),) = info.pop_queues.items()
    assert queue == MessageQueue("orders", "broker-a", -1)
    assert not state.dropped
    assert info.is_client_rebalance is False


@pytest.mark.parametrize("version", VERSIONS)
def test_consumer_connections_are_decoded(version):
    body = bodies.connections(recorded(version, "connections-plain").body)
    held = members(version)
    ids = [held["plain-1"]["client_id"], held["plain-2"]["client_id"]]
    assert sorted(connection.client_id for connection in body.connections) == ids
    assert {(connection.language, connection.version) for connection in body.connections} == {
        ("JAVA", {"4.9.7": 409, "5.5.0": 513}[version])
    }
    assert len({connection.client_addr for connection in body.connections}) == 2
    assert (body.consume_type, body.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")
    assert sorted(body.subscriptions) == ["%RETRY%plain", "bills", "orders"]
    orders = body.subscriptions["orders"]
    assert (orders.topic, orders.sub_string) == ("orders", "*")
    assert orders.sub_version > 1_700_000_000_000
    everyone = bodies.connections(recorded(version, "connections-everyone").body)
    assert everyone.message_model == "BROADCASTING"
    odd = bodies.connections(recorded(version, "connections-ordered").body)
    assert odd.connections[0].client_id == held["ordered"]["client_id"] == '127.0.0.1@größe "5"\\工'


@pytest.mark.parametrize(
    ("name", "topics"), [("proxy-modern", ["orders"]), ("proxy-classic", ["%RETRY%classic", "orders"])]
)
def test_the_clients_of_a_proxy_are_decoded(name, topics):
    body = bodies.connections(recorded("5.5.0", name).body)
    (client,) = body.connections
    assert re.fullmatch(r"127\.0\.0\.1@c1" if name == "proxy-classic" else r"\w+@\d+@0@\w+", client.client_id)
    assert client.client_addr.startswith("127.0.0.1:")
    # Of both, though the client of gRPC is 5.0.8.
    assert (client.language, client.version) == ("JAVA", 513)
    assert (body.consume_type, body.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")
    assert sorted(body.subscriptions) == topics


@pytest.mark.parametrize("version", VERSIONS)
def test_name_server_routes_and_clusters_are_decoded(version):
    address = members(version)["servers"]["broker"]
    expected = BrokerData("broker-a", "kit", {0: address})
    info = bodies.cluster_info(recorded(version, "cluster").body)
    assert info.brokers == {"broker-a": expected}
    assert info.brokers["broker-a"].master == info.brokers["broker-a"].address == address
    for name in ("route", "route-old"):
        route = bodies.topic_route("orders", recorded(version, name).body)
        assert route == TopicRoute("orders", (expected,), (QueueData("broker-a", 5, 6),))
        assert list(route.readable_queues()) == _queues(0, 1, 2, 3, 4)


@pytest.mark.parametrize("version", VERSIONS)
def test_broker_runtime_topics_and_groups_are_decoded(version):
    runtime = bodies.broker_runtime(recorded(version, "runtime").body)
    assert runtime.version == f"V{version.replace('.', '_')}"
    assert runtime.boot_timestamp_ms > 1_700_000_000_000
    topics = bodies.topic_configs(recorded(version, "topic-configs").body).entries
    assert (topics["orders"].read_queue_nums, topics["bills"].read_queue_nums, topics["orders"].perm) == (5, 3, 6)
    groups = bodies.groups(recorded(version, "groups").body).entries
    assert {"plain", "ordered", "everyone", "SELF_TEST_C_GROUP"} <= set(groups)


@pytest.mark.parametrize("version", VERSIONS)
def test_consume_stats_are_decoded(version):
    stats = bodies.consume_stats(recorded(version, "stats-plain").body)
    orders = {queue: stats.offsets[queue] for queue in _queues(0, 1, 2, 3, 4)}
    assert all(offsets.broker_offset == 3 for offsets in orders.values())
    assert all(offsets.lag == 3 - offsets.consumer_offset for offsets in orders.values())
    assert list(stats.offsets) == sorted(stats.offsets)
    assert bodies.consume_stats(recorded(version, "stats-nobody").body).offsets == {}


def test_assignments_and_modes_of_5():
    assert bodies.message_request_modes(recorded("5.5.0", "modes").body) == (
        MessageRequestMode("orders", "popping", "POP", -1),
    )
    assert bodies.assignments(recorded("5.5.0", "assignment-popping").body) == (Assignment(*_queues(-1), "POP"),)
    body = bodies.assignments(recorded("5.5.0", "assignment").body)
    held = [MessageQueue(*queue) for queue in members("5.5.0")["plain-1"]["held"] if queue[0] == "orders"]
    assert [assignment.message_queue for assignment in body] == held
    assert bodies.assignments(b"{}") is None
    assert bodies.assignments(b'{"messageQueueAssignments":[]}') == ()


@pytest.mark.parametrize(("version", "name"), _CASES)
def test_every_way_of_reading_gives_the_same(version, name):
    body = recorded(version, name).body
    decoded = _ALL[name](body)
    # A bare word as a key: neither msgspec nor the substitution can read it.
    assert _ALL[name](b"{oddity:1," + body.lstrip()[1:]) == decoded


@pytest.mark.parametrize(("version", "name"), _CASES)
def test_no_recorded_answer_has_a_reference_and_one_that_has_is_refused(version, name):
    body = recorded(version, name).body
    assert b"$ref" not in body
    with pytest.raises(bodies.BodyError, match="reference"):
        _ALL[name](b'{"oddity":{"$ref":"$"},' + body.lstrip()[1:])


@pytest.mark.parametrize(("version", "name"), _CASES)
def test_unknown_fields_are_ignored(version, name):
    body = recorded(version, name).body
    more = b'{"unknown":{"deep":[{"topic":null},1.5]},"more":null,'
    assert _ALL[name](more + body.lstrip()[1:]) == _ALL[name](body)


@pytest.mark.parametrize(
    ("decode", "body", "code", "place"),
    [
        (bodies.cluster_info, b'{"brokerAddrTable":{"a":{"brokerAddrs":{0:5},"brokerName":"a"}}}', 106, "brokerAddrs"),
        (bodies.cluster_info, b'{"brokerAddrTable":{"a":{"brokerAddrs":{"0":"x"}}}}', 106, "brokerName"),
        (bodies.cluster_info, b'{"brokerAddrTable":[]}', 106, "$.brokerAddrTable"),
        (bodies.cluster_info, b"[]", 106, "object"),
        (lambda body: bodies.topic_route("t", body), b'{"queueDatas":[{"brokerName":"a"}]}', 105, "readQueueNums"),
        (bodies.topic_configs, b'{"topicConfigTable":{"t":{"topicName":"t"}}}', 21, "readQueueNums"),
        (bodies.topic_configs, b'{"dataVersion":{}}', 21, "topicConfigTable"),
        (bodies.groups, b'{"subscriptionGroupTable":{"g":{}}}', 201, "groupName"),
        (bodies.connections, b'{"connectionSet":[{"clientId":"a"}]}', 203, "clientAddr"),
        (bodies.connections, b'{"connectionSet":[{"clientId":1,"clientAddr":"b"}]}', 203, "clientId"),
        (bodies.connections, b'{"subscriptionTable":{}}', 203, "connectionSet"),
        (bodies.running_info, b'{"properties":{}}', 307, "mqTable"),
        (bodies.running_info, b'{"mqTable":{}}', 307, "properties"),
        (bodies.running_info, b'{"properties":{},"mqTable":{"odd":{}}}', 307, "$.mqTable"),
        (bodies.running_info, b'{"properties":{},"mqTable":{{"topic":"t"}:{}}}', 307, "$.mqTable"),
        (
            bodies.running_info,
            b'{"properties":{},"mqTable":{{"brokerName":"b","queueId":0,"topic":"t"}:{"lastPullTimestamp":"soon"}}}',
            307,
            "lastPullTimestamp",
        ),
        (
            bodies.running_info,
            b'{"properties":{},"mqTable":{},"mqPopTable":{{"brokerName":"b","queueId":0,"topic":"t"}:[]}}',
            307,
            "mqPopTable",
        ),
        (
            bodies.consume_stats,
            b'{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:{"brokerOffset":1}}}',
            208,
            "consumerOffset",
        ),
        (bodies.consume_stats, b"{}", 208, "offsetTable"),
        (bodies.message_request_modes, b'{"messageRequestModeMap":{"t":{"g":{"topic":"t"}}}}', 402, "consumerGroup"),
        (bodies.assignments, b'{"messageQueueAssignments":[{"mode":"POP"}]}', 400, "messageQueue"),
        (bodies.broker_runtime, b'{"table":{"a":1}}', 28, "$.table[...]"),
        (bodies.broker_runtime, b"", 28, "empty"),
        (bodies.broker_runtime, b"\xff\xfe", 28, "character 0"),
        (bodies.broker_runtime, b"{" * 1_000_000, 28, "levels"),
        (bodies.broker_runtime, b'{"x":' + b"[" * 1_000_000, 28, "levels"),
    ],
)
def test_a_wrong_body_is_named_with_its_code_and_field(decode, body, code, place):
    with pytest.raises(BodyError) as caught:
        decode(body)
    assert caught.value.code == code
    assert place in caught.value.problem


def test_bodies_of_clients_in_other_languages_are_decoded():
    # Go: another order of a key's properties, null for an empty list. C++: line breaks, numbers as texts.
    go = (
        b'{"properties":{"PROP_CLIENT_VERSION":"V4_9_1","none":null},"statusTable":{},"subscriptionSet":null,'
        b'"mqTable":{{"topic":"T","brokerName":"b","queueId":1}:{"locked":false,"lastPullTimestamp":5}}}'
    )
    cpp = (
        b'{"mqTable":{{\n\t"brokerName" : "b",\n\t"queueId" : 1,\n\t"topic" : "T"\n}:{\n\t"droped" : "false",'
        b'\n\t"lastPullTimestamp" : "5",\n\t"locked" : "false"\n}},"properties":{"PROP_CLIENT_VERSION":"V4_9_1"}}'
    )
    queue = MessageQueue("T", "b", 1)
    for body in (go, cpp):
        info = bodies.running_info(body)
        assert info.queues == {queue: ProcessQueue(locked=False, last_pull_timestamp=5)}
        assert (info.client_version, info.subscriptions) == ("V4_9_1", ())


def test_a_text_in_the_form_of_a_key_stays_a_text():
    text = '[{"brokerName":"b","queueId":0,"topic":"T"}:1'
    body = json.dumps({"properties": {"a": text}, "mqTable": {}}).encode()
    body = body.replace(b'"mqTable": {}', b'"mqTable":{{"brokerName":"b","queueId":0,"topic":"T"}:{}}')
    info = bodies.running_info(body)
    assert info.properties == {"a": text}
    assert list(info.queues) == [MessageQueue("T", "b", 0)]


def test_names_of_queues_may_be_odd():
    names = ['a"b', "ü", "a\\b", "a b", "", "\\u0000", "a\0b"]
    for name in names:
        key = json.dumps({"brokerName": name, "queueId": 0, "topic": name}, separators=(",", ":"))
        body = '{"offsetTable":{' + key + ':{"brokerOffset":7,"consumerOffset":5}}}'
        assert bodies.consume_stats(body.encode()).offsets == {MessageQueue(name, name, 0): QueueOffsets(7, 5)}


def test_a_static_topic_is_read_from_its_route():
    body = (
        b'{"brokerDatas":[],"filterServerTable":{},"queueDatas":[],"topicQueueMappingByBroker":{"a":{"bname":"a",'
        b'"currIdMap":{0:0},"dirty":false,"epoch":5,"scope":"__global__","topic":"t","totalQueues":2}}}'
    )
    route = bodies.topic_route("t", body)
    assert [queue.broker_name for queue in route.readable_queues()] == ["__syslo__global__"] * 2


@given(st.sampled_from(_CASES), st.data())
def test_mutated_bodies_parse_or_raise_one_error_type(case, data):
    version, name = case
    body = bytearray(recorded(version, name).body[:4_000])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(body)))
        piece = data.draw(st.binary(max_size=3) | st.sampled_from([b"{", b'"', b"null", b"-1", b'{"$ref":"$"}', b"{{"]))
        body[place : place + data.draw(st.integers(0, 12))] = piece
    try:
        _ALL[name](bytes(body))
    except BodyError as error:
        assert error.problem  # noqa: PT017 - either outcome is right
