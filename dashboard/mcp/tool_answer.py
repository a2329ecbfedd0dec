"""Dashboard: an answer for an agent: clean of control characters, and within a size. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import BaseModel

from streaming.tables.schema import Row
from streaming.terminal.escape import printable
from streaming.terminal.format import counted
from streaming.terminal.output import TIMES, with_times

# About 4,000 tokens; rows beyond it are left out, and the answer says how many, and how to narrow the question.
ANSWER_CHARACTERS = 16_000
# A longer text loses its middle: an id may have 10 kB, and a finding name many of them.
LONGEST_TEXT = 600
_END = 100
# Of a list inside of a row, such as the queues of a member.
MOST_VALUES = 50
# An address that would be longer is left out.
LONGEST_LINK = 600


class Document(BaseModel):
    """An answer as agents get it; every name in it is data.

    Attributes:
        warning: What is not known of the present, and why; empty if all of it is known. freshness: Until when each
            cluster is known. answer: Facts, and lists of rows; null is not known. not_known: What the answer lacks.
        evidence: Ids, times and addresses of pages. more: What was left out, and how to ask for it.
    """

    warning: str
    freshness: list[dict[str, Any]]
    answer: dict[str, Any]
    not_known: list[str]
    evidence: list[dict[str, Any]]
    more: list[str]


class Listed(NamedTuple):
    """Rows of an answer, the most important first.

    Attributes:
        total: How many there are, including those that were not read. narrow: How to get the others.
    """

    rows: Sequence[Any]
    total: int
    narrow: str = "narrow the question"


@dataclass
class ToolAnswer:
    """What a tool found.

    Attributes:
        clusters: Those that it is about; None for all. at_ms: The time that it is about; None for now.
        facts: Single values. lists: Rows, by the name of the list.
    """

    clusters: Sequence[str] | None
    facts: Row
    lists: dict[str, Listed] = field(default_factory=dict)
    at_ms: int | None = None
    not_known: list[str] = field(default_factory=list)
    evidence: list[Row] = field(default_factory=list)


def shown(text: str) -> str:
    r"""Return an untrusted text as answers have it: escaped as on pages, and without its middle if it is long.

    Example:
        >>> shown("a\u202eb"), len(shown("x" * 10_000))
        ('a\\u202eb', 600)
    """
    text = printable(text)
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[: LONGEST_TEXT - _END - 1]}…{text[-_END:]}"


def cleaned(value: Any, times: frozenset[str] = TIMES) -> Any:
    """Return a value for JSON: texts as ``shown``, times in RFC 3339, long lists cut.

    Args:
        times: Names of fields that are times in epoch ms.
    """
    return _cleaned(with_times(value, times))


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, Mapping):
        return {shown(name): _cleaned(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        left = len(value) - MOST_VALUES
        return [*map(_cleaned, value[:MOST_VALUES]), *([f"{left:,} more"] if left > 0 else [])]
    return value


def picked(rows: Iterable[Row], names: Sequence[str]) -> list[Row]:
    """Return some columns of rows."""
    return [{name: row.get(name) for name in names} for row in rows]


def document(
    found: ToolAnswer,
    warning: str,
    freshness: Sequence[Row],
    times: frozenset[str] = TIMES,
    most: int = ANSWER_CHARACTERS,
) -> Document:
    """Return an answer within a size: rows are left out from the end of the largest list, evidence at last."""
    lists: dict[str, list[Any]] = {
        name: [cleaned(row, times) for row in listed.rows] for name, listed in found.lists.items()
    }
    rest = {"not_known": cleaned(found.not_known), "evidence": [cleaned(row) for row in found.evidence]}
    facts = cleaned(found.facts, times)

    def made() -> Document:
        left = {name: listed.total - len(lists[name]) for name, listed in found.lists.items()}
        more = [
            f"{counted(number, 'more row')} of {name}: {found.lists[name].narrow}"
            for name, number in left.items()
            if number > 0
        ]
        return Document(
            warning=shown(warning), freshness=cleaned(freshness), answer={**facts, **lists}, more=more, **rest
        )

    while True:
        result = made()
        excess = len(written(result)) - most
        droppable = [rows for rows in lists.values() if rows] or [rows for rows in rest.values() if rows]
        if excess <= 0 or not droppable:
            return result
        _shorten(max(droppable, key=lambda rows: len(_dumped(rows))), excess)


def _shorten(rows: list[Any], excess: int) -> None:
    while rows and excess > 0:
        excess -= len(_dumped(rows.pop()))


def written(found: Document) -> str:
    """Return an answer as JSON in one line."""
    return _dumped(found.model_dump())


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
