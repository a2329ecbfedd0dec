"""Shell: a piece of the journal, and which rows of a table it may touch. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import msgspec

from streaming.tables.schema import Row
from udfs.model import journal

Group: TypeAlias = tuple[str, str | None]


class Entry(NamedTuple):
    """One change, decoded; the body is None where the effect does not read it."""

    cluster: str
    group_id: str | None
    event_time: int
    body: journal.Body | None


class RowFilter(NamedTuple):
    """Limits of the current rows that a piece of the journal may touch; every test must hold.

    Attributes:
        among: Column -> the texts that it may have.
        between: Column of times -> the first and the last that it may have, in epoch milliseconds.
        ends: Column of times that must be null, or not before ``ended_since``.
        ended_since: In epoch milliseconds; None: the column must be null.
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
    """Return which clusters and groups the rows of these entries' groups have."""
    return {
        "cluster": sorted({entry.cluster for entry in entries}),
        "group_id": sorted({entry.group_id for entry in entries if entry.group_id is not None}),
    }
