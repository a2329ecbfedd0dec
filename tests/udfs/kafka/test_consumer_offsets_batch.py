"""Many records at once give the same as each of them alone."""

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from tests.udfs.kafka.golden_records import AT, GOLDEN
from udfs.kafka.consumer_offsets import GroupPatterns, events_of
from udfs.kafka.consumer_offsets_batch import read_offsets
from udfs.model.events import Progress
from udfs.model.observations import UNKNOWN
from udfs.packets.packet import group_key, queue_key

Record = tuple[bytes | None, bytes | None, int]


TIMES = st.sampled_from([AT, AT + 1, AT + 60_001, -1, 0, 946_684_800_000])


KEYS = st.sampled_from([GOLDEN[name] for name in GOLDEN if name.startswith("key-")])


VALUES = st.sampled_from([GOLDEN[name] for name in GOLDEN if not name.startswith("key-")])


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes | None:
    data = draw(whole)
    match draw(st.sampled_from(["whole", "whole", "null", "cut", "changed", "longer", "random"])):
        case "null":
            return None
        case "cut":
            return data[: draw(st.integers(0, len(data)))]
        case "changed":
            place = draw(st.integers(0, len(data) - 1))
            return data[:place] + bytes([draw(st.integers(0, 255))]) + data[place + 1 :]
        case "longer":
            return data + draw(st.binary(max_size=20))
        case "random":
            return draw(st.binary(max_size=40))
    return data


def columns_of(records: list[Record]) -> tuple[pa.BinaryArray, pa.BinaryArray, np.ndarray]:
    keys, values, times = zip(*records, strict=True) if records else ((), (), ())
    return pa.array(keys, pa.binary()), pa.array(values, pa.binary()), np.array(times, np.int64)


@given(st.lists(st.tuples(damaged(KEYS), damaged(VALUES), TIMES), max_size=12))
@example([])
@example([(None, None, AT)])
@example([(GOLDEN["key-1"], GOLDEN["commit-4"], AT), (GOLDEN["key-1"], None, AT), (GOLDEN["key-0"], b"", AT)])
@example([(GOLDEN["key-1"], GOLDEN["commit-1"].replace("é".encode(), b"\0\xa9"), AT)])
@example([(GOLDEN["key-1"], GOLDEN["commit-1"].replace("\0\x07who: é".encode(), b"\xff\0"), AT)])
def test_columns_hold_the_same_as_records_one_by_one(records: list[Record]) -> None:
    commits, others = [], []
    names = {}
    for row, (key, value, timestamp_ms) in enumerate(records):
        for outcome in events_of(key, value, timestamp_ms, "c", latest_ms=AT + 60_000):
            if isinstance(outcome, Progress):
                (queue,) = outcome.queues
                hashes = (group_key("c", outcome.group), queue_key(queue.topic, None, queue.queue_id))
                commits.append((*hashes, outcome.event_time, UNKNOWN if queue.offset is None else queue.offset))
                names[hashes] = (outcome.group, (queue.topic, None, queue.queue_id))
            else:
                others.append((row, outcome))
    read = read_offsets(*columns_of(records), cluster="c", latest_ms=AT + 60_000)
    columns = (read.group_keys, read.queue_keys, read.times, read.offsets)
    assert sorted(zip(*(column.tolist() for column in columns), strict=True)) == sorted(commits)
    assert read.groups == {group: name for (group, _), (name, _) in names.items()}
    assert read.queues == {queue: name for (_, queue), (_, name) in names.items()}
    assert read.others == others


def test_columns_that_are_a_slice_of_longer_ones_are_read_as_such() -> None:
    records: list[Record] = [
        (GOLDEN["key-2"], None, AT),
        (GOLDEN["key-1"], GOLDEN["commit-3"], AT + 1),
        (GOLDEN["key-2"], None, AT),
    ]
    keys, values, times = columns_of(records)
    read = read_offsets(keys.slice(1, 1), values.slice(1, 1), times[1:2], cluster="c")
    assert (read.times.tolist(), read.others) == ([AT + 1], [])


def test_columns_leave_out_what_is_not_followed() -> None:
    keys, values, times = columns_of([(GOLDEN["key-1"], GOLDEN["commit-3"], AT)] * 3)
    read = read_offsets(keys, values, times, cluster="c", patterns=GroupPatterns(("other",)))
    assert (len(read.times), read.others) == (0, [])


def test_whole_commits_of_every_version_are_read_from_their_keys_and_lengths_alone(monkeypatch) -> None:
    values = [GOLDEN[name] for name in ("commit-0", "commit-1", "commit-2", "commit-3", "commit-4", "commit-4-bare")]
    keys, column, times = columns_of([(GOLDEN["key-1"], value, AT + row) for row, value in enumerate(values)])
    # None is decoded alone.
    monkeypatch.setattr("udfs.kafka.consumer_offsets_batch.events_of", None)
    read = read_offsets(keys, column, times, cluster="c")
    assert read.times.tolist() == [AT + row for row in range(len(values))]
    assert set(read.group_keys.tolist()) == {group_key("c", "g")}
    assert set(read.queue_keys.tolist()) == {queue_key("orders", None, 3)}
