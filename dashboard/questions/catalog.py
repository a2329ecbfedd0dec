"""Dashboard: the predefined questions, one SQL text each, for Spark, DuckDB and Trino, read from neighbouring files.

A file begins with its title, its explanation and the names of its parameters. Its text runs in all three systems; if
they differ, `NAME.spark.sql` or `NAME.trino.sql` has the text for one of them. A text that questions share, except for
one column and its value, is in `NAME.shared.sql`. The session's time zone is UTC.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, TypeAlias, get_args

from streaming.settings.suggestions import did_you_mean
from streaming.tables.columns import TRIGGERS
from streaming.tables.errors import NotFoundError
from streaming.tables.schema import TABLES
from streaming.terminal.format import time_text

Dialect: TypeAlias = Literal["duckdb", "spark", "trino"]
DIALECTS: Sequence[Dialect] = get_args(Dialect)
Value: TypeAlias = str | int

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)\b")
_SHARED = "shared: "
# How each system turns the lists in shared texts into rows.
_LISTS: Mapping[Dialect, Mapping[str, str]] = {
    "duckdb": {
        "cause": "cause",
        "causes": "CROSS JOIN UNNEST(triggers) AS causes (cause)",
        "hosts": "CROSS JOIN UNNEST(life.hosts) AS names (host)",
    },
    "spark": {
        "cause": "cause",
        "causes": "LATERAL VIEW EXPLODE(triggers) causes AS cause",
        "hosts": "LATERAL VIEW EXPLODE(life.hosts) names AS host",
    },
    "trino": {
        "cause": "causes",
        "causes": f"CROSS JOIN UNNEST(triggers) AS causes ({', '.join(part.name for part in TRIGGERS.value_type)})",
        "hosts": "CROSS JOIN UNNEST(life.hosts) AS names (host)",
    },
}
# The range of event times, so that without a span every row counts.
_UNLIMITED = 2**31
_FIRST_MS, _LAST_MS = 946_684_800_000, 4_102_444_800_000
# The default of each parameter; None if it is required. An empty text means any.
_DEFAULTS: Mapping[str, Value | None] = {
    "since": _FIRST_MS,
    "until": _LAST_MS,
    "at": _LAST_MS,
    "cluster": "",
    "group": "",
    "topic": None,
    "queue": None,
    "limit": 100,
}
PARAMETERS: Mapping[str, str] = {
    "since": "not before this time",
    "until": "before this time",
    "at": "at this time",
    "cluster": "only this cluster; empty = all",
    "group": "only this group; empty = all",
    "topic": "the topic",
    "queue": "number of the queue (partition)",
    "limit": "how many rows at most",
}
TIMES = frozenset({"since", "until", "at"})
# The ranges of numbers; queue -1 means shared by message.
NUMBERS = {"queue": (-1, 2**63 - 1), "limit": (1, 1_000_000)}


@dataclass(frozen=True)
class Question:
    """One predefined question.

    Attributes:
        parameters: Their names, in the order in which people give them.
        texts: The SQL for each system, with ``:name`` for each parameter.
    """

    name: str
    title: str
    explanation: str
    parameters: Sequence[str]
    texts: Mapping[Dialect, str]

    @property
    def tables(self) -> Mapping[str, list[str]]:
        """Return the tables that the question reads, each with the columns that its text may name."""
        identifiers = set(re.findall(r"\w+", self.texts["duckdb"]))
        read = re.findall(r"\b(?:FROM|JOIN)\s+(\w+)", self.texts["duckdb"])
        return {
            name: [column for column in TABLES[name].names if column in identifiers] for name in read if name in TABLES
        }

    @property
    def required(self) -> frozenset[str]:
        """Return the parameters that must be given."""
        return frozenset(name for name in self.parameters if _DEFAULTS[name] is None)

    def values(self, given: Mapping[str, object]) -> dict[str, Value]:
        """Return the value of every parameter, times as ``YYYY-MM-DD HH:MM:SS.mmm`` in UTC.

        Args:
            given: By name; times in epoch milliseconds; None if not given.

        Raises:
            ValueError: A parameter is unknown, missing, of the wrong type or out of range.
        """
        wanted = {name: value for name, value in given.items() if value is not None}
        unknown = sorted(wanted.keys() - set(self.parameters))
        if unknown:
            raise ValueError(f"{self.name} takes {', '.join(self.parameters)}, not {', '.join(unknown)}")
        found = {name: _value(name, wanted.get(name, _DEFAULTS[name])) for name in self.parameters}
        missing = [name for name, value in found.items() if value is None]
        if missing:
            raise ValueError(f"{self.name} needs {', '.join(missing)}")
        return {name: value for name, value in found.items() if value is not None}

    def bound(self, dialect: Dialect, given: Mapping[str, object]) -> str:
        """Return the text with the values in it as literals, to run elsewhere.

        Raises:
            ValueError: See ``values``.
        """
        values = self.values(given)
        return _PARAMETER.sub(lambda match: _literal(values[match[1]], dialect), self.texts[dialect])

    def positional(self, given: Mapping[str, object], *, is_limited: bool = True) -> tuple[str, list[Value]]:
        """Return the text for DuckDB with ``?`` for each parameter, and the values in that order.

        Args:
            is_limited: False for all rows, whatever the limit.

        Raises:
            ValueError: See ``values``.
        """
        values = self.values(given)
        if not is_limited:
            values["limit"] = _UNLIMITED
        text = self.texts["duckdb"]
        return _PARAMETER.sub("?", text), [values[match[1]] for match in _PARAMETER.finditer(text)]


@functools.cache
def questions() -> Mapping[str, Question]:
    """Return the predefined questions by name, in the order of their names."""
    found = {file.name: file.read_text(encoding="utf-8") for file in files(__package__).iterdir() if _is_sql(file.name)}
    names = sorted(name.removesuffix(".sql") for name in found if name.count(".") == 1)
    return {name: _question(name, found) for name in names}


def question(name: str) -> Question:
    """Return one question.

    Raises:
        NotFoundError: There is no question with this name.
    """
    if name not in questions():
        raise NotFoundError(
            f"there is no question {name[:50]!r}{did_you_mean(name, questions()) or '; `query` alone lists them'}"
        )
    return questions()[name]


def _is_sql(name: str) -> bool:
    return name.endswith(".sql")


def _question(name: str, found: Mapping[str, str]) -> Question:
    head, text = _split(found[f"{name}.sql"])
    texts: dict[Dialect, str] = {}
    if head[-1].startswith(_SHARED):
        shared, column, value = re.split(r", | = ", head.pop().removeprefix(_SHARED), maxsplit=2)
        text = found[f"{shared}.shared.sql"]
        texts = {of: text.format(column=column, value=value, **_LISTS[of]) for of in DIALECTS}
    title, *explanation, parameters = head
    for dialect in DIALECTS:
        other = found.get(f"{name}.{dialect}.sql")
        texts.setdefault(dialect, text if other is None else _split(other)[1])
    names = [parameter.strip() for parameter in parameters.removeprefix("parameters:").split(",")]
    return Question(name, title, " ".join(explanation), names, texts)


def _split(text: str) -> tuple[list[str], str]:
    lines = text.splitlines()
    head = [line for line in lines if line.startswith("-- ")]
    return [line.removeprefix("-- ") for line in head], "\n".join(lines[len(head) :]) + "\n"


def _value(name: str, value: object) -> Value | None:
    if value is None:
        return None
    if name in TIMES:
        if isinstance(value, bool) or not isinstance(value, int) or not _FIRST_MS <= value <= _LAST_MS:
            raise ValueError(f"{name}: {value!r} is not a time between 2000 and 2100")
        return time_text(value).replace("T", " ").removesuffix("Z")
    if name in NUMBERS:
        least, most = NUMBERS[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"{name}: {value!r} is not a number from {least} to {most}")
        return value
    if not isinstance(value, str):
        raise ValueError(f"{name}: {value!r} is not a text")
    return value


def _literal(value: Value, dialect: Dialect) -> str:
    if isinstance(value, int):
        return str(value)
    if dialect == "spark":
        # Spark reads backslashes in literals, and two quotes as the end of one literal and the beginning of another.
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "'" + value.replace("'", "''") + "'"
