"""Hashes that never change, texts without lists, events that survive the way."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given

from tests.core_config import core_config
from tests.udfs.event_lines import NOW, VALID, line
from udfs.ingest.parser import parse
from udfs.model.annotations import Annotation
from udfs.model.events import Progress, QueueOffset
from udfs.model.rejection import Rejection
from udfs.model.systems import System
from udfs.packets.packed_texts import PackedTexts
from udfs.packets.packet import (
    PackedHeartbeats,
    Packet,
    carry_event,
    cluster_key,
    content_id,
    decode_packet,
    encode_packet,
    group_key,
    group_keys,
    hash_column,
    hash_texts,
    member_key,
    mix,
    progress_queues,
    queue_key,
    read_event,
    topic_key,
)

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"])))


RECORDED_KEYS = [
    1515900870302646565,
    12337022893327276978,
    9089377945286251810,
    7513660723885795445,
    2680680849849350385,
]


def test_a_hash_is_the_same_in_every_process_and_version() -> None:
    # Checkpoints hold these keys: should one of them change, every checkpoint is void.
    recorded = [
        hash_texts(["orders"])[0],
        group_key("c1", "g1"),
        member_key("m1"),
        queue_key("orders", "b0", 3),
        cluster_key("c1"),
    ]
    assert [int(key) for key in recorded] == RECORDED_KEYS


def test_names_that_are_equal_only_when_joined_have_different_keys() -> None:
    assert group_key("ab", "c") != group_key("a", "bc")
    assert group_key("a", "b") != group_key("b", "a")
    assert queue_key("t", "b", 1) != queue_key("t", None, 1)
    assert len({queue_key("t", None, queue_id) for queue_id in range(1000)}) == 1000


@given(TEXTS)
def test_many_keys_are_the_keys_of_each(texts: list[str]) -> None:
    assert group_keys("c1", texts).tolist() == [group_key("c1", text) for text in texts]
    assert [topic_key("c1", text) for text in texts] == [group_key("c1", text) for text in texts]


@given(TEXTS)
def test_a_column_has_the_hashes_of_its_texts(texts: list[str]) -> None:
    column = pa.array(["before", *texts], pa.string())[1:]
    assert hash_column(column).tolist() == hash_texts(texts).tolist()


def test_keys_spread_evenly_over_shards() -> None:
    keys = group_keys("c1", [f"consumer-group-{number:06d}" for number in range(8000)])
    counts = np.bincount((keys % np.uint64(8)).astype(int), minlength=8)
    # 1000 expected, standard deviation 29.6: six of them.
    assert counts.min() > 822
    assert counts.max() < 1178


def test_the_order_of_a_mix_matters() -> None:
    first, second = hash_texts(["a", "b"])[:1], hash_texts(["a", "b"])[1:]
    assert mix(first, second) != mix(second, first)


@pytest.mark.parametrize("name", [name for name in VALID if name != "annotation"])  # which no shard gets
def test_an_event_is_the_same_after_its_way(name: str) -> None:
    event = parse(line(VALID[name]), NOW, core_config())
    assert not isinstance(event, Rejection | Annotation)
    carried = carry_event(event, "events", "a.json#1")
    (arrived,) = decode_packet(encode_packet(Packet(events=[carried]))).events
    assert read_event(arrived) == event
    assert (arrived.event_time, arrived.source, arrived.position) == (NOW, "events", "a.json#1")
    assert arrived.event_id == content_id(arrived.content)


def test_an_events_own_id_comes_before_that_of_its_content() -> None:
    event = parse(line({**VALID["member_left"], "event_id": "e7"}), NOW, core_config())
    assert not isinstance(event, Rejection)
    assert carry_event(event, "", "").event_id == "e7"


def test_an_empty_packet_carries_nothing() -> None:
    assert decode_packet(encode_packet(Packet())) == Packet()


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2**41) | st.integers(0, 3)),
        min_size=1,
        max_size=20,
        unique=True,
    ).map(sorted)
)
@example([(0, 0, 5), (0, 1, 2**32 + 4)])
@example([(0, 0, 5), (0, 1, 2**32 + 5)])
@example([(0, 0, 5), (0, 0, 6), (3, 1, 5)])
def test_packed_heartbeats_are_the_columns(beats: list[tuple[int, int, int]]) -> None:
    groups = sorted({group for group, _, _ in beats})
    members = sorted({(group, member) for group, member, _ in beats})
    member_groups = [groups.index(group) for group, _ in members]
    pair_members = [members.index((group, member)) for group, member, _ in beats]
    times = [time for _, _, time in beats]
    keys = [2**63 + group for group in groups], [2**62 + member for _, member in members]
    packed = PackedHeartbeats.pack(
        bytes(len(groups)),
        (np.array(keys[0], np.uint64), PackedTexts.pack(["g"] * len(groups))),
        (np.array(member_groups), np.array(keys[1], np.uint64), PackedTexts.pack(["m"] * len(members))),
        (np.array(pair_members), np.array(times)),
    )
    arrived = decode_packet(encode_packet(Packet(heartbeats=packed))).heartbeats
    assert arrived is not None
    assert [column.tolist() for column in arrived.columns()] == [keys[0], member_groups, keys[1], pair_members, times]


def test_a_partition_of_kafka_has_one_key_whichever_broker_leads_it() -> None:
    def progress(system: System) -> list[tuple[str, str | None, int]]:
        queues = (QueueOffset("t", 0, "b1", 7), QueueOffset("t", 0, "b2", 9))
        return progress_queues(
            Progress(schema_version=1, event_time=1, system=system, cluster="c", group="g", queues=queues)
        )

    assert progress("kafka") == [("t", None, 0), ("t", None, 0)]
    assert progress("rocketmq") == [("t", "b1", 0), ("t", "b2", 0)]
