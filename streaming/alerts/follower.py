"""Shell: follows the findings for months; failures are logged and retried, and its health can be read."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalake.exceptions import DeltaError

from streaming.alerts.retries import Backoff
from streaming.machine.logs import logger
from streaming.settings.alerts import Alerts
from streaming.stores.failure import one_line

if TYPE_CHECKING:
    from streaming.alerts.alert_engine import AlertEngine
    from streaming.alerts.findings_reader import FindingsReader

_log = logger("alerts")


@dataclass
class AlertsStatus:
    """State of this process's alerts for other threads.

    Attributes:
        is_running: Whether the findings were followed at the last try; None if no channel is configured.
    """

    is_running: bool | None = None


def follow(
    reader: FindingsReader,
    engine: AlertEngine,
    wait: Callable[[float], bool],
    settings: Alerts,
    status: AlertsStatus | None = None,
) -> None:
    """Send due messages, again and again, until ``wait`` returns that it is time to stop.

    Args:
        wait: Waits for this many seconds, or until the stop.
        settings: The interval, and the pause after an unexpected error.
        status: The status object to keep up to date.
    """
    status = status or AlertsStatus()
    backoff = Backoff(settings.poll_interval_ms, max(settings.poll_interval_ms, settings.retry_most_ms))
    status.is_running = False
    try:
        while True:
            pause_ms = settings.poll_interval_ms
            try:
                engine.step(reader.read(engine.state.open_findings))
            except (DeltaError, OSError) as error:
                status.is_running = False
                reason = one_line(error)
                _log.warning("the findings could not be followed; tried again", reason=reason)
                if (unreadable := reader.unreadable(reason)) is not None:
                    engine.step(unreadable)
            except Exception as error:  # noqa: BLE001 - alerts that end silently are worse than ones that fail
                status.is_running = False
                pause_ms = backoff.failed("", 0)
                # The error's text may contain secrets.
                place = traceback.extract_tb(error.__traceback__)[-1]
                reason = f"{type(error).__name__} in {place.name} ({place.filename}:{place.lineno})"
                _log.error("alerts failed unexpectedly; tried again", reason=reason, retry_ms=pause_ms)
            else:
                status.is_running = True
                backoff.succeeded("")
            if wait(pause_ms / 1_000):
                return
    finally:
        status.is_running = False
