"""What an administrator asks of a RocketMQ cluster, one connection for each question.

Written for the kit alone: tests must not ask by way of the client that they test.
"""

import contextlib
import json
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Source: org.apache.rocketmq.remoting.protocol.RequestCode and ResponseCode (4.x: common.protocol).
_SEND_MESSAGE = 10
_UPDATE_AND_CREATE_TOPIC = 17
_GET_BROKER_RUNTIME_INFO = 28
_QUERY_CONSUMER_OFFSET = 14
_GET_MAX_OFFSET = 30
_GET_MIN_OFFSET = 31
_GET_CONSUMER_LIST_BY_GROUP = 38
_LOCK_BATCH_MQ = 41
_GET_ROUTEINFO_BY_TOPIC = 105
_GET_BROKER_CLUSTER_INFO = 106
_UPDATE_AND_CREATE_SUBSCRIPTIONGROUP = 200
_DELETE_SUBSCRIPTIONGROUP = 207
_DELETE_TOPIC_IN_BROKER = 215
_DELETE_TOPIC_IN_NAMESRV = 216
_SET_MESSAGE_REQUEST_MODE = 401
_SUCCESS = 0
_TOPIC_NOT_EXIST = 17
_NO_CONSUMER = 1
_SYSTEM_BUSY = 2
_SEND_ATTEMPTS = 50

# 4.9.7; from 4.9.4 on the name server answers such a client in standard JSON.
_CLIENT_VERSION = 407
_READABLE_AND_WRITABLE = 6
_TIMEOUT_S = 10.0
# How many queues of a topic each broker has: readable, writable.
QueueCounts = dict[str, tuple[int, int]]


class RocketMqError(Exception):
    """A server answered with another code than success."""

    def __init__(self, code: int, remark: str) -> None:
        super().__init__(f"code {code}: {remark}")
        self.code = code


@dataclass(frozen=True)
class Answer:
    """One response: its code, its fields and its body as it came."""

    code: int
    remark: str
    fields: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def request(address: str, code: int, fields: Mapping[str, object] | None = None, body: bytes = b"") -> Answer:
    """Send one request and return the response to it.

    Raises:
        OSError: nobody listens there, or no answer came in time.
    """
    header = {
        "code": code,
        "language": "OTHER",
        "version": _CLIENT_VERSION,
        "opaque": 1,
        "flag": 0,
        "serializeTypeCurrentRPC": "JSON",
        "extFields": {key: _text(value) for key, value in (fields or {}).items()},
    }
    encoded = json.dumps(header).encode()
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=_TIMEOUT_S) as connection:
        connection.sendall(struct.pack(">II", 4 + len(encoded) + len(body), len(encoded)) + encoded + body)
        (length,) = struct.unpack(">I", _read(connection, 4))
        frame = _read(connection, length)
    (header_length,) = struct.unpack(">I", frame[:4])
    header_length &= 0xFFFFFF
    answer = json.loads(frame[4 : 4 + header_length])
    return Answer(
        code=answer["code"],
        remark=answer.get("remark") or "",
        fields=answer.get("extFields") or {},
        body=frame[4 + header_length :],
    )


def order(address: str, code: int, fields: Mapping[str, object] | None = None, body: bytes = b"") -> Answer:
    """Do as `request`, for a request that must succeed.

    Raises:
        RocketMqError: it did not.
    """
    answer = request(address, code, fields, body)
    if answer.code != _SUCCESS:
        raise RocketMqError(answer.code, answer.remark)
    return answer


def put_topic(broker: str, topic: str, readable: int, writable: int, ordered: bool = False) -> None:
    """Make a topic on one broker, or give it other numbers of queues."""
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": readable,
        "writeQueueNums": writable,
        "perm": _READABLE_AND_WRITABLE,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
        "order": ordered,
    }
    order(broker, _UPDATE_AND_CREATE_TOPIC, fields)


def remove_topic_from_broker(broker: str, topic: str) -> None:
    """Delete a topic and what it holds on one broker."""
    order(broker, _DELETE_TOPIC_IN_BROKER, {"topic": topic})


def remove_topic_from_name_server(name_server: str, cluster: str, topic: str) -> None:
    """Delete a topic's route."""
    order(name_server, _DELETE_TOPIC_IN_NAMESRV, {"topic": topic, "clusterName": cluster})


