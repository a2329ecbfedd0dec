"""The ready questions in Trino's own engine, over the demo's tables: the same rows as DuckDB gives."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dashboard.questions.catalog import Question, questions
from streaming.setup.java import find_java
from streaming.tables.schema import TABLES, Row
from streaming.views.reader import Reader
from tests.dashboard.demo_tables import write_demo
from tests.dashboard.questions.test_answer import Tables, columns_of, given, rows_of
from tests.kit.jars import class_path

_PATIENCE_S = 600
_TIME = "timestamp(3) with time zone"
_PLAIN = {pa.string(): "varchar", pa.int64(): "bigint", pa.int32(): "integer", pa.bool_(): "boolean"}


@pytest.mark.slow
def test_trino_gives_the_same_answers(tmp_path: Path) -> None:
    write_demo(tmp_path)
    tables = {name: Reader(tmp_path).rows(name) for name in TABLES}
    requested = {name: {"limit": 100_000, **given(name, tables)} for name in questions()}
    found = run(
        [over(question, question.bound("trino", requested[name]), tables) for name, question in questions().items()]
    )
    differing = {}
    for name, answered in zip(questions(), found, strict=True):
        rows = [tuple(row) for row in answered.get("rows", ())]
        worked_out = [tuple(map(near, row)) for row in rows_of(tmp_path, name, **requested[name])]
        if rows != worked_out or answered["columns"] != columns_of(tmp_path, name, requested[name]):
            first = next((pair for pair in zip_longest(rows, worked_out) if pair[0] != pair[1]), None)
            differing[name] = answered.get("error", first)
    assert not differing, differing


def near(value: Any) -> Any:
    return pytest.approx(value) if isinstance(value, float) else value


def run(queries: Sequence[str]) -> list[dict[str, Any]]:
    """Return what Trino answers to each query: columns and rows, or an error."""
    command = [str(find_java().java), "-Xmx1g", "-cp", class_path("trino-431", "TrinoQueries"), "TrinoQueries"]
    done = subprocess.run(
        command, input=json.dumps(queries).encode(), capture_output=True, timeout=_PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:].decode(errors="replace")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]


def over(question: Question, text: str, tables: Tables) -> str:
    """Return a query with the rows of its tables in front, as Trino's Delta connector types them."""
    parts = [f"{name} AS ({_rows(name, columns, tables[name])})" for name, columns in question.tables.items()]
    joined = ", ".join(parts)
    head, _, rest = text.lstrip().partition(" ")
    return f"WITH {joined}, {rest}" if head.upper() == "WITH" else f"WITH {joined} {text}"


def _rows(table: str, columns: Sequence[str], rows: Sequence[Row]) -> str:
    schema = TABLES[table].schema
    types = {name: schema.field(name).type for name in columns}
    fields = ", ".join(f"{name} {_type(kind)}" for name, kind in types.items())
    shown = ", ".join(_column(name, kind) for name, kind in types.items())
    literal = json.dumps([[row[name] for name in columns] for row in rows], ensure_ascii=False).replace("'", "''")
    names = ", ".join(columns)
    return f"SELECT {shown} FROM UNNEST(CAST(json_parse('{literal}') AS ARRAY(ROW({fields})))) AS given ({names})"


def _column(name: str, kind: pa.DataType) -> str:
    if not pa.types.is_timestamp(kind):
        return name
    return f"CAST(from_unixtime_nanos({name} * 1000000) AS {_TIME}) AS {name}"


def _type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"ARRAY({_type(kind.value_type)})"
    if pa.types.is_struct(kind):
        return f"ROW({', '.join(f'{field.name} {_type(field.type)}' for field in kind)})"
    # JSON has no times: they are numbers there.
    return _PLAIN.get(kind, "bigint")
