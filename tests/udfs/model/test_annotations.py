"""Annotations: who they are, and that they touch nothing but their own table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.core_config import core_config
from tests.udfs.event_lines import COMMON, NOW, VALID, line
from udfs.ingest.combiner import Combiner, RawRows
from udfs.ingest.parser import parse
from udfs.model.annotations import Annotation, annotation_change
from udfs.model.journal import AnnotationWritten, Change
from udfs.packets.packet import STATELESS, Packet, decode_packet, encode_packet
from udfs.stateful import shard_function

RULES = core_config(shards=3)
DEPLOY: dict[str, Any] = {"schema_version": 1, "type": "annotation", "event_time": NOW, "kind": "deploy", "text": "v2"}


def change_of(**fields: Any) -> Change:
    event = parse(line({**DEPLOY, **fields}), NOW, RULES)
    assert isinstance(event, Annotation), event
    return annotation_change(event)


def body_of(**fields: Any) -> AnnotationWritten:
    body = change_of(**fields).body
    assert isinstance(body, AnnotationWritten)
    return body


def packets_of(*raw: bytes) -> dict[tuple[str, int], Packet]:
    combiner = Combiner(NOW, RULES)
    combiner.read_lines(RawRows("events", pa.array(raw, pa.binary()), lambda index: f"a.json#{index}"))
    return {(cluster, shard): packet for cluster, shard, packet in combiner.packets()}


def test_equal_contents_are_one_annotation_whenever_and_however_they_are_written() -> None:
    written = change_of(**{"from": NOW - 5})
    assert change_of(**{"from": "2026-11-21T07:11:59.995Z"}) == written
    again = change_of(**{"from": NOW - 5, "event_time": NOW + 60_000, "event_id": "another", "unheard_of": 1})
    assert again.subject == written.subject
    for field, value in (("kind", "drain"), ("text", "v3"), ("to", NOW), ("groups", ["g"]), ("hosts", ["g"])):
        assert change_of(**{"from": NOW - 5, field: value}).subject != written.subject
    assert change_of(groups=["g"]).subject != change_of(hosts=["g"]).subject


def test_an_id_is_the_identity_and_without_from_the_beginning_is_open() -> None:
    body = body_of(id="r1", to=NOW + 5)
    assert (body.annotation_id, body.began_at, body.ended_at, body.written_at) == ("r1", None, NOW + 5, NOW)


@pytest.mark.parametrize("time", [NOW + 86_400_000 * 365, NOW - 86_400_000 * 365])
def test_an_annotation_is_taken_however_late_or_early_it_is(time: int) -> None:
    assert body_of(**{"event_time": time, "from": time, "to": time}).began_at == time


@pytest.mark.parametrize("cluster", [None, "c1", "new"])
def test_an_annotation_moves_no_clock_and_makes_no_cluster_known(cluster: str | None) -> None:
    annotation = line({**VALID["annotation"], "event_time": NOW + 10**9, **({"cluster": cluster} if cluster else {})})
    clock = line({**COMMON, "type": "clock"})
    alone, both = packets_of(clock), packets_of(clock, annotation, annotation)
    of_none = {key: packet for key, packet in both.items() if key[0] == STATELESS}
    assert {key: packet for key, packet in both.items() if key[0] != STATELESS} == alone
    [[first, second]] = [packet.annotations for packet in of_none.values()]
    assert first == second  # in one shard, for it is one annotation


def test_annotations_become_changes_of_no_cluster_without_a_state() -> None:
    states: list[bytes] = []

    class State:
        exists = False

        def update(self, new: tuple[bytes]) -> None:
            states.append(new[0])

    import pandas as pd

    [((_, shard), packet)] = packets_of(line(VALID["annotation"])).items()
    assert decode_packet(encode_packet(packet)) == packet
    frame = pd.DataFrame({"payload": [encode_packet(packet)]})
    [rows] = shard_function(RULES)((STATELESS, shard), [frame], State())  # type: ignore[arg-type]
    assert rows["kind"].tolist() == ["change"]
    assert rows["cluster"].tolist() == [""]
    assert '"annotation_id":"release-42"' in rows["body"][0]
    assert states == [b""]
