"""The main stories on brokers and Java clients of other versions: the last of Kafka 3, and the newest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.job.commands import ManyRuns
from tests.kit.brokers import NEWEST, Broker, kafka_41
from tests.kit.members import Member
from tests.live import test_kafka41
from tests.live.test_kafka41_epochs import (
    check_stories,
    librdkafka,
    matching,
    mixed,
    moving,
    pattern,
    ranged,
    static,
    uniform,
)
from tests.live.test_kafka_log import check_departures

pytestmark = [pytest.mark.slow, pytest.mark.broker, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module", params=["3.9.1", NEWEST])
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of each version in turn."""
    # Where a group has none of its own: long enough for a process to start again on a busy machine.
    settings = {"group.consumer.session.timeout.ms": "30000"} if request.param == "3.9.1" else {}
    with kafka_41(tmp_path_factory.mktemp("kafka"), settings, version=request.param) as broker:
        yield broker


@pytest.mark.spark
def test_each_generation_is_one_row_with_its_cause(
    kafka: Broker, new_member: Callable[..., Member], runs: ManyRuns, tmp_path: Path
) -> None:
    test_kafka41.test_each_generation_is_one_row_with_its_cause(kafka, new_member, runs, tmp_path)


def test_every_epoch_has_its_cause_and_its_target_is_recomputed(
    kafka: Broker, new_member: Callable[..., Member], tmp_path: Path
) -> None:
    # Coordinators of 3.9 resolve no patterns, and librdkafka joins such groups from 4.0 on.
    later = [] if kafka.version == "3.9.1" else [pattern, matching, librdkafka]
    check_stories(kafka, new_member, tmp_path / "epochs", [uniform, ranged, static, mixed, moving, *later])


def test_the_log_reports_how_each_member_departed(
    kafka: Broker, new_member: Callable[..., Member], tmp_path: Path
) -> None:
    check_departures(kafka, new_member, tmp_path)
