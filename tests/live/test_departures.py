"""Consumers of real brokers depart in every way: the cause is exact with the brokers' log, and never wrong without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.departure_verdicts import KINDS, read, stories, verdicts
from tests.live.departures import LIBRARIES, record

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]
# `make departures` has all of them.
NAMES = ("librdkafka", "librdkafka, new protocol", "kafka-python")


def test_the_cause_of_a_departure_is_exact_with_the_log_and_never_wrong_without(tmp_path: Path) -> None:
    libraries = [library for library in LIBRARIES if library.name in NAMES]
    record(libraries, 1, 60, tmp_path)
    run = read(tmp_path)
    by_log, by_records = verdicts([run], "log"), verdicts([run], "records")
    assert {kind for _, kind in by_log} == set(KINDS)
    assert {name: counts for name, counts in by_log.items() if set(counts) != {"right"}} == {}
    assert {name: counts for name, counts in by_records.items() if counts["wrong"]} == {}
    total = sum(counts.total() for counts in by_records.values())
    assert sum(counts["open"] for counts in by_records.values()) <= total // 4
    for story, counts in stories([run], "log").items():
        assert (counts["named"], counts["wrong"]) == (counts["true"], 0), story
    assert [story for story, counts in stories([run], "records").items() if counts["wrong"]] == []
