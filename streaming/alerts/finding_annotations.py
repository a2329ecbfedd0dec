"""Shell: the annotations related to findings, read once for each finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from deltalake.exceptions import DeltaError

from streaming.alerts.notices import Notice
from streaming.machine.logs import logger
from streaming.tables.schema import Row

# A function of this type reads the annotations related to findings, by the ids of these; some findings have none.
ReadAnnotations: TypeAlias = Callable[[Iterable[Row]], Mapping[str, Sequence[Row]]]

_log = logger("alerts")


class FindingAnnotations:
    """The annotations of open findings, as they were when the findings were first sent."""

    def __init__(self, read: ReadAnnotations) -> None:
        self._read = read
        self._found: dict[str, Sequence[Row]] = {}

    def added(self, notices: Sequence[Notice], current: Mapping[str, Row]) -> list[Notice]:
        """Return notices with their annotations.

        Args:
            current: Open findings by id; what is known of all others is forgotten.
        """
        self._found = {name: rows for name, rows in self._found.items() if name in current}
        wanted = {notice.finding_id for notice in notices} & current.keys() - self._found.keys()
        unread = [current[name] for name in sorted(wanted)]
        try:
            found = self._read(unread) if unread else {}
            self._found |= {row["finding_id"]: found.get(row["finding_id"], ()) for row in unread}
        except (DeltaError, OSError) as error:
            _log.warning("annotations cannot be read: alerts are sent without them", reason=str(error))
        return [replace(notice, annotations=self._found.get(notice.finding_id, ())) for notice in notices]
