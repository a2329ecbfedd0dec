"""Core: histories of a group's queues, read from a shard's columns when they are needed. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from udfs.model.arrays import Int64
from udfs.model.observations import NOT_NAMED, SECOND_MS, UNKNOWN, Newest, Observation, Offsets, undated
from udfs.shard.log_starts import observations_of_starts
from udfs.shard.queue_table import QueueTable

_One = TypeVar("_One")


class QueueHistories(Mapping[int, list[_One]]):
    """The observations of a group's queues, by key.

    A queue's history is read only when needed: of thousands of commits, a rebalance needs those of a few queues.

    Args:
        rows: The group's rows in the table. has_history: Which of them have one. read: Returns the history of a row.
    """

    def __init__(
        self, table: QueueTable, rows: slice, has_history: npt.NDArray[np.bool_], read: Callable[[int], list[_One]]
    ) -> None:
        numbers = np.flatnonzero(has_history) + rows.start
        self._rows = dict(zip(table.keys[numbers].tolist(), numbers.tolist(), strict=True))
        self._read = read
        self._found: dict[int, list[_One]] = {}

    def __getitem__(self, queue: int) -> list[_One]:
        if queue not in self._found:
            self._found[queue] = self._read(self._rows[queue])
        return self._found[queue]

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class OffsetHistories(QueueHistories[Observation], Offsets):
    """The same for offsets, with the newest observations at a given time read separately.

    Args:
        newest: Returns the newest observations of a row up to a time. deletions: When commits of rows were deleted.
    """

    def __init__(
        self,
        table: QueueTable,
        rows: slice,
        has_history: npt.NDArray[np.bool_],
        read: Callable[[int], list[Observation]],
        newest: Callable[[int, int], Newest],
        deletions: Mapping[int, Sequence[int]],
    ) -> None:
        super().__init__(table, rows, has_history, read)
        self._newest, self._deletions = newest, deletions

    def newest(self, queue: int, until: int) -> Newest:
        """Return the newest observations of a queue up to a given time; nothing for an unknown queue."""
        row = self._rows.get(queue)
        return Newest() if row is None else self._newest(row, until)

    def deletions(self, queue: int) -> Sequence[int]:
        """Return when the commit of a queue was deleted, as far as older commits are still among its observations."""
        row = self._rows.get(queue)
        return () if row is None else self._deletions.get(row, ())


def place_of_earlier(times: Int64) -> int:
    """Return the index from which ascending commits include the last ones of the two seconds before the newest."""
    place = len(times) - 1
    for _ in range(2):
        if place >= 0:
            place = int(times.searchsorted(int(times[place]) // SECOND_MS * SECOND_MS)) - 1
    return max(place, 0)


def observations_of(table: QueueTable, number: int) -> list[Observation]:
    """Return a row of the table as the observations that it was made of."""
    row = {name: int(column[number]) for name, column in table.columns.items()}
    found: list[Observation] = [
        (row[name], NOT_NAMED, UNKNOWN, UNKNOWN)
        for name in ("earliest_times", "earlier_times")
        if row[name] not in (UNKNOWN, row["former_times"])
    ]
    if row["former_times"] != UNKNOWN:
        found.append((row["former_times"], row["former_offsets"], UNKNOWN, UNKNOWN))
    if row["times"] != UNKNOWN:
        found.append((row["times"], committed_or_unnamed(row["offsets"]), UNKNOWN, UNKNOWN))
    elif row["offsets"] != UNKNOWN:
        found.append((0, undated_or_unknown(row["offsets"]), UNKNOWN, UNKNOWN))
    if row["end_times"] != UNKNOWN:
        found.append((row["end_times"], UNKNOWN, row["ends"], UNKNOWN))
    if row["position_times"] != UNKNOWN:
        found.append((row["position_times"], UNKNOWN, UNKNOWN, row["positions"]))
    return [*found, *observations_of_starts(row)]


def committed_or_unnamed(offset: int) -> int:
    """Return the offset of a commit as an observation has it."""
    return NOT_NAMED if offset == UNKNOWN else offset


def undated_or_unknown(offset: int) -> int:
    """Return an offset that was committed at an unknown time as an observation has it."""
    return UNKNOWN if offset == UNKNOWN else undated(offset)
