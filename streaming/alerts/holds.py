"""Shell: decides which findings are sent, which are held back, and until when. No I/O except the log."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from streaming.alerts.alert_state import Sent
from streaming.alerts.findings_reader import CurrentFindings
from streaming.machine.logs import logger
from streaming.settings.alerts import Alerts, in_maintenance
from streaming.settings.model import Widespread
from streaming.tables.schema import Row
from streaming.views.group_health import SEVERITIES
from streaming.views.widespread import WidespreadKind

_log = logger("alerts")


class Holds:
    """Decides which open findings may be sent."""

    def __init__(self, settings: Alerts, widespread: Widespread) -> None:
        self._settings = settings
        self._widespread = widespread
        self._first_noticed: dict[str, int] = {}
        self._many: Sequence[WidespreadKind] = ()

    def update(self, findings: CurrentFindings, now_ms: int) -> None:
        """Set the current findings, and log which kinds become widespread or cease to be."""
        self._first_noticed = {
            finding_id: self._first_noticed.get(finding_id, now_ms) for finding_id in findings.current
        }
        before, now = ({(kind.cluster, kind.kind): kind for kind in many} for many in (self._many, findings.widespread))
        for place in sorted(now.keys() - before.keys()):
            held = now[place]
            values = {"cluster": held.cluster, "kind": held.kind, "groups": held.groups, "of_groups": held.of_groups}
            _log.warning("findings are widespread: they are not sent", **values)
        for cluster, kind in sorted(before.keys() - now.keys()):
            _log.info("findings are no longer widespread", cluster=cluster, kind=kind)
        self._many = findings.widespread

    def counts(self, row: Row) -> bool:
        """Return whether the settings want a finding."""
        settings = self._settings
        worst = SEVERITIES.index(settings.min_severity)
        return (
            row["severity"] in SEVERITIES[: worst + 1]
            and row["kind"] not in settings.ignored_findings
            and self._is_wanted_group(row["group_id"])
        )

    def _is_wanted_group(self, group: str | None) -> bool:
        """Return whether the filter of groups admits a finding; one of a cluster, or of the monitor, has no group."""
        return group is None or any(re.fullmatch(pattern, group, re.DOTALL) for pattern in self._settings.groups)

    def is_held(self, row: Row, sent: Sent, now_ms: int, *, is_last: bool) -> bool:
        """Return whether a finding is not sent now, and may be later.

        Args:
            row: An open finding.
            sent: What its channel was sent.
            is_last: No later step of this process sends it.
        """
        last = sent.cooling.get(cooling_key(row["cluster"], row["group_id"], row["kind"]))
        if last is not None and now_ms < last + self._settings.cool_down_ms:
            return True
        if any(kind.has(row) for kind in self._many) or self._may_be_widespread(row, now_ms, is_last=is_last):
            return True
        return in_maintenance(self._settings.maintenance, row["cluster"] or "", row["group_id"] or "", now_ms)

    def _may_be_widespread(self, row: Row, now_ms: int, *, is_last: bool) -> bool:
        """Return whether it is too early to see if other groups follow."""
        if row["kind"] not in self._widespread.kinds or row["group_id"] is None:
            return False
        since_ms = (row["opened_at"] or 0) if is_last else self._first_noticed.get(row["finding_id"], now_ms)
        return now_ms < since_ms + self._widespread.span_ms

    def has_waited(self, finding_id: str, now_ms: int, *, is_last: bool) -> bool:
        """Return whether a finding has waited long enough for others of its group."""
        wait_ms = 0 if is_last else self._settings.group_wait_ms
        return self._first_noticed.get(finding_id, now_ms) + wait_ms <= now_ms


def cooling_key(cluster: str | None, group: str | None, kind: str) -> str:
    """Return the key of a cool-down."""
    return json.dumps([cluster or "", group or "", kind])
