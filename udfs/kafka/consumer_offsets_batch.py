"""Core: many records of ``__consumer_offsets`` at once: the commits as columns, the rest one by one. No I/O.

Nearly all records are offset commits, and only the key, time and offset of a commit are used. So each distinct key is
decoded once, the offsets are cut out as one array, and of the rest of the values only the length is checked: a value
whose length differs from the one required by its version and the length of its text is decoded in full, and validated.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from udfs.kafka.consumer_offsets import (
    CLASSIC_GROUP_TYPE,
    COMMIT_TYPES,
    EVERY_GROUP,
    FIRST_FLEXIBLE_VERSION,
    GroupPatterns,
    Outcome,
    events_of,
    read_commit_key,
)
from udfs.kafka.group_records import RECORD_TYPES
from udfs.kafka.wire_reader import WireError
from udfs.model.arrays import Int64, UInt64
from udfs.model.events import Progress
from udfs.model.observations import UNKNOWN
from udfs.model.timestamps import EARLIEST_MS, LATEST_MS
from udfs.packets.packet import group_keys, queue_keys
from udfs.packets.progress_columns import NamedQueue

Booleans = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

_HANDLED_TYPES = (*COMMIT_TYPES, CLASSIC_GROUP_TYPE, *RECORD_TYPES)
_TYPE_BYTES = 2
# In versions 0 to 3 of a commit's value: the position of its text's int16 length, and the number of bytes of the rest.
_TEXT_AT = np.array([10, 10, 10, 14], np.int64)
_BYTES_BESIDE_TEXT = np.array([20, 28, 20, 24], np.int64)
_SHORTEST_COMMIT = 20
_OFFSET_AT = 2  # an int64, in all versions
_OFFSET_BYTES = 8
# Version 4 has a varint, the number of the text's bytes plus one; at the end comes the number of tagged fields: none,
# or one, which is the topic's id (tag 0, 16 bytes).
_FLEXIBLE_TEXT_AT = 14
_FLEXIBLE_BYTES_BESIDE_TEXT = 24
_TAGGED_TOPIC_ID = (1, 0, 16)
_TAGGED_TOPIC_ID_BYTES = 18  # in addition to the number of tagged fields


class OffsetColumns(msgspec.Struct):
    """The content of many records.

    Attributes:
        group_keys, queue_keys, times, offsets: For each commit of a followed group, in the order read; keys are the
            results of ``packet.group_keys`` and ``packet.queue_keys``; a negative offset is ``UNKNOWN``.
        groups, queues: The names of all groups and queues in them, by key.
        others: The content of every other record, with the number of its row.
    """

    group_keys: UInt64
    queue_keys: UInt64
    times: Int64
    offsets: Int64
    groups: dict[int, str]
    queues: dict[int, NamedQueue]
    others: list[tuple[int, Outcome]]


def read_offsets(
    keys: pa.BinaryArray,
    values: pa.BinaryArray,
    timestamps: Int64,
    *,
    cluster: str,
    patterns: GroupPatterns = EVERY_GROUP,
    latest_ms: int = LATEST_MS,
    numbers: pa.Int64Array | None = None,
) -> OffsetColumns:
    """Decode many records of one cluster, with the same result as ``events_of`` for each.

    Args:
        timestamps: The records' timestamps; -1 if missing. numbers: Their offsets; None if unknown.
    """
    types = _key_types(keys)
    commits = np.isin(types, COMMIT_TYPES) & (timestamps >= EARLIEST_MS) & (timestamps <= latest_ms)
    with_value = commits & np.asarray(values.is_valid())
    rows = np.flatnonzero(with_value)
    rows = rows[_have_valid_lengths(values, rows)]
    encoded = keys.take(pa.array(rows)).dictionary_encode()
    distinct = _decode_keys(encoded.dictionary.to_pylist(), cluster, patterns)
    codes = np.asarray(encoded.indices, np.int64)
    rows, codes = rows[distinct.valid[codes]], codes[distinct.valid[codes]]
    followed = distinct.followed[codes]

    alone = np.isin(types, _HANDLED_TYPES)
    alone[rows] = False
    commits_alone: list[Progress] = []
    others: list[tuple[int, Outcome]] = []
    for row in np.flatnonzero(alone).tolist():
        key, value = keys[row].as_py(), values[row].as_py()
        number = None if numbers is None else numbers[row].as_py()
        for outcome in events_of(key, value, int(timestamps[row]), cluster, patterns, latest_ms, number):
            if isinstance(outcome, Progress):
                commits_alone.append(outcome)
            else:
                others.append((row, outcome))
    rows, codes = rows[followed], codes[followed]
    single = _read_alone(commits_alone, cluster)
    return OffsetColumns(
        np.concatenate([distinct.groups[codes], single.group_keys]),
        np.concatenate([distinct.queues[codes], single.queue_keys]),
        np.concatenate([timestamps[rows], single.times]),
        np.concatenate([_offsets(values, rows), single.offsets]),
        distinct.group_names | single.groups,
        distinct.queue_names | single.queues,
        others,
    )


def _read_alone(commits: list[Progress], cluster: str) -> OffsetColumns:
    """Return the columns of commits that were decoded one by one; each has one queue."""
    groups = group_keys(cluster, [commit.group for commit in commits])
    named: list[NamedQueue] = [(commit.queues[0].topic, None, commit.queues[0].queue_id) for commit in commits]
    queues = queue_keys(named)
    offsets = [commit.queues[0].offset for commit in commits]
    return OffsetColumns(
        groups,
        queues,
        np.array([commit.event_time for commit in commits], np.int64),
        np.array([UNKNOWN if offset is None else offset for offset in offsets], np.int64),
        dict(zip(groups.tolist(), (commit.group for commit in commits), strict=True)),
        dict(zip(queues.tolist(), named, strict=True)),
        [],
    )


def _offsets(values: pa.BinaryArray, rows: Int64) -> Int64:
    """Return the committed offsets of rows whose values are known to be long enough."""
    starts, _, content = _layout(values)
    if not len(rows):
        return np.zeros(0, np.int64)
    # A number begins at each byte; only a few of them are read.
    numbers: Int64 = np.ndarray((len(content) - _OFFSET_BYTES + 1,), ">i8", content, strides=(1,))
    return np.maximum(numbers[starts[rows] + _OFFSET_AT].astype(np.int64), UNKNOWN)


class _CommitKeys(msgspec.Struct):
    """Distinct keys of commits: whether they can be read, whether their groups are followed, their hashes and names."""

    valid: Booleans
    followed: Booleans
    groups: UInt64
    queues: UInt64
    group_names: dict[int, str]
    queue_names: dict[int, NamedQueue]


def _decode_keys(keys: list[bytes], cluster: str, patterns: GroupPatterns) -> _CommitKeys:
    groups: list[str] = []
    queues: list[NamedQueue] = []
    valid = np.ones(len(keys), np.bool_)
    for number, key in enumerate(keys):
        try:
            group, topic, partition = read_commit_key(key)
        except WireError:
            valid[number] = False
            group, topic, partition = "", "", 0
        groups.append(group)
        queues.append((topic, None, partition))
    follow = {group: bool(group) and patterns.follow(group) for group in set(groups)}
    followed = np.array([follow[group] for group in groups], np.bool_)
    of_groups, of_queues = group_keys(cluster, groups), queue_keys(queues)
    kept = np.flatnonzero(valid & followed).tolist()
    return _CommitKeys(
        valid,
        followed,
        of_groups,
        of_queues,
        {int(of_groups[number]): groups[number] for number in kept},
        {int(of_queues[number]): queues[number] for number in kept},
    )


def _key_types(keys: pa.BinaryArray) -> Int64:
    """Return the type of each key; a key without a type is handled like a group's, which reports the reason."""
    starts, lengths, content = _layout(keys)
    types = np.full(len(keys), CLASSIC_GROUP_TYPE, np.int64)
    typed = (lengths >= _TYPE_BYTES) & np.asarray(keys.is_valid())
    at = starts[typed]
    types[typed] = _int16(content, at)
    return types


