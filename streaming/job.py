"""Shell: the long-running job: starts what belongs together, watches over it, stops it in order."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from streaming.checkpoint import Checkpoint, ControlFolder, Identity
from streaming.live_view import LiveStatus
from streaming.logs import logger
from streaming.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from streaming.kafka.collector import KafkaCollector

_LOOK_EVERY_S = 0.25
_RESTART_AFTER_S = (1.0, 2.0, 5.0, 10.0, 30.0)
_log = logger("job")


class StopRequest:
    """Asked for by SIGTERM, Ctrl-C or a program; asked twice, it no longer waits for the batch."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self.urgent = False

    def ask(self) -> None:
        self.urgent = self._asked.is_set()
        self._asked.set()

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for the request, at most so long; answer whether it came."""
        return self._asked.wait(seconds)

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Take SIGTERM and SIGINT as requests while inside."""

        def take(number: int, _frame: FrameType | None) -> None:
            _log.info("stop asked for", signal=signal.Signals(number).name)
            self.ask()

        before = {number: signal.signal(number, take) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def source_names(settings: Settings) -> list[str]:
    """Answer what the query reads, as the checkpoint remembers it, in the order of the union."""
    names = ["control"]
    if settings.events.folder:
        names.append(f"events:{Path(settings.events.folder).absolute()}")
    if settings.kafka_events.topic:
        names.append(f"kafka-events:{settings.kafka_events.topic}")
    if settings.kafka.bootstrap_servers:
        names.append(f"kafka:{settings.kafka.cluster}")
    return names
