"""A collector beside servers that speak the protocol, and the events that it wrote."""

from __future__ import annotations

from pathlib import Path

import msgspec

from streaming.collectors.event_log import EventFiles
from streaming.collectors.rocketmq.collector import RocketMqCollector
from tests.cluster_options import rocketmq_options
from tests.kit.rocketmq_server import ScriptedRocketMq
from udfs.model.events import AnyEvent, Clock, GroupSnapshot

_EVENT = msgspec.json.Decoder(AnyEvent)


class Collected:
    """A collector, and the events that it wrote."""

    def __init__(self, cluster: ScriptedRocketMq, folder: Path, **options: object) -> None:
        self.folder = folder
        self.log = EventFiles(folder, "rocketmq")
        self.collector = RocketMqCollector(
            rocketmq_options(*cluster.name_servers, cluster="test", **options),
            self.log,
        )
        self._read = len(self._events())

    def _events(self) -> list[AnyEvent]:
        lines = [line for file in sorted(self.folder.glob("*.jsonl")) for line in file.read_bytes().splitlines()]
        return [_EVENT.decode(line) for line in lines]

    def news(self) -> list[AnyEvent]:
        """Return the events written since the last call."""
        events = self._events()
        read, self._read = self._read, len(events)
        return events[read:]

    def round(self) -> list[AnyEvent]:
        """Take a complete round; return its events without the clock."""
        assert self.collector.observe_once()
        *events, clock = self.news()
        assert isinstance(clock, Clock)
        return events


def members(events: list[AnyEvent]) -> list[list[str]]:
    return [[member.member_id for member in event.members] for event in events if isinstance(event, GroupSnapshot)]


def rounds_until_answering(collected: Collected) -> list[AnyEvent]:
    """Take rounds until no broker is in backoff."""
    events = collected.round()
    while collected.collector.status().detail is not None:
        events += collected.round()
    return events
