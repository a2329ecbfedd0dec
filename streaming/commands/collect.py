"""Shell: `collect`, a collector alone: a cluster's life as events of the contract, for a job elsewhere."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.settings import SettingsError, load

if TYPE_CHECKING:
    from streaming.event_log import EventLog
    from streaming.kafka.options import KafkaOptions


def collect(
    *,
    kafka: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Follow this live Kafka cluster.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Name of that cluster in the events.")] = None,
    kafka_option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Client property, e.g. security.protocol=SASL_SSL. Repeatable."),
    ] = None,
    include_group: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="Follow only groups that match. Repeatable.")
    ] = None,
    exclude_group: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="Leave groups out that match. Repeatable.")
    ] = None,
    events: Annotated[Path | None, typer.Option(help="Write files of JSON lines into this folder.")] = None,
    kafka_events: Annotated[
        str | None, typer.Option(metavar="[HOST:PORT/]TOPIC", help="Write to this Kafka topic instead.")
    ] = None,
    memory: Annotated[
        Path, typer.Option(help="With --kafka-events: folder in which is kept how far has been read.")
    ] = Path("checkpoints/collect"),
    once: Annotated[bool, typer.Option("--once", help="Read up to the present end, then stop.")] = False,
    config: Annotated[Path | None, typer.Option(help="Settings file; conf/default.toml names every setting.")] = None,
) -> None:
    """Collect a cluster's group records, topics and clock as events, without Spark.

    The folder, or the topic, is what `run --events` or `run --kafka-events` reads. Runs until stopped.
    """
    settings = load(
        config,
        {
            "kafka.bootstrap_servers": kafka,
            "kafka.cluster": cluster,
            "kafka.include_groups": include_group or None,
            "kafka.exclude_groups": exclude_group or None,
            **_client_options(kafka_option or []),
        },
        os.environ,
    )
    mistakes = []
    if not settings.kafka.bootstrap_servers:
        mistakes.append("nothing to follow: give --kafka HOST:PORT --cluster NAME")
    elif not settings.kafka.cluster:
        mistakes.append("--kafka needs --cluster NAME: under which name shall the events know this cluster?")
    if (events is None) == (kafka_events is None):
        mistakes.append("where to? give one of --events DIR and --kafka-events TOPIC")
    if mistakes:
        raise SettingsError(mistakes)

    from streaming.kafka.follower import options_of
    from streaming.logs import configure

    configure(settings.log.level, settings.log.format)
    options = options_of(settings.kafka)
    logs = _folder_logs(events) if events is not None else _topic_logs(kafka_events or "", options, memory)
    _collect(options, *logs, poll_interval_ms=settings.kafka.poll_interval_ms, once=once)


def _collect(
    options: KafkaOptions, metadata: EventLog, records: EventLog, *, poll_interval_ms: int, once: bool
) -> None:
    from streaming.kafka.collector import KafkaCollector
    from streaming.kafka.record_reader import RecordReader
    from streaming.kafka.rights import offsets_partitions, require_rights
    from streaming.logs import logger

    log = logger("collect")
    for missing in require_rights(options):
        log.warning("a right is missing", right=str(missing), give_it_with=missing.command(options))
    reader = RecordReader(options, records, partitions=offsets_partitions(options))
    collector = KafkaCollector(options, metadata, reader.offsets_read, poll_interval_ms=poll_interval_ms)
    stop = _stopped_by_signals()
    try:
        if once:
            collector.observe_once()
            while not stop.is_set() and not collector.settle():
                reader.step()
        else:
            collector.start()
            while not stop.is_set():
                reader.step()
    finally:
        reader.close()
        collector.settle()
        collector.stop()
        log.info("stopped", rejected=reader.rejected)


def _stopped_by_signals() -> threading.Event:
    stop = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask)
    return stop


def _client_options(pairs: list[str]) -> dict[str, str]:
    options = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise typer.BadParameter(f"--kafka-option {pair!r}: write KEY=VALUE")
        options[f"kafka.options.{key}"] = value
    return options


def _folder_logs(folder: Path) -> tuple[EventLog, EventLog]:
    from streaming.event_log import EventFiles

    return EventFiles(folder, "kafka"), EventFiles(folder, "groups")


def _topic_logs(place: str, options: KafkaOptions, memory: Path) -> tuple[EventLog, EventLog]:
    from streaming.event_log import EventTopic

    servers, slash, topic = place.rpartition("/")
    settings = options.librdkafka() | ({"bootstrap.servers": servers} if slash else {})
    name = f"{options.cluster}-{topic}"
    return (
        EventTopic(topic, settings, memory / f"{name}-topics.json"),
        EventTopic(topic, settings, memory / f"{name}-offsets.json"),
    )
