"""Shell: a piece of the journal, and which rows of a table it may touch. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from streaming.tables.schema import TIME, Row
from udfs.model import journal

Group: TypeAlias = tuple[str, str | None]


class Entry(NamedTuple):
    """One change, decoded; the body is None where the effect does not read it."""

    cluster: str
    group_id: str | None
    event_time: int
    body: journal.Body | None


class RowFilter(NamedTuple):
    """Which current rows a piece of the journal may touch: a filter, and bounds that spare files.

    Attributes:
        some_null: A column that is null in each of these rows, so that files without nulls are spared.
    """

    wanted: pc.Expression
    bounds: Mapping[str, tuple[Any, Any]]
    some_null: str | None = None


Present: TypeAlias = Mapping[Group, Row]


def kinds_of(*bodies: type[msgspec.Struct]) -> frozenset[str]:
    """Return the kinds under which these bodies are written."""
    return frozenset(str(body.__struct_config__.tag) for body in bodies)


def range_of(values: Iterable[Any]) -> tuple[Any, Any]:
    """Return the least and the greatest value."""
    distinct = set(values)
    return min(distinct), max(distinct)


def is_in(column: str, values: Iterable[Any]) -> pc.Expression:
    """Return a test of whether a column holds one of these values."""
    return pc.field(column).isin(pa.array(sorted(set(values))))


def of_groups(entries: Sequence[Entry]) -> tuple[pc.Expression, dict[str, tuple[Any, Any]]]:
    """Return a test of whether a row is of one of the groups, and bounds."""
    names = [entry.group_id for entry in entries if entry.group_id is not None]
    clusters = [entry.cluster for entry in entries]
    wanted = is_in("cluster", clusters) & is_in("group_id", names)
    return wanted, {"cluster": range_of(clusters), "group_id": range_of(names)}


def time_of(epoch_ms: int) -> pa.Scalar:
    return pa.scalar(epoch_ms * 1_000, TIME)
