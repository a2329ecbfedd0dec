"""Shell: the recorded causes of a group's rebalances, each found by what it is about and when. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from streaming.tables.schema import Row

DEPARTURES: Final = {"member_left": "left", "session_expired": "expired", "member_gone": "gone"}
DESCRIBED: Final = frozenset(("subscription_changed", "strategy_changed", "settings_changed"))


class NamedCause(NamedTuple):
    """A cause, and the time of the rebalance that names it."""

    at: int
    kind: str
    member_id: str | None
    topic: str | None
    detail: str | None
    event_id: str | None


class NamedCauses:
    """The causes of a group; each is found at most once."""

    def __init__(self, rebalances: Iterable[Row]) -> None:
        self._left: dict[tuple[str | None, str | None], list[NamedCause]] = {}
        for row in rebalances:
            for named in row["triggers"]:
                cause = NamedCause(row["event_time"], *(named.get(name) for name in NamedCause._fields[1:]))
                self._left.setdefault((cause.member_id, cause.topic), []).append(cause)

    def take(
        self,
        kinds: Collection[str],
        since: int,
        until: int | None = None,
        *,
        member_id: str | None = None,
        topic: str | None = None,
        is_last: bool = False,
    ) -> NamedCause | None:
        """Return the first cause (or the last) of these kinds in since <= T < until, and remove it."""
        causes = self._left.get((member_id, topic), [])
        fitting = [
            cause
            for cause in causes
            if cause.kind in kinds and since <= cause.at and (until is None or cause.at < until)
        ]
        if not fitting:
            return None
        found = fitting[-1 if is_last else 0]
        causes.remove(found)
        return found

    def left(self, kinds: Collection[str]) -> list[NamedCause]:
        """Return the causes of these kinds that were not found, in the order of their times."""
        return sorted(
            (cause for causes in self._left.values() for cause in causes if cause.kind in kinds),
            key=lambda cause: (cause.at, cause.member_id or ""),
        )
