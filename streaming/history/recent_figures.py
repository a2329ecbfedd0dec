"""Shell: the last days of one group, decided again under the policies of advice. No Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from streaming.history.advice import asked_of
from streaming.history.replay_figures import replay_figures
from streaming.tables.schema import Row
from streaming.views.reader import Reader, Within
from udfs.model.config import CoreConfig

DAY_MS: Final = 86_400_000


class GroupSize(NamedTuple):
    """How much there is to decide again.

    Attributes:
        queues: Summed over the rebalances. all_rebalances: Also those before the span, which are read.
    """

    rebalances: int
    queues: int
    all_rebalances: int


def since_of(reader: Reader, days: int, now_ms: int) -> int:
    """Return the beginning of the last days: of a recording those before its newest rebalance, whatever the clock."""
    newest = reader.newest_ms("rebalances", "event_time")
    return (now_ms if newest is None else min(newest, now_ms)) - days * DAY_MS


def group_size(reader: Reader, cluster: str, group_id: str, since_ms: int) -> GroupSize:
    """Return how much of a group would be decided again, without deciding any of it."""
    where = {"cluster": cluster, "group_id": group_id}
    queues = reader.read("rebalances", columns=["queues_after"], where=where | {"event_time": Within(since_ms)})
    every = reader.read("rebalances", columns=["event_time"], where=where).num_rows
    return GroupSize(queues.num_rows, sum(number or 0 for number in queues["queues_after"].to_pylist()), every)


def recent_figures(
    reader: Reader,
    group: Row,
    since_ms: int,
    config: CoreConfig,
    proceed: Callable[[], object] = lambda: None,
) -> list[Row]:
    """Return rows as those of ``replay_groups`` of one group, since a time.

    Args:
        group: Has cluster, group_id and system. proceed: Called before each policy; what it raises ends this.
    """
    asked = asked_of(since_ms)
    return replay_figures(reader, group["cluster"], group["group_id"], asked, config, group["system"], proceed)
