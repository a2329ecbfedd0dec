"""Groups of kinds that have no client here: one member joins by requests that are written by hand.

The broker notes the group as it does for every member; nobody answers for it afterwards.
"""

from __future__ import annotations

import socket
import struct
import time
import uuid
from collections.abc import Callable

from tests.kit.brokers import Broker

# A broker of 4.1 on which there are groups of every kind, whose members stay for ten minutes.
EVERY_KIND = {
    "unstable.api.versions.enable": "true",
    "unstable.feature.versions.enable": "true",
    "group.coordinator.rebalance.protocols": "classic,consumer,share,streams",
    "group.share.max.session.timeout.ms": "600000",
    "group.share.session.timeout.ms": "600000",
    "group.streams.max.session.timeout.ms": "600000",
    "group.streams.session.timeout.ms": "600000",
}
FEATURES = ("share.version=1", "streams.version=1")

_TIMEOUT_S = 120.0
_SESSION_MS = 600_000
_INTERVAL_S = 0.5
# ShareGroupHeartbeatRequest.json and others of Kafka 4.1: API key and version.
_SHARE_HEARTBEAT = (76, 1)
_STREAMS_HEARTBEAT = (88, 0)
_JOIN = (11, 2)
_SYNC = (14, 1)
_FIRST_FLEXIBLE = 76  # of these
# Behind the member's epoch: the interval of heartbeats. Then of a share group a mark that there is an assignment, and
# its topics; of a streams group the lag that recovery accepts, the interval of offsets, an empty array of states, and
# the active tasks. The length of an array is one more than it has elements.
_SHARE_ASSIGNMENT_AT = 4 + 4 + 1
_TASKS_AT = 4 + 4 + 4 + 4 + 1
_BEHIND_ASSIGNMENT = 2
_NO_TAGS = b"\x00"
_NULL = b"\x00"  # Of strings and arrays in flexible versions.
_EMPTY = b"\x01"  # An array of none.
_NULL_STRUCT = b"\xff"
_STRUCT = b"\x01"


def join_share_group(
    broker: Broker, group: str, topic: str, heartbeats: int = 1, *, until_assigned: bool = False
) -> None:
    """Let a member of a share group join; the first heartbeats give it nothing yet.

    Args:
        until_assigned: It sends more of them, until one was answered with partitions, and two behind that one.
    """
    member = str(uuid.uuid4())

    def body(epoch: int) -> bytes:
        subscribed = _NULL if epoch else b"\x02" + _text(topic)
        return _text(group) + _text(member) + _int32(epoch) + _NULL + subscribed + _NO_TAGS

    _send(broker, _SHARE_HEARTBEAT, body, heartbeats, _SHARE_ASSIGNMENT_AT if until_assigned else None)


def join_streams_group(
    broker: Broker, group: str, topic: str, heartbeats: int = 1, *, until_assigned: bool = False
) -> None:
    """Let a member of a streams group join, with one step that reads a topic.

    Args:
        until_assigned: As in ``join_share_group``, until one was answered with tasks.
    """
    member = str(uuid.uuid4())
    step = _text("0") + b"\x02" + _text(topic) + _EMPTY * 5 + _NO_TAGS
    topology = _STRUCT + _int32(1) + b"\x02" + step + _NO_TAGS

    def body(epoch: int) -> bytes:
        joining = [topology, _EMPTY, _EMPTY, _EMPTY, _text("process")]  # with its tasks: active, standby, warm-up
        return b"".join(
            [
                _text(group),
                _text(member),
                *(_int32(epoch), _int32(0)),  # epochs of the member and of the endpoints
                *(_NULL, _NULL),  # instance id, rack
                _int32(-1 if epoch else 60_000),  # rebalance timeout
                *([_NULL_STRUCT, _NULL, _NULL, _NULL, _NULL] if epoch else joining),
                _NULL_STRUCT,  # endpoint
                *(_NULL, _NULL, _NULL),  # tags, offsets, end offsets
                b"\x00",  # does not shut down
                _NO_TAGS,
            ]
        )

    _send(broker, _STREAMS_HEARTBEAT, body, heartbeats, _TASKS_AT if until_assigned else None)


def join_classic_group(broker: Broker, group: str, protocol_type: str) -> str:
    """Let a member of a classic group that assigns no partitions join, and lead; return its id."""
    with _connected(broker) as connection:
        protocols = _int32(1) + _string("sessioned") + _bytes(b"metadata")
        timeouts = _int32(_SESSION_MS) * 2
        answer = _call(connection, _JOIN, _string(group) + timeouts + _string("") + _string(protocol_type) + protocols)
        error, generation = struct.unpack(">hi", answer[4:10])
        assert error == 0, (error, answer)
        _, rest = _read_string(answer[10:])
        _, rest = _read_string(rest)
        member, _ = _read_string(rest)
        assigned = _int32(1) + _string(member) + _bytes(b"assignment")
        answer = _call(connection, _SYNC, _string(group) + _int32(generation) + _string(member) + assigned)
        assert answer[4:6] == b"\x00\x00", answer
        return member


def _send(
    broker: Broker,
    api: tuple[int, int],
    body_of: Callable[[int], bytes],
    heartbeats: int,
    assignment_at: int | None,
) -> None:
    """Send heartbeats, each with the epoch that the last answer names; fail if the coordinator refuses one.

    Args:
        assignment_at: Where behind the epoch an answer has what it assigns. None: not waited for.
    """
    epoch, left = 0, heartbeats
    is_assigned = assignment_at is None
    deadline = time.monotonic() + _TIMEOUT_S
    with _connected(broker) as connection:
        while left:
            answer = _call(connection, api, body_of(epoch))
            # No tags, throttle time, error code, then its message, the member's id and epoch.
            error = struct.unpack(">h", answer[5:7])[0]
            assert error == 0, (error, answer[7:])
            start = 8 + answer[8]
            epoch = struct.unpack(">i", answer[start : start + 4])[0]
            left -= 1
            if assignment_at is not None and not is_assigned:
                is_assigned = answer[start + assignment_at] > _EMPTY[0]
                assert is_assigned or time.monotonic() < deadline, f"no assignment within {_TIMEOUT_S:g} s"
                left = _BEHIND_ASSIGNMENT if is_assigned else max(left, 1)
            if left:
                time.sleep(_INTERVAL_S)


def _connected(broker: Broker) -> socket.socket:
    host, _, port = broker.bootstrap.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=_TIMEOUT_S)


def _call(connection: socket.socket, api: tuple[int, int], body: bytes) -> bytes:
    """Send a request; return its answer behind the correlation id."""
    tags = _NO_TAGS if api[0] >= _FIRST_FLEXIBLE else b""
    header = struct.pack(">hhi", *api, 1) + _string("kit") + tags
    connection.sendall(_bytes(header + body))
    return _read(connection, struct.unpack(">i", _read(connection, 4))[0])[4:]


def _read(connection: socket.socket, length: int) -> bytes:
    read = b""
    while len(read) < length:
        more = connection.recv(length - len(read))
        assert more, f"the broker hung up after {len(read)} of {length} bytes"
        read += more
    return read


def _text(value: str) -> bytes:
    # Short ones only: the length is one byte.
    assert len(value) < 127
    return bytes([len(value) + 1]) + value.encode()


def _int32(value: int) -> bytes:
    return struct.pack(">i", value)


def _string(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def _bytes(value: bytes) -> bytes:
    return _int32(len(value)) + value


def _read_string(data: bytes) -> tuple[str, bytes]:
    end = 2 + int(struct.unpack(">h", data[:2])[0])
    return data[2:end].decode(), data[end:]
