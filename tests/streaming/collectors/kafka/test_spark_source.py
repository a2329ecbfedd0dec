"""The group records as a source of the query: the options that Spark gets."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.collectors.kafka import spark_source
from streaming.collectors.kafka.options import KafkaOptions
from streaming.collectors.kafka.spark_source import offsets_source


class Reader:
    """Takes down what Spark's reader is given."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}

    def format(self, name: str) -> Reader:
        self.given["format"] = name
        return self

    def options(self, **values: str) -> Reader:
        self.given |= values
        return self

    def option(self, name: str, value: object) -> Reader:
        self.given[name] = value
        return self

    def load(self) -> dict[str, Any]:
        return self.given


class Session:
    """Takes down the session's settings."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.readStream = Reader()

    @property
    def conf(self) -> Session:
        return self

    def set(self, name: str, value: str) -> None:
        self.settings[name] = value


@pytest.mark.parametrize("is_tolerant", [False, True])
def test_partitions_are_assigned_and_read_from_the_first_record_on(
    is_tolerant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_source, "offsets_rows", lambda found: found)
    session, options = Session(), KafkaOptions("h:1", "c", {"security.protocol": "SSL", "group.id": "mine"})
    rows = offsets_source(session, options, partitions=3, max_offsets_per_batch=7, is_tolerant=is_tolerant)  # type: ignore[arg-type]
    assert rows == {
        "format": "kafka",
        "kafka.bootstrap.servers": "h:1",
        "kafka.security.protocol": "SSL",
        "assign": '{"__consumer_offsets": [0, 1, 2]}',
        "startingOffsets": "earliest",
        "failOnDataLoss": not is_tolerant,
        "maxOffsetsPerTrigger": 7,
        "kafka.isolation.level": "read_committed",
    }
    # Without this option Spark skips internal topics, and reads nothing.
    assert session.settings["spark.sql.streaming.kafka.useDeprecatedOffsetFetching"] == "true"
    assert session.settings["spark.sql.streaming.stopTimeout"] == "10000"
