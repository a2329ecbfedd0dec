"""The release of a group's coordinator, from brokers' answers to the report of it."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from streaming.collectors.kafka.coordinator_releases import CoordinatorReleases, Place, release_of
from streaming.collectors.kafka.options import KafkaOptions
from tests.kit.processes import free_port
from udfs.kafka.consumer_offsets import EVERY_GROUP

# JoinGroup and ConsumerGroupHeartbeat, by kafka-clients of these versions.
_BROKERS = {
    "3.6.2": {11: (0, 9)},
    "3.9.1": {11: (0, 9), 68: (0, 0)},
    "4.0.0": {11: (2, 9), 68: (0, 1)},
    "4.1.1": {11: (0, 9), 68: (0, 1)},
}


class FakeBroker:
    """Replies to ApiVersions as a broker of some version."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._server = socket.create_server(("127.0.0.1", 0))
        self.place: Place = ("127.0.0.1", self._server.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                connection.recv(1024)
                versions = _BROKERS[self.version]
                body = struct.pack(">ihi", 1, 0, len(versions))
                body += b"".join(struct.pack(">hhh", key, *limits) for key, limits in versions.items())
                answer = struct.pack(">i", len(body)) + body
                connection.sendall(answer[:7])  # in two parts
                connection.sendall(answer[7:])


class View:
    """A cluster with one partition of ``__consumer_offsets``."""

    def __init__(self, place: Place | None, groups: list[str]) -> None:
        self.place = place
        self.groups = groups

    def new_protocol_groups(self) -> list[str]:
        return self.groups

    def coordinators(self) -> list[Place | None]:
        return [self.place]


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with closing(FakeBroker("4.0.0")) as started:
        yield started


def reported(releases: CoordinatorReleases, view: View, at_ms: int) -> dict[str, object]:
    events = releases.diff(view, at_ms)
    releases.note(events)
    return {event.group: event.strategy_settings for event in events}


def test_the_versions_of_requests_show_the_release() -> None:
    releases = {version: release_of(versions) for version, versions in _BROKERS.items()}
    assert releases == {"3.6.2": None, "3.9.1": "3.9", "4.0.0": "4.0.0", "4.1.1": "4.0.1"}


def test_a_release_is_reported_once_for_each_group_and_again_when_its_broker_was_upgraded(broker: FakeBroker) -> None:
    releases = CoordinatorReleases(KafkaOptions("", "main"), EVERY_GROUP)
    view = View(broker.place, ["g", "h"])
    assert reported(releases, view, 0) == {"g": {"coordinator": "4.0.0"}, "h": {"coordinator": "4.0.0"}}
    broker.version = "4.1.1"
    assert reported(releases, view, 59_999) == {}
    assert reported(releases, view, 60_000) == {"g": {"coordinator": "4.0.1"}, "h": {"coordinator": "4.0.1"}}
    assert reported(releases, view, 120_000) == {}


@pytest.mark.parametrize("groups", [[], ["g"]])
def test_nothing_is_reported_if_no_broker_answers(groups: list[str]) -> None:
    releases = CoordinatorReleases(KafkaOptions("", "main"), EVERY_GROUP)
    assert reported(releases, View(("127.0.0.1", free_port()), groups), 0) == {}
    assert reported(releases, View(None, groups), 60_000) == {}
