"""Shell: `collect`, a standalone collector that writes a cluster's events for a job elsewhere."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

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
from streaming.settings.errors import SettingsError
from streaming.settings.locations import Location, absolute, folder_of, hand_on, without_key
from streaming.setup.errors import SetupError
from streaming.stores.access import require_stores
from streaming.stores.locks import Guard, exclusive_use
from streaming.stores.places import Place, place_of
from udfs.model.systems import KAFKA

if TYPE_CHECKING:
    from streaming.collectors.collector import Collector, CollectorStatus
    from streaming.collectors.collector_liveness_writer import CollectorLivenessWriter
    from streaming.collectors.event_log import EventLog
    from streaming.collectors.kafka.coordinator_log_collector import CoordinatorLogCollector
    from streaming.settings.model import Settings
    from streaming.tables.liveness import SourceStatus

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
    checkpoint: Annotated[
        Path, path_option("With --out kafka:...: folder for the collector's positions and state.")
    ] = Path("checkpoints/collect"),
    once: Annotated[bool, typer.Option("--once", help="Read everything once, then stop.")] = False,
    config: ConfigOption = None,
) -> None:
    """Collect a live cluster's groups, topics and clock as events, without Spark.

    The folder, or the topic, is what `run --events` or `run --kafka-events` reads. Runs until stopped. Secrets are
    settings: a file, or variables like REBALANCE_MONITOR_ROCKETMQ__SECRET_KEY.
    """
    from streaming.settings.model import load

    mistakes: list[str] = []
    folder, topic = _place(out, mistakes)
    # For another system's cluster, --kafka only names the topic's broker.
    others = [system for system, address in addresses.items() if address and system != KAFKA.name]
    only_topic = topic is not None and "/" not in topic and bool(others)
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
    if len(live.given) > 1:
        mistakes.append(f"one cluster at a time: {' or '.join(f'--{system}' for system in live.given)}")
    try:
        servers = {"kafka_events.bootstrap_servers": addresses[KAFKA.name] if only_topic else None}
        settings = load(config, _with_nothing_else(live) | servers, os.environ)
    except SettingsError as error:
        raise SettingsError([*mistakes, *error.mistakes, *live.missing(config, os.environ)]) from error
    logs = settings.kafka.logs
    if logs:
        mistakes += _unfit_logs(settings, topic)
    if not logs or settings.followed():
        mistakes += _unfit(settings, live, topic)
    hand_on(settings.storage.plain_options(), os.environ)
    require_stores({"--out": folder or ""}, mistakes=mistakes)

    from streaming.machine.logs import configure

    configure(settings.log.level, settings.log.format)
    (system,) = settings.followed() or (KAFKA.name,)
    place = None if folder is None else place_of(folder)
    sys.exit(_collect(settings, system, _Logs(settings, system, place, topic, checkpoint), once=once))


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
    if topic is None or "/" in topic or _events_servers(settings):
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


def _events_servers(settings: Settings) -> str:
    return settings.kafka_events.bootstrap_servers or settings.kafka.bootstrap_servers


class _Logs:
    """Creates the logs to which a collector appends, all in one place."""

    def __init__(
        self,
        settings: Settings,
        system: str,
        folder: Place | None,
        topic: str | None,
        checkpoint: Path,
    ) -> None:
        self._settings = settings
        self._cluster = settings.cluster(system).cluster
        self._coordinator_log: CoordinatorLogCollector | None = None
        self._system = system
        self._folder = folder
        self._servers, _, self._topic = (topic or "").rpartition("/")
        self._checkpoint = checkpoint
        self._held = ExitStack()
        self.made: list[EventLog] = []

    def log(self, part: str = "") -> EventLog:
        """Return a log for the cluster, or for a part of its events, with state of its own.

        Raises:
            SetupError: The log cannot be created.
        """
        from streaming.collectors.kafka.coordinator_log_collector import LogBehindLines

        lines = self.coordinator_log()
        made = self._make(part)
        return made if lines is None else LogBehindLines(made, lines)

    def coordinator_log(self) -> CoordinatorLogCollector | None:
        """Return the collector of the brokers' logs, created once; None if no log is to be read.

        Raises:
            SetupError: Its log of events cannot be created.
        """
        if self._coordinator_log is None and self._system == KAFKA.name and self._settings.kafka.logs:
            from streaming.collectors.kafka.coordinator_log_collector import brokers_logs

            self._coordinator_log = brokers_logs(self._settings.kafka, self._make("log"))
        return self._coordinator_log

    def _make(self, part: str) -> EventLog:
        from confluent_kafka import KafkaException

        try:
            made = self._into_folder(self._folder, part) if self._folder is not None else self._into_topic(part)
        except OSError as error:
            place = error.filename or self._folder or self._checkpoint
            raise SetupError(
                f"{place} cannot be written: {error.strerror or error}", "choose another folder"
            ) from error
        except KafkaException as error:
            raise SetupError(f"the topic's client cannot be made: {error.args[0].str()}", "fix its options") from error
        self.made.append(made)
        return made

    def remember(self) -> bool:
        """Return whether an earlier start left state of the cluster; this creates nothing."""
        from streaming.collectors.event_log import EventFiles

        if self._folder is not None:
            return EventFiles.knows(self._folder, self._name())
        return self._topic_state().exists()

    def _into_folder(self, folder: Place, part: str) -> EventLog:
        from streaming.collectors.event_log import EventFiles, LogLimits

        guard = self._keep_others_out(folder / f".{self._name(part)}.lock")
        return EventFiles(folder, self._name(part), LogLimits(**self._settings.event_log.bounds()), guard=guard)

    def _into_topic(self, part: str) -> EventLog:
        from streaming.collectors.event_log import EventTopic, LogLimits
        from streaming.collectors.kafka.options import KafkaOptions

        settings = self._settings
        followed = settings.kafka if self._system == KAFKA.name else None
        properties = followed.plain_options() if followed else settings.kafka_events.plain_options()
        self._keep_others_out(self._topic_state(part).with_suffix(".lock"))
        servers = self._servers or (followed.bootstrap_servers if followed else _events_servers(settings))
        client = KafkaOptions(servers, self._cluster, properties).librdkafka()
        return EventTopic(self._topic, client, self._topic_state(part), LogLimits(**settings.event_log.bounds()))

    def liveness(self, status: Callable[[], CollectorStatus]) -> CollectorLivenessWriter:
        """Return the writer of the collector's liveness next to the events."""
        from streaming.collectors.collector import source_status_of, status_with_log, with_part
        from streaming.collectors.collector_liveness_writer import CollectorLivenessWriter
        from streaming.machine.process import since_boot_ms
        from streaming.tables.liveness import collector_place

        made_at_ms = since_boot_ms()

        def now() -> SourceStatus:
            found = status()
            for log in self.made:
                found = status_with_log(found, log)
            known, lines = source_status_of(found, made_at_ms), self._coordinator_log
            return known if lines is None or lines.status == status else with_part(known, lines.unread())

        return CollectorLivenessWriter(
            None if self._folder is None else collector_place(self._folder, self._name()), now
        )

    def close(self) -> None:
        """Release the logs to other processes."""
        self._held.close()

    def _keep_others_out(self, lock: Place) -> Guard:
        """Hold the lock until the end, because two writers of one cluster would write every event twice."""
        lock.parent.mkdir(parents=True, exist_ok=True)
        problem = f"another collector of {self._cluster} runs with {lock.parent}"
        return self._held.enter_context(
            exclusive_use(lock, problem=problem, remedy="stop that one, or choose another folder")
        )

    def _topic_state(self, part: str = "") -> Path:
        return self._checkpoint / f"{self._name(part)}-{self._topic}.json"

    def _name(self, part: str = "") -> str:
        cluster = quote(self._cluster, safe="")
        return f"{self._system}-{cluster}{'-' if part else ''}{part}"


def _collect(settings: Settings, system: str, logs: _Logs, *, once: bool) -> int:
    from streaming.machine.logs import logger

    log = logger("collect")
    stop = _stopped_by_signals()
    lines = logs.coordinator_log()
    collectors: list[Collector] = [] if lines is None else [lines]
    if settings.followed():
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


def _write_the_rest(logs: _Logs) -> bool:
    """Try once more to write waiting events; return whether all are written."""
    deadline = time.monotonic() + _LAST_WRITE_S
    while [log for log in logs.made if not log.flush()]:
        if time.monotonic() > deadline:
            return False
        time.sleep(_RETRY_S)
    return True


def _stopped_by_signals() -> threading.Event:
    stop = threading.Event()

    def request_stop(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, request_stop)
    return stop
