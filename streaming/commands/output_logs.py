"""Shell: the logs to which `collect` appends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from streaming.setup.errors import SetupError
from streaming.stores.locks import Guard, exclusive_use
from streaming.stores.places import Place
from udfs.model.systems import KAFKA

if TYPE_CHECKING:
    from streaming.collectors.collector import CollectorStatus
    from streaming.collectors.collector_liveness_writer import CollectorLivenessWriter
    from streaming.collectors.event_log import EventLog
    from streaming.collectors.kafka.coordinator_log_collector import CoordinatorLogCollector
    from streaming.settings.model import Settings
    from streaming.tables.liveness import SourceStatus

# It has no groups: what it is about concerns members of other clusters.
KUBERNETES = "kubernetes"


class OutputLogs:
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
        section = settings.kubernetes if system == KUBERNETES else settings.cluster(system)
        self._cluster = section.cluster
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
        servers = self._servers or (followed.bootstrap_servers if followed else events_servers(settings))
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


def events_servers(settings: Settings) -> str:
    """Return the brokers of the topic of events, where it does not name them itself."""
    return settings.kafka_events.bootstrap_servers or settings.kafka.bootstrap_servers
