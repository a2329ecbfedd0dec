"""Shows what Kafka's own converters make of the records that its classes wrote, those of no broker here included.

python -m tests.kit.constructed_records > tests/udfs/kafka/consumer_offsets_golden/constructed.jsonl

A line is one record: key and value in hex, and what the newest of Kafka's converters to JSON make of it.
"""

from __future__ import annotations

import json
import sys

from tests.kit.brokers import NEWEST
from tests.kit.group_records import Record, as_kafka_shows
from tests.udfs.kafka.golden_records import AT, GOLDEN

# Keys of type 0 are of brokers before 0.9, with values of version 0.
PAIRS = (
    ("key-0", "commit-0"),
    *(("key-1", f"commit-{version}") for version in range(5)),
    ("key-1", "commit-4-bare"),
    *(("key-2", f"{state}-{version}") for version in range(5) for state in ("group", "empty")),
    ("key-4", "partition-metadata"),
    ("key-21", "streams-target"),
    ("key-22", "streams-current"),
    ("key-23", "topology"),
)


def main() -> int:
    """Print the records with what Kafka shows of them."""
    records = [Record(AT, GOLDEN[key], GOLDEN[value]) for key, value in PAIRS]
    for record, shown in zip(records, as_kafka_shows(records, NEWEST), strict=True):
        assert record.value is not None
        line = {"at": record.at, "key": record.key.hex(), "value": record.value.hex(), "kafka": shown}
        sys.stdout.write(json.dumps(line) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
