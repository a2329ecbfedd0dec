"""Records that real Kafka brokers wrote, with what Kafka's own converters make of them."""

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


_FOLDER = Path(__file__).parent / "consumer_offsets_golden"


def _line(written: dict[str, Any]) -> Line:
    return Line(
        written["at"],
        bytes.fromhex(written["key"]),
        None if written["value"] is None else bytes.fromhex(written["value"]),
        written["kafka"]["key"],
        written["kafka"]["value"],
    )


def _read(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_FOLDER / file).read_text().splitlines()]


# Of groups of the new protocols, by 4.1.1.
_FIRST, *_OTHERS = _read("broker.jsonl")
TOPIC_IDS: dict[str, str] = _FIRST["topics"]
LINES = [_line(row) for row in _OTHERS]
# Of a classic group that commits, with the version of the broker.
OF_VERSIONS: list[tuple[str, Line]] = [(row["broker"], _line(row)) for row in _read("commits.jsonl")]
# Of groups of the new protocols, by 3.9.1 and 4.4.0.
GROUPS_OF_VERSIONS: list[tuple[str, Line]] = [(row["broker"], _line(row)) for row in _read("groups_of_versions.jsonl")]
# That Kafka's classes wrote: all versions of commits and classic groups, streams groups with all that they may have.
CONSTRUCTED = [_line(row) for row in _read("constructed.jsonl")]
