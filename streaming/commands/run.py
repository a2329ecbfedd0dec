"""Shell: `run`, the job itself."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from streaming.commands.spans import span_ms
from streaming.settings import Settings, SettingsError, load


def run(
    *,
    events: Annotated[Path | None, typer.Option(help="Read events from this folder of JSON lines.")] = None,
    kafka: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Follow this live Kafka cluster.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Name of that cluster in the tables.")] = None,
    kafka_events: Annotated[
        str | None, typer.Option(metavar="[HOST:PORT/]TOPIC", help="Read events of the contract from this Kafka topic.")
    ] = None,
    kafka_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="Client property for --kafka, e.g. security.protocol=SASL_SSL. Repeatable."
        ),
    ] = None,
    include_group: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="Follow only groups that match. Repeatable.")
    ] = None,
    exclude_group: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="Leave groups out that match. Repeatable.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Read what is there, then stop.")] = False,
    flush: Annotated[
        bool, typer.Option("--flush", help="With --once: then decide everything up to each cluster's newest event.")
    ] = False,
    tables: Annotated[Path | None, typer.Option(help="Root folder of the Delta tables.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Folder of the job's own memory.")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings file; conf/default.toml names every setting.")] = None,
    allowed_lateness: Annotated[
        str | None, typer.Option(metavar="SPAN", help="How far events may be out of order, e.g. 2s.")
    ] = None,
    max_files_per_batch: Annotated[int | None, typer.Option(help="Files of --events in one batch, at most.")] = None,
    shards: Annotated[int | None, typer.Option(help="Parts of the state; fixed for the life of a checkpoint.")] = None,
) -> None:
    """Watch consumer groups: read events, decide rebalances, write the Delta tables.

    Runs until stopped (Ctrl-C or SIGTERM finish the batch); with --once until all input is read.
    """
    servers, topic = _events_topic(kafka_events)
    settings = load(
        config,
        {
            "events.folder": None if events is None else str(events.absolute()),
            # With a topic of events and no cluster to name, --kafka says only where the topic is.
            "kafka.bootstrap_servers": None if topic and not cluster else kafka,
            "kafka.cluster": cluster,
            "kafka.include_groups": include_group or None,
            "kafka.exclude_groups": exclude_group or None,
            "kafka_events.topic": topic,
            "kafka_events.bootstrap_servers": servers or (kafka if topic else None),
            "job.tables": tables,
            "job.checkpoint": checkpoint,
            "job.max_files_per_batch": max_files_per_batch,
            "time.allowed_lateness_ms": span_ms(allowed_lateness),
            "state.shards": shards,
            **{f"kafka.options.{key}": value for key, value in _pairs(kafka_option or []).items()},
        },
        os.environ,
    )
    _check_usage(settings, once=once, flush=flush)
    from streaming.job import run_job

    sys.exit(run_job(settings, once=once, flush=flush))


def _pairs(options: list[str]) -> dict[str, str]:
    pairs = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise typer.BadParameter(f"--kafka-option {option!r}: write KEY=VALUE")
        pairs[key] = value
    return pairs


def _events_topic(text: str | None) -> tuple[str | None, str | None]:
    if text is None:
        return None, None
    servers, slash, topic = text.rpartition("/")
    return (servers if slash else None), topic


def _check_usage(settings: Settings, *, once: bool, flush: bool) -> None:
    mistakes = []
    if not (settings.events.folder or settings.kafka.bootstrap_servers or settings.kafka_events.topic):
        mistakes.append("nothing to read: give --events DIR, --kafka HOST:PORT --cluster NAME, or --kafka-events TOPIC")
    if flush and not once:
        mistakes.append("--flush goes with --once")
    if settings.kafka.bootstrap_servers and not settings.kafka.cluster:
        mistakes.append("--kafka needs --cluster NAME: under which name shall the tables know this cluster?")
    if settings.kafka_events.topic and not (
        settings.kafka_events.bootstrap_servers or settings.kafka.bootstrap_servers
    ):
        mistakes.append("--kafka-events needs a broker: --kafka-events HOST:PORT/TOPIC")
    if settings.events.folder and not Path(settings.events.folder).is_dir():
        mistakes.append(f"--events {settings.events.folder}: there is no such folder")
    if mistakes:
        raise SettingsError(mistakes)
