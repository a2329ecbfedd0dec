"""Shell: entries of a piece of the journal, and the rows of a table that it may touch. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import msgspec

from streaming.tables.schema import Row
from udfs.model import journal

Group: TypeAlias = tuple[str, str | None]


class Entry(NamedTuple):
    """One change, decoded; the body is None if the effect does not read it."""

    cluster: str
    group_id: str | None
    event_time: int
    body: journal.Body | None


class RowFilter(NamedTuple):
    """Limits of the current rows that a piece of the journal may touch; every test must hold.

    Attributes:
        among: Column -> its allowed texts.
        between: Column of times -> its first and last allowed time, in epoch milliseconds.
        ends: Column of times that must be null, or not before ``ended_since``.
        ended_since: In epoch milliseconds; None if the column must be null.
    """

    among: Mapping[str, Sequence[str]]
    between: Mapping[str, tuple[int, int]] = MappingProxyType({})
    ends: str | None = None
    ended_since: int | None = None


Present: TypeAlias = Mapping[Group, Row]


def kinds_of(*bodies: type[msgspec.Struct]) -> frozenset[str]:
    """Return the kinds under which these bodies are written."""
    return frozenset(str(body.__struct_config__.tag) for body in bodies)


def of_groups(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """Return the clusters and groups of these entries' rows."""
    return {
        "cluster": sorted({entry.cluster for entry in entries}),
        "group_id": sorted({entry.group_id for entry in entries if entry.group_id is not None}),
    }
