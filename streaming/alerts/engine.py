"""Shell: follows the findings, and sends what opened and closed to each channel, once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from streaming.alerts.channels import Compose, Request, without_secrets
from streaming.alerts.delivery import Backoff, Deliver, attempt
from streaming.alerts.ledger import Ledger, Sent
from streaming.alerts.notices import Bundle, Notice, bundled, notice
from streaming.machine.logs import logger
from streaming.settings.alerts import Alerts, in_maintenance
from streaming.settings.locations import Location
from streaming.tables.location import is_table, table_uri
from streaming.tables.schema import Row
from streaming.views.findings import SEVERITIES
from streaming.views.reader import Reader

_log = logger("alerts")


@dataclass(frozen=True)
class Findings:
    """What the table says now.

    Attributes:
        current: Open findings by id. closed: Those of a set of ids that closed, by id.
    """

    current: Mapping[str, Row]
    closed: Mapping[str, Row]


class FindingsReader:
    """Reads the findings again when their table has a new version.

    Args:
        root: Folder of the tables.
    """

    def __init__(self, root: Location) -> None:
        self._root = root
        self._version: int | None = None
        self._current: Mapping[str, Row] = {}

    def read(self, awaited: set[str]) -> Findings:
        """Return the open findings, and those of ``awaited`` that closed.

        Raises:
            DeltaError, OSError: The table cannot be read.
        """
        if not is_table(self._root, "findings"):
            return Findings({}, {})
        version = DeltaTable(table_uri(self._root, "findings")).version()
        reader = Reader(self._root)
        if version != self._version:
            rows = reader.rows("findings", keep=lambda table: table["closed_at"].is_null())
            self._current, self._version = {row["finding_id"]: row for row in rows}, version
        missing = awaited - self._current.keys()
        ended = reader.rows("findings", where={"finding_id": missing}) if missing else []
        return Findings(self._current, {row["finding_id"]: row for row in ended if row["closed_at"] is not None})


class AlertEngine:
    """Decides what is due for each channel, sends it, and remembers that it was sent.

    Args:
        settings: The section ``alerts``.
        channels: By name. deliver: What sends a request.
        ledger: What was sent before.
        now_ms: The wall clock.
    """

    def __init__(
        self,
        settings: Alerts,
        channels: Mapping[str, Compose],
        deliver: Deliver,
        ledger: Ledger,
        now_ms: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._channels = channels
        self._deliver = deliver
        self.ledger = ledger
        self._now_ms = now_ms
        self._backoff = Backoff(settings.retry_first_ms, settings.retry_most_ms)
        self._first_noticed: dict[str, int] = {}
        self._refreshed_ms = now_ms()

    def step(self, findings: Findings) -> int:
        """Send what is due now; return how many requests were accepted."""
        now_ms = self._now_ms()
        self._first_noticed = {one: self._first_noticed.get(one, now_ms) for one in findings.current}
        accepted = 0
        for channel, compose in self._channels.items():
            sent = self.ledger.of(channel)
            for bundle in bundled(self._due(sent, findings, now_ms), self._settings.max_findings):
                accepted += self._send(channel, compose, bundle, sent, now_ms)
        return accepted + self._refresh(findings, now_ms)

    def due(self, findings: Findings) -> Iterable[Request]:
        """Yield what would be sent now, without waiting for more of the same group."""
        now_ms = self._now_ms()
        self._first_noticed = dict.fromkeys(findings.current, now_ms - self._settings.group_wait_ms)
        for channel, compose in self._channels.items():
            due = self._due(self.ledger.of(channel), findings, now_ms)
            for bundle in bundled(due, self._settings.max_findings):
                yield from compose(bundle, now_ms)

    def _due(self, sent: Sent, findings: Findings, now_ms: int) -> list[Notice]:
        closed = [notice(row, "closed") for name, row in findings.closed.items() if name in sent.opened]
        opened = [row for name, row in findings.current.items() if name not in sent.opened and self._counts(row)]
        opened = [row for row in opened if not self._is_held(row, sent, now_ms)]
        # A message goes out when the first of its group has waited for others.
        ready = {
            _group(row)
            for row in opened
            if self._first_noticed.get(row["finding_id"], now_ms) + self._settings.group_wait_ms <= now_ms
        }
        return [*closed, *(notice(row, "opened") for row in opened if _group(row) in ready)]

    def _counts(self, row: Row) -> bool:
        settings = self._settings
        worst = SEVERITIES.index(settings.min_severity)
        return (
            row["severity"] in SEVERITIES[: worst + 1]
            and row["kind"] not in settings.ignored_findings
            and any(re.fullmatch(pattern, row["group_id"] or "", re.DOTALL) for pattern in settings.groups)
        )

    def _is_held(self, row: Row, sent: Sent, now_ms: int) -> bool:
        last = sent.cooling.get(_cooling(row))
        if last is not None and now_ms < last + self._settings.cool_down_ms:
            return True
        return in_maintenance(self._settings.maintenance, row["cluster"] or "", row["group_id"] or "", now_ms)

    def _send(self, channel: str, compose: Compose, bundle: Bundle, sent: Sent, now_ms: int) -> int:
        """Send the requests of a message one by one; what was accepted is remembered at once."""
        accepted = 0
        requests = compose(bundle, now_ms)
        # A channel takes the message as one request, or each of its findings by itself.
        parts = [[one] for one in bundle.notices] if len(requests) == len(bundle.notices) else [bundle.notices]
        for request, notices in zip(requests, parts, strict=True):
            if not self._backoff.may_try(channel, now_ms):
                break
            if not attempt(self._deliver, request, self._backoff, self._now_ms):
                break
            for one in notices:
                self._remember(sent, one, now_ms)
            self.ledger.write(now_ms - self._settings.cool_down_ms)
            accepted += 1
        return accepted

    def _remember(self, sent: Sent, one: Notice, now_ms: int) -> None:
        if one.status == "opened":
            sent.opened[one.finding_id] = now_ms
            sent.cooling[json.dumps(one.key)] = now_ms
        else:
            sent.opened.pop(one.finding_id, None)

    def _refresh(self, findings: Findings, now_ms: int) -> int:
        """Send open alerts to an Alertmanager again: it drops those that are not repeated."""
        compose = self._channels.get("alertmanager")
        if compose is None or now_ms < self._refreshed_ms + self._settings.alertmanager_refresh_ms:
            return 0
        sent = self.ledger.of("alertmanager")
        current = [notice(row, "opened") for name, row in findings.current.items() if name in sent.opened]
        accepted = 0
        for first in range(0, len(current), self._settings.max_findings):
            (request,) = compose(Bundle(current[first : first + self._settings.max_findings]), now_ms)
            if not self._backoff.may_try("alertmanager", now_ms):
                return accepted
            if not attempt(self._deliver, request, self._backoff, self._now_ms):
                return accepted
            accepted += 1
        self._refreshed_ms = now_ms
        return accepted


def shown(requests: Iterable[Request]) -> Sequence[Mapping[str, object]]:
    """Return requests as a dry run shows them."""
    return [without_secrets(request) for request in requests]


def _group(row: Row) -> tuple[str, str]:
    return row["cluster"] or "", row["group_id"] or ""


def _cooling(row: Row) -> str:
    return json.dumps([*_group(row), row["kind"]])


def follow(reader: FindingsReader, engine: AlertEngine, wait: Callable[[float], bool], interval_ms: int) -> None:
    """Send what is due, again and again, until ``wait`` returns that it is time to stop.

    Args:
        wait: Waits for so many seconds, or until the stop.
    """
    while True:
        try:
            engine.step(reader.read(engine.ledger.open_findings))
        except (DeltaError, OSError) as error:
            _log.warning("the findings could not be followed; tried again", reason=str(error))
        if wait(interval_ms / 1_000):
            return
