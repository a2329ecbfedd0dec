"""Shell: follows the findings, and sends what opened and closed to each channel, once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from deltalake import DeltaTable

from streaming.alerts.channels import Compose, Request, without_secrets
from streaming.alerts.delivery import Deliver, DeliveryError, attempt, unsendable
from streaming.alerts.ledger import Ledger, Remembered, Sent
from streaming.alerts.notices import Bundle, Notice, bundled, notice, vanished
from streaming.alerts.retries import Retries
from streaming.machine.logs import logger
from streaming.settings.alerts import Alerts, in_maintenance
from streaming.settings.locations import Location
from streaming.tables.location import is_table, table_uri
from streaming.tables.schema import Row
from streaming.views.findings import SEVERITIES
from streaming.views.reader import Reader

_log = logger("alerts")


# A row that is away for less may be back: tables are put in place one by one.
MISSING_MS = 60_000


@dataclass(frozen=True)
class Findings:
    """What the table says now.

    Attributes:
        current: Open findings by id. closed: Those of a set of ids that closed, by id.
        missing: Those of the set without a row.
    """

    current: Mapping[str, Row]
    closed: Mapping[str, Row]
    missing: Set[str] = frozenset()


class FindingsReader:
    """Reads the findings again when their table has a new version.

    Args:
        root: Folder of the tables.
    """

    def __init__(self, root: Location) -> None:
        self._root = root
        self._version: int | None = None
        self._current: Mapping[str, Row] = {}
        self._absent: Set[str] = frozenset()
        self._ended: Mapping[str, Row] = {}

    def read(self, awaited: set[str]) -> Findings:
        """Return the open findings, and those of ``awaited`` that closed or have no row.

        Raises:
            DeltaError, OSError: The table cannot be read.
        """
        if not is_table(self._root, "findings"):
            return Findings({}, {})
        version = DeltaTable(table_uri(self._root, "findings")).version()
        reader = Reader(self._root)
        is_new = version != self._version
        if is_new:
            rows = reader.rows("findings", keep=lambda table: table["closed_at"].is_null())
            self._current, self._version = {row["finding_id"]: row for row in rows}, version
        absent = awaited - self._current.keys()
        if is_new or absent != self._absent:
            rows = reader.rows("findings", where={"finding_id": absent}) if absent else []
            self._absent, self._ended = absent, {row["finding_id"]: row for row in rows}
        closed = {name: row for name, row in self._ended.items() if row["closed_at"] is not None}
        return Findings(self._current, closed, absent - self._ended.keys())


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
        self._retries = {name: Retries(settings.retry_first_ms, settings.retry_most_ms) for name in channels}
        self._first_noticed: dict[str, int] = {}
        self._refreshed_ms: int | None = None

    def step(self, findings: Findings, *, is_last: bool = False) -> int:
        """Send what is due now; return how many requests were accepted.

        Args:
            is_last: No other step follows, so nothing waits for more of its group.
        """
        now_ms = self._now_ms()
        wait_ms = 0 if is_last else self._settings.group_wait_ms
        self._first_noticed = {one: self._first_noticed.get(one, now_ms) for one in findings.current}
        self._note_missing(findings.missing, now_ms)
        accepted = 0
        for channel, compose in self._channels.items():
            for bundle in self._messages(channel, findings, now_ms, wait_ms):
                accepted += self._send(channel, compose, bundle, now_ms)
        return accepted + self._refresh(findings, now_ms)

    def due(self, findings: Findings) -> Iterable[Request]:
        """Yield what a last step would send now."""
        now_ms = self._now_ms()
        for channel, compose in self._channels.items():
            for bundle in self._messages(channel, findings, now_ms, 0):
                yield from compose(bundle, now_ms)

    def _note_missing(self, missing: Set[str], now_ms: int) -> None:
        since = self.ledger.missing_since
        noted = {name: since.get(name, now_ms) for name in sorted(missing)}
        if noted != since:
            self.ledger.missing_since = noted
            self._write(now_ms)

    def _messages(self, channel: str, findings: Findings, now_ms: int, wait_ms: int) -> list[Bundle]:
        """Return what is due for a channel: what it refused before alone, what it often did not accept last."""
        retries, most = self._retries[channel], self._settings.max_findings
        pending = self._pending(self.ledger.of(channel), findings, now_ms)
        retries.keep({(one.finding_id, one.status) for one in pending})
        alone = [one for one in pending if retries.is_refused((one.finding_id, one.status))]
        fresh = [one for one in pending if not retries.is_refused((one.finding_id, one.status))]
        # A message goes out when the first of its group has waited for others.
        ready = {
            one.key[:2]
            for one in fresh
            if one.status == "opened" and self._first_noticed.get(one.finding_id, now_ms) + wait_ms <= now_ms
        }
        found = bundled([one for one in fresh if one.status == "closed" or one.key[:2] in ready], most)
        found += bundled([one for one in alone if retries.is_due((one.finding_id, one.status), now_ms)], 1)
        return sorted(found, key=lambda bundle: retries.attempts(bundle.notices))

    def _pending(self, sent: Sent, findings: Findings, now_ms: int) -> list[Notice]:
        """Return what a channel was not sent yet."""
        closed = [notice(row, "closed") for name, row in findings.closed.items() if name in sent.opened]
        lost = [name for name in sorted(findings.missing & sent.opened.keys()) if self._has_vanished(name, now_ms)]
        ended = [vanished(name, self.ledger.findings.get(name), now_ms) for name in lost]
        opened = [row for name, row in findings.current.items() if name not in sent.opened and self._counts(row)]
        return [*closed, *ended, *(notice(row, "opened") for row in opened if not self._is_held(row, sent, now_ms))]

    def _has_vanished(self, name: str, now_ms: int) -> bool:
        return self.ledger.missing_since.get(name, now_ms) + MISSING_MS <= now_ms

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

    def _send(self, channel: str, compose: Compose, bundle: Bundle, now_ms: int) -> int:
        """Send the requests of a message one by one; what was accepted is remembered at once."""
        accepted = 0
        retries = self._retries[channel]
        if not retries.may_try(now_ms):
            return 0
        try:
            requests = compose(bundle, now_ms)
        except Exception as error:  # noqa: BLE001 - a message that cannot be made keeps no other from being sent
            self._note_failure(channel, bundle.notices, unsendable(error))
            return 0
        # A channel takes the message as one request, or each of its findings by itself.
        parts = [[one] for one in bundle.notices] if len(requests) == len(bundle.notices) else [bundle.notices]
        for request, notices in zip(requests, parts, strict=True):
            failure = attempt(self._deliver, request)
            if failure is None:
                retries.accepted()
                self._remember(self.ledger.of(channel), notices, now_ms)
                accepted += 1
                continue
            self._note_failure(channel, notices, failure)
            if not failure.is_refusal:
                break
        return accepted

    def _note_failure(self, channel: str, notices: Sequence[Notice], error: DeliveryError) -> None:
        retries, now_ms = self._retries[channel], self._now_ms()
        if error.is_refusal:
            pause_ms = retries.refused(notices, now_ms, error.retry_after_ms)
        else:
            pause_ms = retries.failed(notices, now_ms, error.retry_after_ms)
        event = "an alert was refused" if error.is_refusal else "a channel of alerts failed"
        _log.warning(event, channel=channel, reason=str(error), findings=len(notices), retry_ms=pause_ms)

    def _remember(self, sent: Sent, notices: Sequence[Notice], now_ms: int) -> None:
        for one in notices:
            if one.status == "opened":
                sent.opened[one.finding_id] = now_ms
                sent.cooling[json.dumps(one.key)] = now_ms
                self.ledger.findings[one.finding_id] = Remembered(
                    one.cluster, one.group_id, one.kind, one.severity, one.opened_at_ms
                )
            else:
                sent.opened.pop(one.finding_id, None)
        self._write(now_ms)

    def _write(self, now_ms: int) -> None:
        self.ledger.write(now_ms - self._settings.cool_down_ms)

    def _refresh(self, findings: Findings, now_ms: int) -> int:
        """Send open alerts to an Alertmanager again: it drops those that are not repeated."""
        compose = self._channels.get("alertmanager")
        due_ms = now_ms if self._refreshed_ms is None else self._refreshed_ms + self._settings.alertmanager_refresh_ms
        if compose is None or now_ms < due_ms:
            return 0
        sent, retries = self.ledger.of("alertmanager").opened, self._retries["alertmanager"]
        current = [notice(row, "opened") for name, row in findings.current.items() if sent.get(name, now_ms) < now_ms]
        accepted, most = 0, self._settings.max_findings
        for bundle in (Bundle(current[first : first + most]) for first in range(0, len(current), most)):
            if not retries.may_try(now_ms):
                return accepted
            (request,) = compose(bundle, now_ms)
            error = attempt(self._deliver, request)
            if error is None:
                retries.accepted()
                accepted += 1
            elif error.is_refusal:
                # It takes those of a request that it can take, and gets all of them at the next time.
                _log.warning("repeated alerts were refused", channel="alertmanager", reason=str(error))
            else:
                self._note_failure("alertmanager", bundle.notices, error)
                return accepted
        self._refreshed_ms = now_ms
        return accepted


def shown(requests: Iterable[Request]) -> Sequence[Mapping[str, object]]:
    """Return requests as a dry run shows them."""
    return [without_secrets(request) for request in requests]


def _group(row: Row) -> tuple[str, str]:
    return row["cluster"] or "", row["group_id"] or ""


def _cooling(row: Row) -> str:
    return json.dumps([*_group(row), row["kind"]])
