"""The outage of one queue, as bytes."""

from __future__ import annotations

import msgspec

from udfs.model.queue_outages import QueueOutage


def test_an_outage_is_read_as_it_was_written() -> None:
    outage = QueueOutage("t", None, 3, "a", "b", 4_000, None, "progress")
    assert msgspec.json.decode(msgspec.json.encode(outage), type=QueueOutage) == outage
    assert msgspec.json.encode(outage) == b'["t",null,3,"a","b",4000,null,"progress"]'
