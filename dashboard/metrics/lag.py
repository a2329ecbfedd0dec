"""Dashboard: the lag of groups as metrics, over queues that moved within the last hour of the tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from math import inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dashboard.metrics.group_labels import GroupLabels
from dashboard.metrics.known_sources import known_rows
from streaming.tables.arrow_rows import from_arrow_columns, integers
from streaming.views.lag_ages import LogStarts, ages_of
from streaming.views.progress import is_left_over, recent_rows
from streaming.views.reader import Reader
from udfs.model.arrays import Int64
from udfs.model.observations import UNKNOWN

_GROUP = ["cluster", "group_id"]
_QUEUE = [*_GROUP, "topic", "broker", "queue_id"]
_WRITTEN = ["written_offset", "written_at"]
_OBSERVED = ["event_time", "committed_offset", "committed_at", "end_offset", "end_at", "lag", *_WRITTEN]
# Codes are kept below this: before they exceed it they are numbered anew.
_LARGEST_CODE = 2**62

_ByGroup: TypeAlias = dict[tuple[str, ...], float]


class Lags(NamedTuple):
    """The lag of each group, under its labels.

    Attributes:
        messages: The sum over queues. unknown_queues: How many queues are not in it.
        seconds: The age of the oldest unread message; none where only a lower bound of some queue's is known.
        least_seconds: Its lower bound.
        deleted_in_seconds: How long until retention deletes the first of the next unread messages, where that is known.
    """

    messages: _ByGroup
    unknown_queues: _ByGroup
    seconds: _ByGroup
    least_seconds: _ByGroup
    deleted_in_seconds: _ByGroup


def lag_by_group(reader: Reader, groups: GroupLabels, unknown: Collection[str] = ()) -> Lags:
    """Return the lag of groups by the newest rows of their queues.

    Commits of topics to which no member subscribes are left out.

    Args:
        unknown: Clusters that are left out.
    """
    lags = Lags(defaultdict(float), defaultdict(float), {}, {}, {})
    recent = recent_rows(reader)
    if recent is None:
        return lags
    rows = reader.read("queue_progress", columns=[*_QUEUE, *_OBSERVED, "start_offset"], where={"event_time": recent})
    # Arrow sums them, because there are far more queues than topics. A group without an observed lag has none.
    found = _newest(known_rows(rows, unknown)).group_by(["cluster", "group_id", "topic"])
    nulls = pc.CountOptions(mode="only_null")
    unsure = [("is_unsure", "any"), ("lag_ms", "max"), ("lag_min_ms", "max"), ("deleted_in_ms", "min")]
    topics = found.aggregate([("lag", "sum"), ("lag", "count", nulls), *unsure])
    wanted = _subscribed_topics(reader)
    columns = ["cluster", "group_id", "topic", "lag_sum", "lag_count", *("_".join(each) for each in unsure)]
    is_unsure: set[tuple[str, ...]] = set()
    for cluster, group, topic, lag, queues, is_bound, age, least, deleted_in in zip(
        *from_arrow_columns(topics, columns), strict=True
    ):
        if is_left_over(topic, wanted.get((cluster, group))):
            continue
        key = groups.of(cluster, group)
        lags.unknown_queues[key] += queues
        if lag is not None:
            lags.messages[key] += lag
        if is_bound:
            is_unsure.add(key)
        for ages, figure in ((lags.seconds, age), (lags.least_seconds, least)):
            if figure is not None:
                ages[key] = max(ages.get(key, 0.0), figure / 1_000)
        if deleted_in is not None:
            lags.deleted_in_seconds[key] = min(lags.deleted_in_seconds.get(key, inf), deleted_in / 1_000)
    return lags._replace(seconds={key: age for key, age in lags.seconds.items() if key not in is_unsure})


def _newest(rows: pa.Table) -> pa.Table:
    """Return the last row of each queue, with the age of its next unread message, and when retention deletes that.

    ``is_unsure``: Messages wait, and no upper bound of their age is known.
    """
    span, committed, committed_at, end, end_at, lag, *written = (integers(rows[name], UNKNOWN) for name in _OBSERVED)
    queues = _codes(rows, _QUEUE)
    order = np.lexsort((span, queues))
    is_last = np.append(np.diff(queues[order]) > 0, True)[: len(order)]
    lasts, place = order[is_last], np.cumsum(is_last) - is_last
    committed = committed[lasts]
    # Of each queue the last row with an end up to its commit, and the first with one beyond it.
    is_seen = (end[order] != UNKNOWN) & (end_at[order] != UNKNOWN)
    seen, of_queue = order[is_seen], place[is_seen]
    is_beyond = end[seen] > committed[of_queue]
    up_to, beyond = np.full(len(lasts), UNKNOWN), np.full(len(lasts), UNKNOWN)
    up_to[of_queue[~is_beyond]] = seen[~is_beyond]
    beyond[of_queue[is_beyond][::-1]] = seen[is_beyond][::-1]
    known_ms = _known_ms(_codes(rows, _GROUP)[lasts], np.maximum(committed_at, end_at)[lasts], span.max(initial=0))
    before = np.where(up_to == UNKNOWN, UNKNOWN, end_at[up_to])
    written = [column[lasts] for column in written]
    ages, _ = ages_of(committed, written, (before, end[up_to]), (end_at[beyond], end[beyond]), span[beyond], known_ms)
    is_bounded = (beyond != UNKNOWN) | (written[0] == committed)
    is_read, waits = lag[lasts] == 0, (lag[lasts] > 0) & is_bounded
    age, least = (np.where(is_read, 0, np.where(waits, figure, UNKNOWN)) for figure in ages[:2])
    found = rows.take(pa.array(lasts))
    start = integers(rows["start_offset"], UNKNOWN)
    begun = _starts(place, start[order], np.where(is_seen, end_at[order], UNKNOWN), start[lasts])
    deleted_in = np.full(len(lasts), UNKNOWN)
    for queue, log in begun.items():
        left_ms = log.reach_ms(int(committed[queue]), int(known_ms[queue])) if lag[lasts][queue] > 0 else None
        deleted_in[queue] = UNKNOWN if left_ms is None else left_ms
    for name, figure in (("lag_ms", age), ("lag_min_ms", least), ("deleted_in_ms", deleted_in)):
        found = found.append_column(name, pa.array(figure, mask=figure == UNKNOWN))
    return found.append_column("is_unsure", pa.array((lag[lasts] > 0) & (age == UNKNOWN)))


def _starts(queues: Int64, starts: Int64, times: Int64, current: Int64) -> dict[int, LogStarts]:
    """Return where the logs of queues began, of those whose start moved.

    Args:
        queues, starts, times: Observations by queue, then by time. current: The newest start of each queue.
    """
    is_known = (starts != UNKNOWN) & (times != UNKNOWN)
    queues, starts, times = queues[is_known], starts[is_known], times[is_known]
    is_new = np.append(True, (np.diff(queues) != 0) | (np.diff(starts) != 0))[: len(queues)]
    moved = np.bincount(queues[is_new], minlength=len(current)) > 1
    found: dict[int, LogStarts] = {}
    for at in np.flatnonzero(is_new & moved[queues]).tolist():
        queue = int(queues[at])
        found.setdefault(queue, LogStarts(int(current[queue]))).add(int(starts[at]), int(times[at]))
    return found


def _known_ms(groups: Int64, times: Int64, at_least: np.int64) -> Int64:
    """Return for each queue until when its group is known."""
    _, numbers = np.unique(groups, return_inverse=True)
    newest = np.full(numbers.max(initial=0) + 1, at_least)
    np.maximum.at(newest, numbers, times)
    return newest[numbers]


def _codes(rows: pa.Table, names: Sequence[str]) -> Int64:
    """Return a number for each row, the same for rows with the same values."""
    codes, most = np.zeros(rows.num_rows, np.int64), 1
    for name in names:
        indices = rows[name].combine_chunks().dictionary_encode("encode").indices.to_numpy().astype(np.int64)
        number = int(indices.max(initial=0)) + 1
        if most > _LARGEST_CODE // number:
            codes = np.unique(codes, return_inverse=True)[1]
            most = int(codes.max()) + 1
        codes, most = codes * number + indices, most * number
    return codes


def _subscribed_topics(reader: Reader) -> dict[tuple[str, str], frozenset[str] | None]:
    """Return the topics to which the present members of each group subscribe."""
    names = [*_GROUP, "subscriptions", "left_at"]
    present = reader.read("members", columns=names, keep=lambda found: found["left_at"].is_null())
    # Arrow unites the topics, because there are far more members than topics.
    of_members = present.select(_GROUP)
    subscriptions = present["subscriptions"].combine_chunks()
    of_topics = of_members.take(pc.list_parent_indices(subscriptions)).append_column(
        "topic", pc.list_flatten(subscriptions)
    )
    by_group: dict[tuple[str, str], set[str]] = defaultdict(set)
    for cluster, group, topic in _distinct(of_topics):
        by_group[cluster, group].add(topic)
    found: dict[tuple[str, str], frozenset[str] | None] = {name: frozenset(by_group[name]) for name in by_group}
    is_unknown = pc.fill_null(pc.equal(pc.list_value_length(subscriptions), 0), True)
    # Members of streams groups own tasks, which do not show what they read.
    streams = reader.read("groups", columns=_GROUP, where={"protocol": "streams"})
    unknown = [*_distinct(of_members.filter(is_unknown)), *_distinct(streams)]
    return found | dict.fromkeys(unknown)


def _distinct(rows: pa.Table) -> list[tuple[Any, ...]]:
    distinct = rows.group_by(rows.column_names).aggregate([])
    return list(zip(*(distinct[name].to_pylist() for name in rows.column_names), strict=True))
