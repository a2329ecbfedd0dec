"""Groups of kinds that have no client here: one member joins by one request, written by hand.

The broker notes the group as it does for every member; nobody answers for it afterwards.
"""

from __future__ import annotations

import socket
import struct
import uuid

from tests.kit.brokers import Broker

_TIMEOUT_S = 120.0
# ShareGroupHeartbeatRequest.json and StreamsGroupHeartbeatRequest.json of Kafka 4.1: API key and version.
_SHARE_HEARTBEAT = (76, 1)
_STREAMS_HEARTBEAT = (88, 0)
_NO_TAGS = b"\x00"
_NULL = b"\x00"  # Of strings and arrays in flexible versions.
_EMPTY = b"\x01"  # An array of none.
_NULL_STRUCT = b"\xff"
_STRUCT = b"\x01"


def join_share_group(broker: Broker, group: str, topic: str) -> None:
    """Let a member of a share group join."""
    subscribed = b"\x02" + _text(topic)
    body = _text(group) + _text(str(uuid.uuid4())) + _int32(0) + _NULL + subscribed + _NO_TAGS
    _send(broker, _SHARE_HEARTBEAT, body)


def join_streams_group(broker: Broker, group: str, topic: str) -> None:
    """Let a member of a streams group join, with one step that reads a topic."""
    step = _text("0") + b"\x02" + _text(topic) + _EMPTY * 5 + _NO_TAGS
    topology = _STRUCT + _int32(1) + b"\x02" + step + _NO_TAGS
    body = b"".join(
        [
            _text(group),
            _text(str(uuid.uuid4())),
            *(_int32(0), _int32(0)),  # epochs of the member and of the endpoints
            *(_NULL, _NULL),  # instance id, rack
            _int32(60_000),  # rebalance timeout
            topology,
            *(_EMPTY, _EMPTY, _EMPTY),  # active, standby and warm-up tasks
            _text("process"),
            _NULL_STRUCT,  # endpoint
            *(_NULL, _NULL, _NULL),  # tags, offsets, end offsets
            b"\x00",  # does not shut down
            _NO_TAGS,
        ]
    )
    _send(broker, _STREAMS_HEARTBEAT, body)


def _send(broker: Broker, api: tuple[int, int], body: bytes) -> None:
    """Send a request until the coordinator has loaded its groups; fail if it refuses."""
    host, _, port = broker.bootstrap.rpartition(":")
    header = struct.pack(">hhih", *api, 1, 3) + b"kit" + _NO_TAGS
    with socket.create_connection((host, int(port)), timeout=_TIMEOUT_S) as connection:
        connection.sendall(struct.pack(">i", len(header + body)) + header + body)
        answer = _read(connection, struct.unpack(">i", _read(connection, 4))[0])
    # Correlation id, no tags, throttle time, error code, then its message.
    error = struct.unpack(">h", answer[9:11])[0]
    assert error == 0, (error, answer[11:])


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
