"""Shell: the Kafka release of each group's coordinator, as far as its assignors depend on it.

Features do not show it: 4.0.0 has the same as 4.0.2. The supported request versions do: only 4.0.0 rejects JoinGroup
before version 2, and ConsumerGroupHeartbeat has only version 0 in the previews of the protocol, 3.7 to 3.9. Brokers
answer this request before login. If a broker does not, for example because it requires client certificates from a Java
key store, its release stays unknown.

Source: Kafka's protocol guide, ApiVersions version 0; kafka-clients 3.9.1, 4.0.0 and 4.1.1 ``ApiMessageType``.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final, Protocol, TypeAlias

from streaming.collectors.kafka.options import KafkaOptions
from udfs.jvm.collections import string_hash
from udfs.kafka.consumer_offsets import GroupPatterns
from udfs.model.events import GroupSettings, event_fields
from udfs.strategies.kafka.coordinator_release import COORDINATOR, PREVIEW, RELEASES, TODAY

_EVERY_MS: Final = 60_000
_TIMEOUT_S: Final = 2.0
_MOST_BYTES: Final = 1 << 16
_API_VERSIONS, _JOIN_GROUP, _CONSUMER_GROUP_HEARTBEAT = 18, 11, 68
_CLIENT = b"rebalance-monitor"
Place: TypeAlias = tuple[str, int]
# For each kind of request, the lowest and the highest version.
Versions: TypeAlias = Mapping[int, tuple[int, int]]


class GroupsView(Protocol):
    """The part of a cluster that shows where its groups are coordinated."""

    def new_protocol_groups(self) -> Sequence[str]:
        """Return the consumer groups of the new protocol."""

    def coordinators(self) -> Sequence[Place | None]:
        """Return host and port of the leader of each partition of ``__consumer_offsets``; None if it has no leader."""


class CoordinatorReleases:
    """Reports the release of each group's coordinator, and each change of it, as a setting of the group's strategy."""

    def __init__(self, options: KafkaOptions, patterns: GroupPatterns) -> None:
        self._options = options
        self._patterns = patterns
        self._reported: dict[str, str] = {}
        self._next_ms = 0

    def diff(self, view: GroupsView, at_ms: int) -> list[GroupSettings]:
        """Return new releases, at most once in a minute."""
        if at_ms < self._next_ms:
            return []
        self._next_ms = at_ms + _EVERY_MS
        groups = [group for group in view.new_protocol_groups() if self._patterns.follow(group)]
        places = view.coordinators() if groups else []
        found = {place: self._release_at(place) for place in dict.fromkeys(places) if place is not None}
        releases = {group: _of_group(group, places, found) for group in groups} if places else {}
        changed = {
            group: release
            for group, release in releases.items()
            if release is not None and self._reported.get(group) != release
        }
        return [
            GroupSettings(
                **event_fields("kafka", self._options.cluster, at_ms),
                group=group,
                strategy_settings={COORDINATOR: changed[group]},
            )
            for group in sorted(changed)
        ]

    def note(self, events: Sequence[GroupSettings]) -> None:
        """Remember the reported releases."""
        self._reported |= {event.group: str((event.strategy_settings or {})[COORDINATOR]) for event in events}

    def _release_at(self, place: Place) -> str | None:
        try:
            return release_of(api_versions(place, tls_of(self._options.librdkafka())))
        except (OSError, ValueError, struct.error):
            return None


def release_of(versions: Versions) -> str | None:
    """Return the one of ``RELEASES`` that assigns like a broker with these versions; None if it lacks the new protocol.

    Example:
        >>> release_of({11: (2, 9), 68: (0, 1)}), release_of({11: (0, 9), 68: (0, 1)}), release_of({11: (0, 9)})
        ('4.0.0', '4.0.1', None)
    """
    if _CONSUMER_GROUP_HEARTBEAT not in versions:
        return None
    if versions[_CONSUMER_GROUP_HEARTBEAT][1] == 0:
        return PREVIEW
    return RELEASES[1] if versions.get(_JOIN_GROUP, (0, 0))[0] > 0 else TODAY


def api_versions(place: Place, tls: ssl.SSLContext | None) -> dict[int, tuple[int, int]]:
    """Return a broker's supported versions for each kind of request.

    Raises:
        OSError, ValueError, struct.error: The broker does not answer, or not with this.
    """
    body = struct.pack(">hhih", _API_VERSIONS, 0, 1, len(_CLIENT)) + _CLIENT
    with ExitStack() as stack:
        connection: socket.socket = stack.enter_context(socket.create_connection(place, _TIMEOUT_S))
        if tls is not None:
            connection = stack.enter_context(tls.wrap_socket(connection, server_hostname=place[0]))
        connection.sendall(struct.pack(">i", len(body)) + body)
        (size,) = struct.unpack(">i", _read(connection, 4))
        if not 0 <= size <= _MOST_BYTES:
            raise ValueError(f"an answer of {size} bytes")
        answer = _read(connection, size)
    _, error, count = struct.unpack_from(">ihi", answer)
    if error:
        raise ValueError(f"error {error}")
    triples = (struct.unpack_from(">hhh", answer, 10 + 6 * place) for place in range(count))
    return {key: (lowest, highest) for key, lowest, highest in triples}


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ValueError("the connection was closed")
        data += part
    return data


def tls_of(properties: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the TLS context for a broker's listener."""
    if not properties.get("security.protocol", "").upper().endswith("SSL"):
        return None
    context = ssl.create_default_context(
        cafile=properties.get("ssl.ca.location"), cadata=properties.get("ssl.ca.pem") or None
    )
    if properties.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    if properties.get("enable.ssl.certificate.verification") == "false":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if "ssl.certificate.location" in properties:
        certificate, key = properties["ssl.certificate.location"], properties.get("ssl.key.location")
        context.load_cert_chain(certificate, key, properties.get("ssl.key.password"))
    return context


def _of_group(group: str, places: Sequence[Place | None], releases: Mapping[Place, str | None]) -> str | None:
    """Return the release of a group's coordinator.

    Source: kafka ``GroupMetadataManager#partitionFor``.
    """
    place = places[abs(string_hash(group)) % (1 << 31) % len(places)]
    return None if place is None else releases[place]
