"""Shell: `collect`, a standalone collector that writes a cluster's events for a job elsewhere."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.collectors.registry import FOLLOWED
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
    address_settings,
    incomplete_clusters,
    unfit_logs,
    with_addresses,
)
from streaming.commands.options import ConfigOption, path_option
from streaming.commands.output_logs import KUBERNETES, OutputLogs, events_servers
from streaming.settings.errors import SettingsError
from streaming.settings.locations import Location, absolute, folder_of, hand_on, without_key
from streaming.stores.access import require_stores
from streaming.stores.places import place_of
from udfs.model.systems import KAFKA

if TYPE_CHECKING:
    from streaming.collectors.collector import Collector
    from streaming.machine.stop_request import StopRequest
    from streaming.settings.model import Settings

FAILED_EXIT = 1
_TO_TOPIC = "kafka:"
_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
# A stop waits this long for a disk or a broker to take the events in memory.
_LAST_WRITE_S = 8.0
_RETRY_S = 0.25


@with_addresses
def collect(
    *,
    addresses: Addresses,
    cluster: ClusterNames = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|URI|kafka:[HOST:PORT/]TOPIC",
            help="Where to: a folder of JSON lines, here or on a store, or a Kafka topic.",
        ),
    ] = None,
    include_group: IncludeGroups = None,
    exclude_group: ExcludeGroups = None,
    include_topic: IncludeTopics = None,
    exclude_topic: ExcludeTopics = None,
    kafka_option: KafkaProperties = None,
    kafka_source: KafkaSource = None,
    kafka_log: KafkaLogs = None,
    kubernetes: Annotated[
        bool,
        typer.Option("--kubernetes", help="Follow what happens to pods, in the Kubernetes cluster that this runs in."),
    ] = False,
    kubeconfig: Annotated[
        Path | None, path_option("The same of the cluster that this file of kubectl names.", metavar="FILE")
    ] = None,
    checkpoint: Annotated[
        Path, path_option("With --out kafka:...: folder for the collector's positions and state.")
    ] = Path("checkpoints/collect"),
    once: Annotated[bool, typer.Option("--once", help="Read everything once, then stop.")] = False,
    config: ConfigOption = None,
) -> None:
    """Collect a live cluster's groups, topics and clock as events, or what happens to pods, without Spark.

    The folder, or the topic, is what `run --events` or `run --kafka-events` reads. Runs until stopped. Secrets are
    settings: a file, or variables like REBALANCE_MONITOR_ROCKETMQ__SECRET_KEY.
    """
    from streaming.settings.model import load

    mistakes: list[str] = []
    folder, topic = _place(out, mistakes)
    # For another system's cluster, --kafka only names the topic's broker.
    others = [system for system, address in addresses.items() if address and system != KAFKA.name]
    is_platform = kubernetes or kubeconfig is not None
    only_topic = topic is not None and "/" not in topic and (bool(others) or is_platform)
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
    mistakes += live.mistakes
    given = [*live.given, *([KUBERNETES] if is_platform else [])]
    if len(given) > 1:
        mistakes.append(f"one cluster at a time: {' or '.join(f'--{system}' for system in given)}")
    servers = {"kafka_events.bootstrap_servers": addresses[KAFKA.name] if only_topic else None}
    overrides = _platform(cluster, kubeconfig) if is_platform else _with_nothing_else(live)
    try:
        settings = load(config, overrides | servers, os.environ)
    except SettingsError as error:
        missing = [] if is_platform else live.missing(config, os.environ)
        raise SettingsError([*mistakes, *error.mistakes, *missing]) from error
    logs = settings.kafka.logs
    if is_platform:
        mistakes += _without_broker(settings, topic)
    elif logs:
        mistakes += _unfit_logs(settings, topic)
    if not is_platform and (not logs or settings.followed()):
        mistakes += _unfit(settings, live, topic)
    hand_on(settings.storage.plain_options(), os.environ)
    require_stores({"--out": folder or ""}, mistakes=mistakes)

    from streaming.machine.logs import configure
    from streaming.machine.stop_request import StopRequest

    configure(settings.log.level, settings.log.format)
    (system,) = (KUBERNETES,) if is_platform else settings.followed() or (KAFKA.name,)
    place = None if folder is None else place_of(folder)
    stop = StopRequest()
    with stop.by_signals():
        code = _collect(settings, system, OutputLogs(settings, system, place, topic, checkpoint), stop, once=once)
    sys.exit(code)


def _platform(names: list[str] | None, kubeconfig: Path | None) -> dict[str, object]:
    """Return the settings of the command line that name a Kubernetes cluster."""
    name = names[-1].removeprefix(f"{KUBERNETES}=") if names else None
    file = None if kubeconfig is None else str(kubeconfig)
    return {f"{KUBERNETES}.cluster": name, f"{KUBERNETES}.kubeconfig": file}


def _with_nothing_else(live: ClusterOptions) -> dict[str, object]:
    """Return the settings of the command line; a cluster named there is the only one."""
    places = address_settings()
    others: dict[str, object] = {places[system]: "" for system in places if live.given and system not in live.given}
    if live.given and KAFKA.name not in live.given and live.settings["kafka.logs"] is None:
        others["kafka.logs"] = []
    return live.settings | others


def _place(out: str | None, mistakes: list[str]) -> tuple[Location | None, str | None]:
    """Return the folder or the topic, as ``[HOST:PORT/]TOPIC``."""
    if not out:
        mistakes.append("--out is missing: a folder, or kafka:HOST:PORT/TOPIC")
        return None, None
    if not out.startswith(_TO_TOPIC):
        try:
            return absolute(folder_of(out)), None
        except ValueError as error:
            mistakes.append(f"--out {without_key(out)}: {error}")
            return None, None
    topic = out.removeprefix(_TO_TOPIC)
    name = topic.rpartition("/")[2]
    if not _TOPIC_NAME.fullmatch(name):
        mistakes.append(f"--out {_TO_TOPIC}{topic}: {name!r} is not a valid topic name")
    return None, topic


def _unfit(settings: Settings, live: ClusterOptions, topic: str | None) -> list[str]:
    """Return the mistakes in settings that are valid individually."""
    mistakes = []
    followed = settings.followed()
    if not followed:
        either = f"{', '.join(EACH_ADDRESS[:-1])} and {EACH_ADDRESS[-1]}"
        mistakes.append(f"nothing to follow: give one of {either}, with --cluster NAME")
    elif len(followed) > 1 and len(live.given) < 2:
        mistakes.append(
            f"the settings name several clusters; choose one: {' or '.join(f'--{system}' for system in followed)}"
        )
    else:
        mistakes += incomplete_clusters(settings)
    if KAFKA.name not in followed:
        mistakes += _without_broker(settings, topic)
    return mistakes


def _without_broker(settings: Settings, topic: str | None) -> list[str]:
    """Return that no broker is named for the topic, if no Kafka cluster is followed."""
    if topic is None or "/" in topic or events_servers(settings):
        return []
    return [f"--out {_TO_TOPIC}{topic}: the broker is missing: write {_TO_TOPIC}HOST:PORT/{topic}"]


def _unfit_logs(settings: Settings, topic: str | None) -> list[str]:
    """Return the mistakes in the paths of the brokers' logs."""
    mistakes = unfit_logs(settings)
    if any(system != KAFKA.name for system in settings.followed()):
        mistakes.append("--kafka-log needs --kafka, or no cluster at all")
    elif not settings.kafka.cluster:
        mistakes.append("--kafka-log needs --cluster NAME: the name of this cluster in the tables")
    if not settings.followed():
        mistakes += _without_broker(settings, topic)
    return mistakes


