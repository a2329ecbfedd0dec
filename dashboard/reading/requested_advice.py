"""Dashboard: advice to one group, decided again when somebody asks for it, within limits of time and size."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from dashboard.reading.dependencies import unnoted_reads
from dashboard.reading.listed_advice import newest_run_of
from dashboard.reading.queries import QueryTimeoutError
from dashboard.reading.questions import Reading
from dashboard.reading.window import HOUR_MS
from streaming.machine.clock import now_ms
from streaming.tables.schema import Row
from streaming.terminal.format import count
from streaming.views.name_checks import one_group

if TYPE_CHECKING:
    from streaming.history.advice import GroupAdvice
    from udfs.model.config import CoreConfig

DAYS: Final = 7
MOST_DAYS: Final = 366
# A policy is decided in some milliseconds for each rebalance, and in microseconds for each of its queues: with so many
# of them one takes some seconds. Time is looked at between two policies.
MOST_REBALANCES: Final = 400
MOST_QUEUES: Final = 200_000
# Those before the days are read, too, as the history of a group begins where it can.
MOST_READ: Final = 20_000
# It takes a whole core, so others wait.
_ONE_AT_A_TIME: Final = threading.Lock()


class RequestedAdvice(NamedTuple):
    """Advice to one group.

    Attributes:
        figures: Rows as those of ``replay_groups`` that it is judged by. refused: Why they are not computed; then they
            are those of ``run``, the newest row of ``replays`` that has the group, or there are none.
        computed_at: When they were computed; None if they are of a run.
    """

    cluster: str
    group_id: str
    days: int
    figures: list[Row]
    advice: GroupAdvice | None
    computed_at: int | None
    refused: str = ""
    run: Row | None = None

    @property
    def row(self) -> dict[str, Any]:
        """Return it for programs."""
        from streaming.history.advice_texts import advice_row

        found = {"cluster": self.cluster, "group_id": self.group_id} if self.advice is None else advice_row(self.advice)
        return found | {
            "days": self.days if self.run is None else None,
            "computed_at": self.computed_at,
            "replay_id": None if self.run is None else self.run["replay_id"],
            "refused": self.refused or None,
        }


def requested_advice(reading: Reading, core: CoreConfig, cluster: str | None, group: str, days: int) -> RequestedAdvice:
    """Return advice to a group as the command `advise` gives it; what asks does not follow the tables.

    It is computed again when the group has a newer rebalance, or an hour has passed.

    Args:
        cluster: None for the only one that has a group of this name. days: The last ones.

    Raises:
        NotFoundError, AmbiguousError: See ``one_group``.
    """
    from streaming.history.advice import group_advice
    from streaming.history.recent_figures import since_of

    with unnoted_reads():
        named = one_group(reading.tables, group, cluster) | {"group_id": group}
        since_ms = since_of(reading.tables, days, now_ms())
        key = ("advice of", named["cluster"], group, days, named.get("last_rebalance_at"), since_ms // HOUR_MS)
        figures: list[Row]
        computed_at, refused, run = None, "", None
        try:
            kept = reading.cache.get(key, (), lambda: _computed(reading, core, named, days, since_ms))
            figures, computed_at = msgspec.json.decode(kept)
        except _RefusedError as error:
            # It is not kept: the machine may have been busy.
            refused = str(error)
            run, figures = newest_run_of(reading, named["cluster"], group) or (None, [])
    return RequestedAdvice(
        cluster=named["cluster"],
        group_id=group,
        days=days,
        figures=figures,
        advice=group_advice(figures) if figures else None,
        computed_at=computed_at,
        refused=refused,
        run=run,
    )


class _RefusedError(Exception):
    """It is not computed here; the text says why."""


def _computed(reading: Reading, core: CoreConfig, group: Row, days: int, since_ms: int) -> bytes:
    from streaming.allocation.plugins import installed_user_strategies
    from streaming.history.recent_figures import group_size, recent_figures

    name, limit_s = group["group_id"], reading.queries.timeout_s
    instead = "`advise` of the command line has no such limit"
    size = group_size(reading.tables, group["cluster"], name, since_ms)
    span = f"in the last {count(days, 'day')}"
    if size.rebalances > MOST_REBALANCES or size.queues > MOST_QUEUES:
        many = f"{size.rebalances:,} rebalances with {size.queues:,} queues {span}"
        most = f"at most {MOST_REBALANCES:,} with {MOST_QUEUES:,} are decided again here"
        raise _RefusedError(f"{name} has {many}, and {most}; fewer days have fewer, and {instead}")
    if size.all_rebalances > MOST_READ:
        many = f"{name} has {size.all_rebalances:,} rebalances"
        raise _RefusedError(f"{many}, and at most {MOST_READ:,} are read; {instead}")
    end_s = time.monotonic() + limit_s

    def proceed() -> None:
        if time.monotonic() > end_s:
            long = f"to decide {count(size.rebalances, 'rebalance')} {span} again took longer than {limit_s:g} s"
            raise _RefusedError(f"{long}; fewer days take less, and {instead}")

    if not _ONE_AT_A_TIME.acquire(timeout=limit_s):
        raise QueryTimeoutError("advice to other groups is computed now; ask again")
    try:
        installed_user_strategies()
        figures = recent_figures(reading.tables, group, since_ms, core, proceed)
    finally:
        _ONE_AT_A_TIME.release()
    return msgspec.json.encode((figures, now_ms()))
