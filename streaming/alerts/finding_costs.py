"""Shell: the costs of the rebalances before findings, read once for each finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from deltalake.exceptions import DeltaError

from streaming.alerts.alert_state import SentFinding
from streaming.alerts.notices import Notice
from streaming.machine.logs import logger
from streaming.tables.schema import Row
from streaming.views.rebalance_costs import Cost

# A function of this type reads the costs of findings by their ids; some findings have none.
ReadCosts: TypeAlias = Callable[[Iterable[Row]], Mapping[str, Cost]]
_AT_ONCE = 200

_log = logger("alerts")


class FindingCosts:
    """The costs of open findings."""

    def __init__(self, read: ReadCosts) -> None:
        self._read = read
        self._found: dict[str, Cost | None] = {}

    def added(
        self, notices: Sequence[Notice], current: Mapping[str, Row], sent: Mapping[str, SentFinding]
    ) -> list[Notice]:
        """Return notices with their costs, as sent before or else as in the tables.

        Args:
            current: Open findings by id; the costs of all others are forgotten.
            sent: Findings that were sent before.
        """
        self._found = {name: cost for name, cost in self._found.items() if name in current}
        wanted = {notice.finding_id for notice in notices} & current.keys() - sent.keys() - self._found.keys()
        unread = [current[name] for name in sorted(wanted)]
        try:
            for first in range(0, len(unread), _AT_ONCE):
                rows = unread[first : first + _AT_ONCE]
                found = self._read(rows)
                self._found |= {row["finding_id"]: found.get(row["finding_id"]) for row in rows}
        except (DeltaError, OSError) as error:
            _log.warning("what rebalances cost cannot be read: alerts are sent without it", reason=str(error))
        return [replace(notice, cost=self._of(notice.finding_id, sent)) for notice in notices]

    def _of(self, name: str, sent: Mapping[str, SentFinding]) -> Cost | None:
        return sent[name].cost if name in sent else self._found.get(name)
