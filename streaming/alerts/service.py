"""Shell: alerts as a service of a process: settings in, a thread or a loop out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

from streaming.alerts.alert_engine import AlertEngine
from streaming.alerts.alert_state import AlertState
from streaming.alerts.channels import Request, channels
from streaming.alerts.delivery import Deliver, check_addresses, open_delivery
from streaming.alerts.findings_reader import FindingsReader
from streaming.alerts.follower import AlertsStatus, follow
from streaming.alerts.templates import Templates
from streaming.machine.clock import now_ms
from streaming.machine.file_lock import exclusive_lock
from streaming.machine.folder_check import write_error
from streaming.machine.logs import logger
from streaming.settings.alerts import Alerts
from streaming.settings.errors import SettingsError
from streaming.settings.locations import Location
from streaming.settings.model import Widespread
from streaming.setup.errors import SetupError
from streaming.views.related_annotations import DEFAULT_SPANS, AnnotationSpans

# Opens a delivery according to the settings.
Delivery: TypeAlias = Callable[[Alerts], AbstractContextManager[Deliver]]

_log = logger("alerts")
_STOP_S = 30


def is_configured(settings: Alerts) -> bool:
    """Return whether there is a channel."""
    return bool(channels(settings, _texts(settings)))


def dry_run(
    root: Location, settings: Alerts, widespread: Widespread, near: AnnotationSpans = DEFAULT_SPANS
) -> Sequence[Mapping[str, object]]:
    """Return what would be sent now, without secrets; nothing is sent and nothing remembered."""
    reader = FindingsReader(root, widespread, now_ms, near)
    engine = _engine(reader, settings, widespread, _refuse, now_ms)
    return [request.shown() for request in engine.due(reader.read(engine.state.open_findings))]


def run_once(
    root: Location,
    settings: Alerts,
    widespread: Widespread,
    delivery: Delivery = open_delivery,
    near: AnnotationSpans = DEFAULT_SPANS,
) -> int:
    """Send what is due now, without waiting for more of a group; return how many requests were accepted."""
    reader = FindingsReader(root, widespread, now_ms, near)
    with _sole_sender(settings), delivery(settings) as deliver:
        engine = _engine(reader, settings, widespread, deliver, now_ms)
        return engine.step(reader.read(engine.state.open_findings), is_last=True)


def run(
    root: Location,
    settings: Alerts,
    widespread: Widespread,
    wait: Callable[[float], bool],
    delivery: Delivery = open_delivery,
    near: AnnotationSpans = DEFAULT_SPANS,
) -> None:
    """Send messages as they become due until ``wait`` returns true.

    Raises:
        SetupError: Another process uses the same state.
    """
    reader = FindingsReader(root, widespread, now_ms, near)
    with _sole_sender(settings), delivery(settings) as deliver:
        engine = _engine(reader, settings, widespread, deliver, now_ms)
        _log.info("alerts", channels=sorted(channels(settings, _texts(settings))), open=dict(engine.state.shown()))
        follow(reader, engine, wait, settings)


@contextmanager
def in_background(
    root: Location,
    settings: Alerts,
    widespread: Widespread,
    status: AlertsStatus | None = None,
    near: AnnotationSpans = DEFAULT_SPANS,
) -> Iterator[None]:
    """Send from a thread while the context is open, if there is a channel; its setup errors are raised at once.

    Args:
        widespread: When a kind of findings is widespread, so that it is not sent.
        status: The status object to keep up to date. near: Which annotations are near a finding.
    """
    if not is_configured(settings):
        yield
        return
    stop = threading.Event()
    reader = FindingsReader(root, widespread, now_ms, near)
    with _sole_sender(settings), open_delivery(settings) as deliver:
        engine = _engine(reader, settings, widespread, deliver, now_ms)
        arguments = (reader, engine, stop.wait, settings, status)
        thread = threading.Thread(target=follow, args=arguments, name="alerts", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(_STOP_S)


@contextmanager
def _sole_sender(settings: Alerts) -> Iterator[None]:
    path = Path(settings.state_file)
    if (wrong := write_error(path.parent)) is not None:
        raise SetupError(f"alerts.state_file {path}: {wrong}", "name a file in a folder that can be written")
    path.parent.mkdir(parents=True, exist_ok=True)
    problem = f"another process sends the alerts of {path}"
    lock = path.with_name(f".{path.name}.lock")
    with exclusive_lock(lock, problem=problem, remedy="stop it, or set alerts.state_file"):
        yield


def _engine(
    reader: FindingsReader, settings: Alerts, widespread: Widespread, deliver: Deliver, now: Callable[[], int]
) -> AlertEngine:
    found = channels(settings, _texts(settings))
    if not found:
        raise SetupError(
            "no channel is configured",
            "set alerts.webhook_url, alerts.alertmanager_url or a channel in [alerts.channels]",
        )
    check_addresses(settings)
    return AlertEngine(
        settings,
        widespread,
        found,
        deliver,
        AlertState(Path(settings.state_file)),
        now,
        read_costs=reader.costs,
        read_annotations=reader.annotations,
    )


def _texts(settings: Alerts) -> Templates:
    try:
        return Templates(settings.title, settings.text, settings.link)
    except ValueError as error:
        raise SettingsError([f"alerts.title, alerts.text: {error}"]) from error


def _refuse(request: Request) -> None:
    raise AssertionError(f"a dry run sends nothing to {request.channel}")