def _collect(settings: Settings, system: str, logs: OutputLogs, stop: StopRequest, *, once: bool) -> int:
    from streaming.machine.logs import logger

    log = logger("collect")
    lines = logs.coordinator_log()
    collectors: list[Collector] = [] if lines is None else [lines]
    if system == KUBERNETES:
        from streaming.collectors.kubernetes.factory import collector_of

        collectors.append(collector_of(settings.kubernetes, logs.log()))
    elif settings.followed():
        collectors.append(FOLLOWED[system].alone(settings, logs, stop))
    liveness = logs.liveness(collectors[-1].status)
    answered = True
    if once:
        if lines is not None:
            lines.read_to_end(stop)
        for collector in collectors:
            answered &= collector.observe_once()
    else:
        for collector in collectors:
            collector.start()
        only_lines = lines if len(collectors) == 1 else None
        while not stop.wait(_RETRY_S) and not (only_lines is not None and only_lines.is_over):
            liveness.write_if_due()
    for collector in collectors:
        collector.stop()
    written = _write_the_rest(logs)
    liveness.end(is_once=once)
    logs.close()
    if not answered:
        status = collectors[-1].status()
        log.error("the cluster did not answer", cluster=status.cluster, state=status.state, detail=status.detail)
    if not written:
        log.error("observed events could not be written; the next start reads the cluster's state again")
    log.info("stopped")
    return 0 if answered and written else FAILED_EXIT


def _write_the_rest(logs: OutputLogs) -> bool:
    """Try once more to write waiting events; return whether all are written."""
    deadline = time.monotonic() + _LAST_WRITE_S
    while [log for log in logs.made if not log.flush()]:
        if time.monotonic() > deadline:
            return False
        time.sleep(_RETRY_S)
    return True