def put_group(broker: str, group: str, settings: Mapping[str, object]) -> None:
    """Make a group's settings on one broker, or replace them."""
    body = {"groupName": group, "consumeEnable": True, "consumeBroadcastEnable": True, **settings}
    order(broker, _UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=json.dumps(body).encode())


def remove_group(broker: str, group: str) -> None:
    """Delete a group's settings and offsets on one broker."""
    order(broker, _DELETE_SUBSCRIPTIONGROUP, {"groupName": group, "cleanOffset": True})


def put_request_mode(broker: str, topic: str, group: str, mode: str, share: int) -> None:
    """Let a group read a topic by PULL or by POP (5.x only)."""
    body = {"topic": topic, "consumerGroup": group, "mode": mode, "popShareQueueNum": share}
    order(broker, _SET_MESSAGE_REQUEST_MODE, body=json.dumps(body).encode())


def put_message(broker: str, topic: str, queue_id: int, body: bytes) -> None:
    """Write one message to one queue."""
    fields = {
        "producerGroup": "kit",
        "topic": topic,
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": 4,
        "queueId": queue_id,
        "sysFlag": 0,
        "bornTimestamp": int(time.time() * 1000),
        "flag": 0,
        "properties": "",
        "reconsumeTimes": 0,
        "unitMode": False,
        "batch": False,
    }
    for attempt in range(_SEND_ATTEMPTS):
        try:
            order(broker, _SEND_MESSAGE, fields, body)
        except RocketMqError as error:  # as producers do, it tries again where a broker is busy
            if error.code != _SYSTEM_BUSY or attempt == _SEND_ATTEMPTS - 1:
                raise
            time.sleep(0.1)
        else:
            return


def end_of_queue(broker: str, topic: str, queue_id: int) -> int:
    """Return the offset that the next message of a queue will get."""
    return int(order(broker, _GET_MAX_OFFSET, {"topic": topic, "queueId": queue_id}).fields["offset"])


def start_of_queue(broker: str, topic: str, queue_id: int) -> int:
    """Return the offset of the first message that a queue still has."""
    return int(order(broker, _GET_MIN_OFFSET, {"topic": topic, "queueId": queue_id}).fields["offset"])


def committed_offset(broker: str, group: str, topic: str, queue_id: int) -> int:
    """Return where a group goes on that gets a queue."""
    fields = {"consumerGroup": group, "topic": topic, "queueId": queue_id}
    return int(order(broker, _QUERY_CONSUMER_OFFSET, fields).fields["offset"])


def lock_queues(broker: str, group: str, client_id: str, queues: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Request the locks of queues as an ordered consumer does, and return those that were given."""
    body = {"consumerGroup": group, "clientId": client_id, "mqSet": queues}
    locked: list[dict[str, Any]] = json.loads(order(broker, _LOCK_BATCH_MQ, body=json.dumps(body).encode()).body)[
        "lockOKMQSet"
    ]
    return locked


def member_ids(broker: str, group: str) -> list[str]:
    """Return the client ids that one broker lists, sorted; an id twice if two connections have it."""
    answer = request(broker, _GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})
    if answer.code == _NO_CONSUMER:
        return []
    if answer.code != _SUCCESS:
        raise RocketMqError(answer.code, answer.remark)
    return sorted(json.loads(answer.body)["consumerIdList"])


def route(name_server: str, topic: str) -> QueueCounts:
    """Return how many queues of a topic each broker has, by the name server; empty if it knows none."""
    answer = request(name_server, _GET_ROUTEINFO_BY_TOPIC, {"topic": topic, "acceptStandardJsonOnly": True})
    if answer.code == _TOPIC_NOT_EXIST:
        return {}
    if answer.code != _SUCCESS:
        raise RocketMqError(answer.code, answer.remark)
    queues = json.loads(answer.body)["queueDatas"]
    return {queue["brokerName"]: (queue["readQueueNums"], queue["writeQueueNums"]) for queue in queues}


def name_server_answers(name_server: str) -> bool:
    """Return whether a name server is ready."""
    with contextlib.suppress(OSError):
        return request(name_server, _GET_BROKER_CLUSTER_INFO).code == _SUCCESS
    return False


def broker_answers(broker: str) -> bool:
    """Return whether a broker is ready."""
    with contextlib.suppress(OSError):
        return request(broker, _GET_BROKER_RUNTIME_INFO).code == _SUCCESS
    return False


def _read(connection: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = connection.recv(count)
        if not part:
            raise ConnectionError("the server closed the connection")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
