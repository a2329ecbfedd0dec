"""Shell: `run`, the job itself."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.commands.cluster_options import (
    EACH_ADDRESS,
    Addresses,
    ClusterNames,
    ClusterOptions,
    ExcludeGroups,
    ExcludeTopics,
    IncludeGroups,
    IncludeTopics,
    KafkaLogs,
    KafkaProperties,
    KafkaSource,
    incomplete_clusters,
    unfit_logs,
    with_addresses,
)
from streaming.commands.command_group import announce
from streaming.commands.options import ConfigOption, TablesOption, location_option, span_ms
from streaming.settings.errors import SettingsError
from streaming.settings.locations import Location, absolute, hand_on, location_of
from streaming.stores.access import access_error, require_stores
from udfs.model.systems import KAFKA

if TYPE_CHECKING:
    from streaming.settings.model import Settings


@with_addresses
def run(
    *,
    events: Annotated[str | None, location_option("Read events from this folder of JSON lines, or its URI.")] = None,
    addresses: Addresses,
    cluster: ClusterNames = None,
    kafka_events: Annotated[
        str | None, typer.Option(metavar="[HOST:PORT/]TOPIC", help="Read events of the contract from this Kafka topic.")
    ] = None,
    kafka_option: KafkaProperties = None,
    kafka_source: KafkaSource = None,
    kafka_log: KafkaLogs = None,
    include_group: IncludeGroups = None,
    exclude_group: ExcludeGroups = None,
    include_topic: IncludeTopics = None,
    exclude_topic: ExcludeTopics = None,
    once: Annotated[bool, typer.Option("--once", help="Read all available input, then stop.")] = False,
    flush: Annotated[
        bool, typer.Option("--flush", help="With --once: apply everything up to each cluster's newest event.")
    ] = False,
    tables: TablesOption = None,
    checkpoint: Annotated[str | None, location_option("Checkpoint folder of the job, or its URI.")] = None,
    config: ConfigOption = None,
    allowed_lateness: Annotated[
        str | None, typer.Option(metavar="SPAN", help="How far events may be out of order, e.g. 2s.")
    ] = None,
    max_files_per_batch: Annotated[
        int | None, typer.Option(metavar="N", help="Files of --events in one batch, at most.")
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=65_535, help="Serve metrics of the job at this port of this machine."),
    ] = None,
    shards: Annotated[
        int | None, typer.Option(metavar="N", help="Number of state shards; fixed for the life of a checkpoint.")
    ] = None,
) -> None:
    """Watch consumer groups: read events, decide rebalances, write the Delta tables.

    Runs until stopped (Ctrl-C or SIGTERM finish the batch); with --once until all input is read.
    """
    announce("loading the job; its view opens in some seconds" if not once else "loading the job")
    from streaming.settings.layers import is_setting
    from streaming.settings.model import load

    servers, topic = _events_topic(kafka_events)
    # With a topic of events and no cluster, --kafka only names the topic's broker.
    only_topic = bool(topic) and not any(name.startswith("kafka=") or "=" not in name for name in cluster or [])
    live = ClusterOptions(
        {**addresses, KAFKA.name: None} if only_topic else addresses,
        cluster or [],
        include_groups=include_group or [],
        exclude_groups=exclude_group or [],
        include_topics=include_topic or [],
        exclude_topics=exclude_topic or [],
        kafka_options=kafka_option or [],
        kafka_source=kafka_source,
        kafka_logs=kafka_log or [],
    )
    mistakes = list(live.mistakes)
    lateness_ms = None
    try:
        lateness_ms = span_ms(allowed_lateness, "--allowed-lateness")
    except typer.BadParameter as error:
        mistakes.append(f"{error.param_hint}: {error.message}")
    try:
        settings = load(
            config,
            {
                "events.folder": None if events is None else absolute(location_of(events)),
                "kafka_events.topic": topic,
                "kafka_events.bootstrap_servers": servers or (addresses[KAFKA.name] if topic else None),
                "job.tables": tables,
                "job.checkpoint": checkpoint,
                "job.max_files_per_batch": max_files_per_batch,
                "time.allowed_lateness_ms": lateness_ms,
                "state.shards": shards,
                "metrics.port": metrics_port,
                **live.settings,
            },
            os.environ,
        )
    except SettingsError as error:
        # The settings that could not be loaded may name a source.
        given = any([events, kafka_events, config, *live.given, *filter(is_setting, os.environ)])
        missing = live.missing(config, os.environ)
        raise SettingsError([*mistakes, *error.mistakes, *missing, *_misused(events, given, once, flush)]) from error
    mistakes += _misused(settings.events.folder, _has_source(settings), once, flush) + _incomplete(settings)
    if kafka_log and not settings.kafka.bootstrap_servers:
        mistakes.append("--kafka-log needs --kafka")
    if mistakes:
        hand_on(settings.storage.plain_options(), os.environ)
        require_stores(settings.places(), mistakes=mistakes)
    from streaming.supervisor import run_job

    sys.exit(run_job(settings, once=once, flush=flush))


def _events_topic(text: str | None) -> tuple[str | None, str | None]:
    if text is None:
        return None, None
    servers, slash, topic = text.rpartition("/")
    return (servers if slash else None), topic


def _has_source(settings: Settings) -> bool:
    return bool(settings.events.folder or settings.kafka_events.topic or settings.followed())


def _misused(folder: Location | None, has_source: bool, once: bool, flush: bool) -> list[str]:
    """Return the mistakes that do not depend on the settings."""
    mistakes = []
    if not has_source:
        mistakes.append(
            f"nothing to read: give --events DIR, --kafka-events TOPIC, or one of {', '.join(EACH_ADDRESS[:-1])} and"
            f" {EACH_ADDRESS[-1]} with --cluster NAME"
        )
    if flush and not once:
        mistakes.append("--flush needs --once")
    place = location_of(folder) if folder else None
    if isinstance(place, Path) and (wrong := access_error(place, writes=False)) is not None:
        mistakes.append(f"--events {place}: {wrong}")
    return mistakes


def _incomplete(settings: Settings) -> list[str]:
    """Return the settings that require others that are missing."""
    mistakes = incomplete_clusters(settings)
    if settings.kafka.bootstrap_servers:
        mistakes += unfit_logs(settings)
    if settings.kafka_events.topic and not (
        settings.kafka_events.bootstrap_servers or settings.kafka.bootstrap_servers
    ):
        mistakes.append("--kafka-events needs a broker: --kafka-events HOST:PORT/TOPIC")
    for option, folder in (("--tables", settings.job.tables), ("--checkpoint", settings.job.checkpoint)):
        if isinstance(folder, Path) and (wrong := access_error(folder)) is not None:
            mistakes.append(f"{option} {folder}: {wrong}")
    return mistakes