def _have_valid_lengths(values: pa.BinaryArray, rows: Int64) -> Booleans:
    """Return whether each commit's value has exactly the length that its version and its text require."""
    starts, lengths, content = _layout(values)
    starts, lengths = starts[rows], lengths[rows]
    valid = np.zeros(len(rows), np.bool_)
    measured = np.flatnonzero(lengths >= _SHORTEST_COMMIT)
    starts, lengths = starts[measured], lengths[measured]
    versions = _int16(content, starts)
    plain = (versions >= 0) & (versions < FIRST_FLEXIBLE_VERSION)
    version = versions[plain]
    text = _int16(content, starts[plain] + _TEXT_AT[version])
    # Null (-1) has no bytes either.
    valid[measured[plain]] = (text >= -1) & (lengths[plain] == _BYTES_BESIDE_TEXT[version] + np.maximum(text, 0))
    flexible = versions == FIRST_FLEXIBLE_VERSION
    valid[measured[flexible]] = _are_valid_flexible(content, starts[flexible], lengths[flexible])
    return valid


def _are_valid_flexible(content: Bytes, starts: Int64, lengths: Int64) -> Booleans:
    lengths = lengths - _FLEXIBLE_BYTES_BESIDE_TEXT
    valid = lengths >= 0
    varint = np.where(valid, content[np.where(valid, starts + _FLEXIBLE_TEXT_AT, 0)], 0x80).astype(np.int64)
    text = np.maximum(varint - 1, 0)
    valid &= varint < 0x80
    bare = valid & (lengths == text)
    with_id = valid & (lengths == text + _TAGGED_TOPIC_ID_BYTES)
    tags = starts + text + _FLEXIBLE_BYTES_BESIDE_TEXT - 1
    bare[bare] = content[tags[bare]] == 0
    for offset, expected in enumerate(_TAGGED_TOPIC_ID):
        with_id[with_id] = content[tags[with_id] + offset] == expected
    return np.asarray(bare | with_id)


def _layout(column: pa.BinaryArray) -> tuple[Int64, Int64, Bytes]:
    """Return where each element starts, its length, and all bytes."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return ends[:-1], np.diff(ends), content


def _int16(content: Bytes, at: Int64) -> Int64:
    return ((content[at].astype(np.uint16) << 8) | content[at + 1]).astype(np.int16).astype(np.int64)
