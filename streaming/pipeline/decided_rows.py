"""Shell: shards' decisions as rows of the tables; in the driver, or in the Python workers that have the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from streaming.tables.arrow_rows import to_arrow
from streaming.tables.schema import CHANGES, QUEUE_PROGRESS, REBALANCES, REJECTED_EVENTS, Row, Table
from streaming.tables.spark_sql import sql_type
from udfs.model.journal import Rebalance, Rejected
from udfs.model.queue_progress import QueueProgress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# This many rows become Arrow columns at a time: a rejected input may be long, and one row holds up to 100 of progress.
_ROWS_AT_ONCE = 1_000


class _JournalRow(msgspec.Struct):
    """A change whose body stays text."""

    cluster: str
    group_id: str | None
    subject: str | None
    number: int
    event_time: int
    body: msgspec.Raw


class _Kind(msgspec.Struct):
    kind: str


_rebalance = msgspec.json.Decoder(Rebalance)
_rejected = msgspec.json.Decoder(Rejected)
_change = msgspec.json.Decoder(_JournalRow)
_progress = msgspec.json.Decoder(QueueProgress)
_kind = msgspec.json.Decoder(_Kind)


def rebalance_row(body: str) -> Row:
    """Parse a row of ``rebalances`` from JSON."""
    row = msgspec.structs.asdict(_rebalance.decode(body))
    for name in ("triggers", "outages"):
        row[name] = [msgspec.structs.asdict(item) for item in row[name]]
    return row


def change_row(body: str, batch_id: int) -> Row:
    """Parse a row of ``changes`` from JSON."""
    change = _change.decode(body)
    return {
        "cluster": change.cluster,
        "group_id": change.group_id,
        "subject": change.subject,
        "number": change.number,
        "kind": _kind.decode(change.body).kind,
        "event_time": change.event_time,
        "batch": batch_id,
        "body": bytes(change.body).decode(),
    }


def rejected_row(body: str) -> Row:
    """Parse a row of ``rejected_events`` from JSON."""
    return msgspec.structs.asdict(_rejected.decode(body))


def progress_rows(body: str) -> list[Row]:
    """Return the rows of ``queue_progress`` that one decided row holds."""
    progress = _progress.decode(body)
    return [
        {
            "cluster": progress.cluster,
            "group_id": progress.group_id,
            "topic": progress.topic,
            "broker": progress.broker,
            "event_time": progress.span_start,
            **queue._asdict(),
            # The end offset may have been observed before the commit.
            "lag": None if committed is None or end is None or end < committed else end - committed,
        }
        for queue in progress.queues
        for committed, end in [(queue.committed_offset, queue.end_offset)]
    ]


# The kind of a decided row gives its table.
TABLE_OF = {"rebalance": REBALANCES, "change": CHANGES, "rejected": REJECTED_EVENTS, "progress": QUEUE_PROGRESS}


def rows_frame(decided: DataFrame, kind: str, batch_id: int) -> DataFrame:
    """Return the decided rows of a kind as rows of its table, made on the executors."""
    columns = ", ".join(f"`{column.name}` {sql_type(column.type)}" for column in TABLE_OF[kind].columns)
    return decided.select("body").mapInArrow(partial(parse_batches, kind, batch_id), columns)


def parse_batches(kind: str, batch_id: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Parse bodies of one kind, batch by batch; runs in a Python worker."""
    parse: dict[str, Callable[[str], list[Row]]] = {
        "rebalance": lambda body: [rebalance_row(body)],
        "change": lambda body: [change_row(body, batch_id)],
        "rejected": lambda body: [rejected_row(body)],
        "progress": progress_rows,
    }
    table: Table = TABLE_OF[kind]
    for batch in batches:
        for begin in range(0, batch.num_rows, _ROWS_AT_ONCE):
            bodies = batch["body"].slice(begin, _ROWS_AT_ONCE).to_pylist()
            rows = [row for body in bodies for row in parse[kind](body)]
            yield from to_arrow(table, rows).combine_chunks().to_batches()
