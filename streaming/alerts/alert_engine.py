"""Shell: follows the findings, and sends openings and closings to each channel, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from streaming.alerts.alert_state import AlertState, Sent, SentFinding
from streaming.alerts.channels import Compose, Request
from streaming.alerts.delivery import Deliver
from streaming.alerts.delivery_error import DeliveryError, unsendable
from streaming.alerts.finding_annotations import FindingAnnotations, ReadAnnotations
from streaming.alerts.finding_costs import FindingCosts, ReadCosts
from streaming.alerts.findings_reader import CurrentFindings
from streaming.alerts.holds import Holds, cooling_key
from streaming.alerts.notices import Bundle, Notice, bundled, notice_of, vanished
from streaming.alerts.retries import Retries
from streaming.machine.logs import logger
from streaming.settings.alerts import Alerts
from streaming.settings.model import Widespread

_log = logger("alerts")

# A row may be missing for a shorter time, because tables are replaced one by one.
MISSING_MS = 60_000


class AlertEngine:
    """Decides what is due for each channel, sends it, and remembers that it was sent.

    Args:
        settings: The section ``alerts``. widespread: The section of that name.
        channels: By name. deliver: Sends a request.
        state: What was sent before.
        now_ms: The wall clock.
        read_costs: Reads the costs of the rebalances before findings. read_annotations: Reads their annotations.
    """

    def __init__(
        self,
        settings: Alerts,
        widespread: Widespread,
        channels: Mapping[str, Compose],
        deliver: Deliver,
        state: AlertState,
        now_ms: Callable[[], int],
        read_costs: ReadCosts,
        read_annotations: ReadAnnotations = lambda _: {},
    ) -> None:
        self._settings = settings
        self._channels = channels
        self._deliver = deliver
        self.state = state
        self._now_ms = now_ms
        self._retries = {name: Retries(settings.retry_first_ms, settings.retry_most_ms) for name in channels}
        self._holds = Holds(settings, widespread)
        self._costs, self._annotations = FindingCosts(read_costs), FindingAnnotations(read_annotations)
        self._refreshed_ms: int | None = None

    def step(self, findings: CurrentFindings, *, is_last: bool = False) -> int:
        """Send what is due now; return how many requests were accepted.

        Args:
            is_last: No other step follows, so nothing waits for more of its group.
        """
        now_ms = self._now_ms()
        self._holds.update(findings, now_ms)
        self._note_missing(findings.missing, now_ms)
        accepted = 0
        for channel, compose in self._channels.items():
            bundles = self._messages(channel, findings, now_ms, is_last=is_last)
            # Services limit the rate of messages. While apprise waits for that, other channels wait as well.
            most = 1 if channel in self._settings.channels and not is_last else len(bundles)
            for bundle in bundles[:most]:
                accepted += self._send(channel, compose, bundle, now_ms)
        return accepted + self._refresh(findings, now_ms)

    def due(self, findings: CurrentFindings) -> Iterable[Request]:
        """Yield the messages that a last step would send now."""
        now_ms = self._now_ms()
        self._holds.update(findings, now_ms)
        for channel, compose in self._channels.items():
            for bundle in self._messages(channel, findings, now_ms, is_last=True):
                yield from compose(bundle, now_ms)

    def _note_missing(self, missing: Set[str], now_ms: int) -> None:
        opened = [item for sent in self.state.channels.values() for item in sent.opened.items()]
        changed = [sent for name, sent in opened if (name in missing) is (sent.missing_since_ms is None)]
        for sent in changed:
            sent.missing_since_ms = now_ms if sent.missing_since_ms is None else None
        if changed:
            self._write(now_ms)

    def _messages(self, channel: str, findings: CurrentFindings, now_ms: int, *, is_last: bool) -> list[Bundle]:
        """Return the messages due for a channel: refused findings one by one, and often failed ones last."""
        retries, most = self._retries[channel], self._settings.max_findings
        sent = self.state.of(channel)
        pending = self._pending(sent, findings, now_ms, is_last=is_last)
        retries.keep({(notice.finding_id, notice.status) for notice in pending})
        alone = [notice for notice in pending if retries.is_refused((notice.finding_id, notice.status))]
        fresh = [notice for notice in pending if not retries.is_refused((notice.finding_id, notice.status))]
        # A message is sent once the first finding of its group has waited long enough for others.
        ready = {
            notice.key[:2]
            for notice in fresh
            if notice.status == "opened" and self._holds.has_waited(notice.finding_id, now_ms, is_last=is_last)
        }
        due = [notice for notice in fresh if notice.status == "closed" or notice.key[:2] in ready]
        again = [notice for notice in alone if retries.is_due((notice.finding_id, notice.status), now_ms)]
        due, again = (self._completed(those, findings, sent.opened) for those in (due, again))
        found = [*bundled(due, most), *bundled(again, 1)]
        return sorted(found, key=lambda bundle: retries.attempts(bundle.notices))

    def _completed(
        self, notices: Sequence[Notice], findings: CurrentFindings, opened: Mapping[str, SentFinding]
    ) -> list[Notice]:
        """Return notices with what the tables hold about them beside the finding."""
        return self._annotations.added(self._costs.added(notices, findings.current, opened), findings.current)

    def _pending(self, sent: Sent, findings: CurrentFindings, now_ms: int, *, is_last: bool) -> list[Notice]:
        """Return the notices that a channel has not been sent yet."""
        closed = [notice_of(row, "closed") for name, row in findings.closed.items() if name in sent.opened]
        ended = [
            vanished(name, finding, now_ms)
            for name, finding in sorted(sent.opened.items())
            if finding.missing_since_ms is not None and finding.missing_since_ms + MISSING_MS <= now_ms
        ]
        opened = [
            notice_of(row, "opened")
            for name, row in findings.current.items()
            if name not in sent.opened
            and self._holds.counts(row)
            and not self._holds.is_held(row, sent, now_ms, is_last=is_last)
        ]
        return [*closed, *ended, *opened]

    def _send(self, channel: str, compose: Compose, bundle: Bundle, now_ms: int) -> int:
        """Send the requests of a message one by one; accepted ones are remembered at once."""
        accepted = 0
        retries = self._retries[channel]
        if not retries.may_try(now_ms):
            return 0
        try:
            requests = compose(bundle, now_ms)
        except Exception as error:  # noqa: BLE001 - a message that cannot be made keeps no other from being sent
            self._note_failure(channel, bundle.notices, unsendable(error))
            return 0
        # A channel gets the message as one request, or one request for each finding.
        parts = [[notice] for notice in bundle.notices] if len(requests) == len(bundle.notices) else [bundle.notices]
        for request, notices in zip(requests, parts, strict=True):
            failure = self._attempt(request)
            if failure is None:
                retries.accepted()
                self._remember(self.state.of(channel), notices, now_ms)
                accepted += 1
                continue
            self._note_failure(channel, notices, failure)
            if not failure.is_refusal:
                break
        return accepted

    def _attempt(self, request: Request) -> DeliveryError | None:
        """Send one request; return why it was not accepted."""
        try:
            self._deliver(request)
        except DeliveryError as error:
            return error
        except Exception as error:  # noqa: BLE001 - a message that cannot be sent keeps no other from being sent
            return unsendable(error)
        return None

    def _note_failure(self, channel: str, notices: Sequence[Notice], error: DeliveryError) -> None:
        retries, now_ms = self._retries[channel], self._now_ms()
        if error.is_refusal:
            pause_ms = retries.refused(notices, now_ms, error.retry_after_ms)
        else:
            pause_ms = retries.failed(notices, now_ms, error.retry_after_ms)
        event = "an alert was refused" if error.is_refusal else "a channel of alerts failed"
        _log.warning(event, channel=channel, reason=str(error), findings=len(notices), retry_ms=pause_ms)
        resolutions = [notice for notice in notices if notice.status == "closed"]
        if error.is_refusal and resolutions:
            self._note_refused_resolutions(channel, resolutions, now_ms)

    def _note_refused_resolutions(self, channel: str, notices: Sequence[Notice], now_ms: int) -> None:
        """Give up resolutions that the channel has refused for too long, because nothing else would end them."""
        opened = self.state.of(channel).opened
        for notice in notices:
            sent = opened[notice.finding_id]
            sent.refused_since_ms = now_ms if sent.refused_since_ms is None else sent.refused_since_ms
            if now_ms < sent.refused_since_ms + self._settings.resolve_for_ms:
                continue
            del opened[notice.finding_id]
            values = {
                "kind": notice.kind,
                "cluster": notice.cluster,
                "group_id": notice.group_id,
                "finding_id": notice.finding_id,
            }
            _log.error("a resolution is refused for too long and given up: end it there", channel=channel, **values)
        self._write(now_ms)

    def _remember(self, sent: Sent, notices: Sequence[Notice], now_ms: int) -> None:
        for notice in notices:
            if notice.status == "opened":
                sent.cooling[cooling_key(*notice.key)] = now_ms
                sent.opened[notice.finding_id] = SentFinding(
                    notice.cluster,
                    notice.group_id,
                    notice.kind,
                    notice.severity,
                    notice.opened_at_ms,
                    now_ms,
                    notice.cost,
                )
            else:
                sent.opened.pop(notice.finding_id, None)
        self._write(now_ms)

    def _write(self, now_ms: int) -> None:
        self.state.write(now_ms - self._settings.cool_down_ms)

    def _refresh(self, findings: CurrentFindings, now_ms: int) -> int:
        """Send open alerts to an Alertmanager again, because it drops alerts that are not repeated."""
        compose = self._channels.get("alertmanager")
        due_ms = now_ms if self._refreshed_ms is None else self._refreshed_ms + self._settings.alertmanager_refresh_ms
        if compose is None or now_ms < due_ms:
            return 0
        opened, retries = self.state.of("alertmanager").opened, self._retries["alertmanager"]
        before = {name for name, finding in opened.items() if finding.sent_at_ms < now_ms}
        again = [notice_of(row, "opened") for name, row in findings.current.items() if name in before]
        current = self._completed(again, findings, opened)
        accepted, most = 0, self._settings.max_findings
        for bundle in (Bundle(current[first : first + most]) for first in range(0, len(current), most)):
            if not retries.may_try(now_ms):
                return accepted
            (request,) = compose(bundle, now_ms)
            error = self._attempt(request)
            if error is None:
                retries.accepted()
                accepted += 1
            elif error.is_refusal:
                # It accepts the valid alerts of a request, and gets all of them again next time.
                _log.warning("repeated alerts were refused", channel="alertmanager", reason=str(error))
            else:
                self._note_failure("alertmanager", bundle.notices, error)
                return accepted
        self._refreshed_ms = now_ms
        return accepted
