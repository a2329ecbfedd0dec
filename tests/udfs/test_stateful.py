"""The stateful function, with Spark's own GroupState and without a JVM."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.state import GroupState
from pyspark.sql.types import BinaryType, StructField, StructType

from tests.core_config import core_config
from tests.udfs.shard.plain_group import PlainLogic
from tests.udfs.shard.shard_script import CLUSTER, FAR, T0, clock, count, join, packet_for
from udfs.model.errors import StateVersionError
from udfs.model.journal import Rejected
from udfs.packets.packet import Packet, encode_packet
from udfs.shard.state_format import STATE_VERSION
from udfs.stateful import shard_function

RULES = core_config(shards=1, allowed_lateness_ms=0)


def group_state(value: bytes | None, batch_ms: int = FAR) -> GroupState:
    return GroupState(
        optionalValue=Row(state=value),
        batchProcessingTimeMs=batch_ms,
        eventTimeWatermarkMs=-1,
        timeoutConf="NoTimeout",
        hasTimedOut=False,
        watermarkPresent=False,
        defined=value is not None,
        updated=False,
        removed=False,
        timeoutTimestamp=-1,
        keyAsUnsafe=b"",
        valueSchema=StructType([StructField("state", BinaryType())]),
    )


def frame(*packets: Packet) -> pd.DataFrame:
    return pd.DataFrame({"cluster": CLUSTER, "shard": 0, "payload": [encode_packet(packet) for packet in packets]})


def run(frames: list[pd.DataFrame], state: GroupState, key: tuple[Any, ...] = (CLUSTER, 0)) -> list[dict[str, Any]]:
    answers = list(shard_function(RULES, PlainLogic())(key, iter(frames), state))
    assert all(list(answer.columns) == ["kind", "cluster", "body"] for answer in answers)
    rows = [row for answer in answers for row in answer.to_dict("records")]
    return [row for row in rows if row["kind"] != "observed"]


def test_a_batch_in_several_frames_is_one_batch() -> None:
    state = group_state(None)
    rows = run(
        [frame(packet_for(0, [join("m", 0)], RULES)), frame(packet_for(0, [clock(1)], RULES))],
        state,
    )
    assert [(row["kind"], row["cluster"], json.loads(row["body"])["body"]["kind"]) for row in rows] == [
        ("change", CLUSTER, "member_opened"),
        ("change", CLUSTER, "group_changed"),
    ]
    assert state._updated


def test_the_state_is_carried_from_batch_to_batch() -> None:
    first = group_state(None)
    assert run([frame(packet_for(0, [join("m", 0)], RULES))], first) == []
    second = group_state(first.get[0])
    rows = run([frame(packet_for(0, [clock(1)], RULES))], second)
    assert [json.loads(row["body"])["event_time"] for row in rows] == [T0, T0]


def test_a_batch_without_rows_updates_the_state_all_the_same() -> None:
    state = group_state(None)
    assert run([pd.DataFrame({"cluster": [], "shard": [], "payload": []})], state) == []
    assert state._updated


def test_the_batchs_timestamp_is_the_only_clock() -> None:
    def bodies(batch_ms: int) -> list[dict[str, Any]]:
        first = group_state(None, batch_ms)
        rows = run([frame(packet_for(0, [join("m", 0), count("t", 3, 1), clock(5)], RULES))], first)
        second = group_state(first.get[0], batch_ms)
        rows += run([frame(packet_for(0, [count("t", 2, 0)], RULES))], second)  # too late
        return [json.loads(row["body"]) for row in rows]

    here, later = bodies(FAR), bodies(FAR + 60_000)
    assert [body.pop("seen_at") for body in here if "seen_at" in body] == [FAR]
    assert [body.pop("seen_at") for body in later if "seen_at" in body] == [FAR + 60_000]
    assert here == later


def test_inputs_without_a_cluster_are_passed_on() -> None:
    rejected = Rejected(
        source="s", position="1", raw="{", reason="bad", detail="", seen_at=1, raw_length=1, raw_sha256="00"
    )
    state = group_state(None)
    [row] = run([frame(Packet(rejected=[rejected]))], state, key=("", 0))
    assert (row["kind"], row["cluster"], json.loads(row["body"])["reason"]) == ("rejected", "", "bad")
    assert state._updated


def test_a_newer_encoding_is_refused_with_the_remedy() -> None:
    newer = bytes([STATE_VERSION + 1]) + bytes(20)
    with pytest.raises(StateVersionError, match="run the version that wrote it"):
        run([frame(packet_for(0, [clock(1)], RULES))], group_state(newer))


def test_the_function_can_be_sent_to_workers() -> None:
    from pyspark import cloudpickle

    function = cloudpickle.loads(cloudpickle.dumps(shard_function(RULES, PlainLogic())))
    (answer,) = function((CLUSTER, 0), [frame(packet_for(0, [clock(1)], RULES))], group_state(None))
    assert list(answer["kind"]) == ["observed"]


def test_each_batch_with_events_has_how_far_the_cluster_is_known() -> None:
    answers = shard_function(RULES, PlainLogic())(
        (CLUSTER, 0), iter([frame(packet_for(0, [clock(1)], RULES))]), group_state(None)
    )
    (row,) = [row for answer in answers for row in answer.to_dict("records") if row["kind"] == "observed"]
    assert json.loads(row["body"]) == {
        "cluster": CLUSTER,
        "system": "kafka",
        "latest_ms": T0 + 1,
        "newest_ms": T0 + 1,
        "clock_ms": T0 + 1,
    }
