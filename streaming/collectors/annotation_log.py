"""Shell: writes annotations to where the job of the settings reads events, from any process, one at a time."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from streaming.machine.clock import now_ms
from streaming.setup.errors import SetupError
from streaming.stores.locks import exclusive_use
from streaming.stores.places import Place, place_of
from udfs.ingest.parser import parse
from udfs.model.annotations import Annotation, annotation_change
from udfs.model.config import CoreConfig
from udfs.model.events import SCHEMA_VERSION
from udfs.model.rejection import Rejection

if TYPE_CHECKING:
    from streaming.collectors.event_log import EventFiles, EventTopic, LogLimits
    from streaming.settings.locations import Location
    from streaming.settings.model import Settings

# A function of this type writes an annotation.
# Raises ``OSError``: It was not written; it may be written again.
Write: TypeAlias = Callable[[Annotation], None]

TO_TOPIC = "kafka:"
TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_WRITER = "annotations"
# Others write one annotation at a time, which takes milliseconds.
_WAIT_S, _POLL_S = 10.0, 0.05


def read_annotation(body: bytes, written_ms: int, config: CoreConfig) -> Annotation | Rejection:
    """Parse an annotation that a person or a program sends; what every event has may be left out.

    Args:
        written_ms: Its ``event_time``, unless it has one.
    """
    try:
        content: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        content = None
    if isinstance(content, dict) and "specversion" not in content:
        common = {"schema_version": SCHEMA_VERSION, "type": "annotation", "event_time": written_ms}
        body = msgspec.json.encode({**common, **content})
    event = parse(body, written_ms, config) if body.strip() else Rejection("empty_body", "an annotation is needed")
    if isinstance(event, Annotation | Rejection):
        return event
    return Rejection("not_an_annotation", "only events of the type annotation are taken here")


def taker(settings: Settings) -> Callable[[bytes], str | Rejection]:
    """Return a function that writes annotations, given as JSON; it returns their id, or why it takes none.

    Raises:
        SetupError: The settings name no place where a job reads events.
    """
    write, config = writer_to(settings), settings.core_config()

    def take(body: bytes) -> str | Rejection:
        found = read_annotation(body, now_ms(), config)
        if isinstance(found, Rejection):
            return found
        write(found)
        return annotation_change(found).subject or ""

    return take


def writer_to(settings: Settings, folder: Location | None = None, topic: str = "") -> Write:
    """Return a function that writes annotations; it opens what it needs when it is first called.

    Args:
        folder, topic: Where to, as ``[HOST:PORT/]TOPIC``; without both, where the job of the settings reads events.

    Raises:
        SetupError: The settings name no such place.
    """
    from streaming.collectors.event_log import LogLimits

    limits = LogLimits(**settings.event_log.bounds())
    if folder:
        return _into_folder(place_of(folder), limits)
    if topic:
        return _into_topic(settings, topic, limits)
    if settings.events.folder:
        return _into_folder(place_of(settings.events.folder), limits)
    if settings.kafka_events.topic:
        return _into_topic(settings, settings.kafka_events.topic, limits)
    checkpoint = place_of(settings.job.checkpoint)
    if settings.followed() and (checkpoint / "identity.json").exists():
        # The query deletes what it has read there.
        return _into_folder(checkpoint / "collected", LogLimits())
    raise SetupError(
        "no job is known that would read annotations",
        "set events.folder, kafka_events.topic or job.checkpoint as for the job",
    )


def _into_folder(folder: Place, limits: LogLimits) -> Write:
    from streaming.collectors.event_log import EventFiles

    def write(annotation: Annotation) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + _WAIT_S
        while True:
            lock = exclusive_use(
                folder / f".{_WRITER}.lock", problem=f"annotations are being written to {folder}", remedy="try again"
            )
            try:
                with lock as guard:
                    _append(EventFiles(folder, _WRITER, limits, guard=guard), annotation)
                return
            except SetupError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_S)

    return write


def _into_topic(settings: Settings, topic: str, limits: LogLimits) -> Write:
    opened: list[EventTopic] = []

    def write(annotation: Annotation) -> None:
        if not opened:
            opened.append(_topic(settings, topic, limits))
        _append(opened[0], annotation)

    return write


def _topic(settings: Settings, topic: str, limits: LogLimits) -> EventTopic:
    from confluent_kafka import KafkaException

    from streaming.collectors.event_log import EventTopic
    from streaming.collectors.kafka.options import KafkaOptions

    servers, _, name = topic.rpartition("/")
    servers = servers or settings.kafka_events.bootstrap_servers or settings.kafka.bootstrap_servers
    if not servers:
        raise SetupError(f"{TO_TOPIC}{topic}: the broker is missing", f"write {TO_TOPIC}HOST:PORT/{name}")
    client = KafkaOptions(servers, _WRITER, settings.kafka_events.plain_options()).librdkafka()
    try:
        # An annotation needs no memory of what was written before.
        return EventTopic(name, client, Path(os.devnull), limits)
    except KafkaException as error:
        raise SetupError(f"the topic's client cannot be made: {error.args[0].str()}", "fix its options") from error


def _append(log: EventFiles | EventTopic, annotation: Annotation) -> None:
    log.append([annotation])
    if (trouble := log.trouble()) is not None:
        raise OSError(trouble)
