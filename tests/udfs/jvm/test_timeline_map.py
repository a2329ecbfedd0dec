"""The order of the maps in which Kafka's coordinator holds members, as real ones of 4.1 iterate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from udfs.jvm.timeline_map import timeline_map_order

_ORDERS = Path(__file__).resolve().parents[2] / "golden" / "java" / "timeline_map_orders.jsonl"


@pytest.mark.parametrize("line", _ORDERS.read_text().splitlines())
def test_maps_iterate_as_real_timeline_hash_maps_do(line: str) -> None:
    recorded = json.loads(line)
    keys: list[str] = []
    most = 0
    for change in recorded["changes"]:
        key = change[1:]
        if change[0] == "-":
            keys.remove(key)
        elif key not in keys:
            keys.append(key)
        most = max(most, len(keys))
    assert timeline_map_order(keys, most) == recorded["iterated"]


def test_the_recorded_maps_have_shrunk_and_grown() -> None:
    recorded = [json.loads(line) for line in _ORDERS.read_text().splitlines()]
    assert sum(any(change[0] == "-" for change in recording["changes"]) for recording in recorded) > 10
    assert max(len(recording["iterated"]) for recording in recorded) > 80
