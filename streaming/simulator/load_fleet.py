"""Shell: the events of a huge, steady fleet: joins, then rounds of heartbeats, written column by column."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from streaming.machine.atomic_file import write_atomically
from streaming.simulator.fleet import RECORDINGS_START_MS

CLUSTER = "kafka-load"
TOPICS = 1_000
# Each member seems to send a heartbeat every three seconds.
ROUND_MS = 3_000
SESSION_TIMEOUT_MS = 45_000
LINES_PER_FILE = 50_000


class LoadFleet:
    """Members in groups, each named by its number; all as Arrow columns.

    Args:
        groups, members: Members are distributed evenly; the first groups have one more.
    """

    def __init__(self, groups: int, members: int) -> None:
        if not 0 < groups <= members:
            raise ValueError(f"{members} members cannot fill {groups} groups")
        self.groups, self.members = groups, members
        number = pa.array(range(members), pa.int64())
        self._group_number = [member % groups for member in range(members)]
        group = _padded(pa.array(self._group_number, pa.int64()), 6)
        ordinal = pc.cast(pc.divide(number, groups), pa.string())
        self._group_id = _joined("consumer-group-", group)
        self._member_id = _joined("consumer-group-", group, "-", ordinal)

    def topics(self, time_ms: int) -> bytes:
        """Return the queues of all topics, ten to twenty each."""
        rows = (
            f'{{"schema_version":1,"event_time":{time_ms},"system":"kafka","cluster":"{CLUSTER}",'
            f'"type":"topic_queues","topic":"{_topic(number)}","queue_count":{10 + number % 11}}}\n'
            for number in range(TOPICS)
        )
        return "".join(rows).encode()

    def joins(self, time_ms: int, first: int = 0, count: int | None = None) -> bytes:
        """Return a join of each member from the ``first`` on, with its description."""
        topic = pa.array([_topic(number % TOPICS) for number in self._slice_of(self._group_number, first, count)])
        return self._lines(
            "member_joined",
            time_ms,
            first,
            count,
            ',"client_id":"',
            self._cut(self._member_id, first, count),
            '","host":"10.0.0.1","subscriptions":["',
            topic,
            f'"],"strategies":["range"],"session_timeout_ms":{SESSION_TIMEOUT_MS}',
        )

    def heartbeats(self, time_ms: int, first: int = 0, count: int | None = None) -> bytes:
        """Return a heartbeat of each member from the ``first`` on."""
        return self._lines("heartbeat", time_ms, first, count)

    def heartbeat_files(self, time_ms: int, first: int, count: int, files: int) -> Iterator[bytes]:
        """Return heartbeats of ``count`` members, in pieces of nearly the same size."""
        ends = [first + count * piece // files for piece in range(files + 1)]
        for start, end in pairwise(ends):
            yield self.heartbeats(time_ms, start, end - start)

    def _lines(self, kind: str, time_ms: int, first: int, count: int | None, *more: str | pa.Array) -> bytes:
        head = f'{{"schema_version":1,"event_time":{time_ms},"system":"kafka","cluster":"{CLUSTER}","type":"{kind}",'
        group = self._cut(self._group_id, first, count)
        member = self._cut(self._member_id, first, count)
        ends = ('"', *more, "}\n") if more else ('"}\n',)
        column = _joined(head, '"group":"', group, '","member_id":"', member, *ends)
        # The concatenated texts of an Arrow column are the file.
        _, ends, texts = column.buffers()
        size = pa.Array.from_buffers(pa.int64(), len(column) + 1, [None, ends])[-1].as_py()
        lines: bytes = texts.slice(0, size).to_pybytes()
        return lines

    @staticmethod
    def _cut(column: pa.Array, first: int, count: int | None) -> pa.Array:
        return column.slice(first, count)

    @staticmethod
    def _slice_of(values: list[int], first: int, count: int | None) -> list[int]:
        return values[first:] if count is None else values[first : first + count]


def write_load(folder: Path, *, groups: int, members: int, rounds: int) -> dict[str, object]:
    """Write the topics, a join of each member, and rounds of heartbeats.

    Returns: The written counts, by name.
    """
    fleet = LoadFleet(groups, members)
    folder.mkdir(parents=True, exist_ok=True)
    written = 0

    def write(name: str, text: bytes) -> None:
        nonlocal written
        written += len(text)
        write_atomically(folder / f"{name}.jsonl", text)

    write("00000-topics", fleet.topics(RECORDINGS_START_MS))
    for number in range(rounds + 1):
        time_ms = RECORDINGS_START_MS + number * ROUND_MS
        lines = fleet.heartbeats if number else fleet.joins
        for piece, first in enumerate(range(0, members, LINES_PER_FILE)):
            write(f"{number + 1:05d}-{piece:05d}", lines(time_ms, first, min(LINES_PER_FILE, members - first)))
    return {"events_folder": str(folder), "events": TOPICS + members * (rounds + 1), "bytes": written}


def _topic(number: int) -> str:
    return f"topic-{number:04d}"


def _padded(numbers: pa.Array, digits: int) -> pa.Array:
    return pc.utf8_lpad(pc.cast(numbers, pa.string()), digits, "0")


def _joined(*parts: str | pa.Array) -> pa.Array:
    wide = pa.large_string()
    columns = [pa.scalar(part, wide) if isinstance(part, str) else pc.cast(part, wide) for part in parts]
    return pc.binary_join_element_wise(*columns, pa.scalar("", wide))
