"""Records that a Kafka 4.1.1 broker wrote, with what Kafka's own converters make of them."""

import json
from pathlib import Path
from typing import Any, NamedTuple


class Line(NamedTuple):
    """One record, in the order of the log; ``shown``: its value as Kafka shows it."""

    at: int
    key: bytes
    value: bytes | None
    key_shown: dict[str, Any]
    shown: dict[str, Any] | None


_LINES = (Path(__file__).parent / "consumer_offsets_golden" / "broker.jsonl").read_text().splitlines()
TOPIC_IDS: dict[str, str] = json.loads(_LINES[0])["topics"]
LINES = [
    Line(
        told["at"],
        bytes.fromhex(told["key"]),
        None if told["value"] is None else bytes.fromhex(told["value"]),
        told["kafka"]["key"],
        told["kafka"]["value"],
    )
    for told in map(json.loads, _LINES[1:])
]
