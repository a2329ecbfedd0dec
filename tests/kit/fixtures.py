"""Fixtures of the kit, for every test: `kafka41`, `kafka10`, `each_kafka`, `new_member` and the like.

Kafka's brokers and MetaQ's run once for each test process; tests use topics and groups of their own. A test
that stops its broker or needs other settings starts its own with `tests.kit.brokers`. RocketMQ's run once for
each file of tests: to start them costs as much computing as one to three minutes of their being idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    # Not at run time: a test of the core shall not wait for librdkafka to load.
    from tests.kit.brokers import Broker
    from tests.kit.members import Member
    from tests.kit.metaq import MetaqCluster
    from tests.kit.metaq_members import MetaqMember
    from tests.kit.rocketmq import RocketMq
    from tests.kit.rocketmq_members import RocketMqMember


@pytest.fixture(scope="session")
def kafka41(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A Kafka 4.1 broker."""
    from tests.kit.brokers import kafka_41

    with kafka_41(tmp_path_factory.mktemp("kafka-4.1")) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka10(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A Kafka 1.0 broker."""
    from tests.kit.brokers import kafka_10

    with kafka_10(tmp_path_factory.mktemp("kafka-1.0")) as broker:
        yield broker


@pytest.fixture(params=["kafka41", "kafka10"])
def each_kafka(request: pytest.FixtureRequest) -> Broker:
    """Each of the two brokers in turn."""
    broker: Broker = request.getfixturevalue(request.param)
    return broker


@pytest.fixture
def new_member() -> Iterator[Callable[..., Member]]:
    """Start members as `tests.kit.members.start_member` does; those that still run at the end are killed."""
    from tests.kit.members import start_member

    with ExitStack() as running:
        yield lambda *arguments, **more: running.enter_context(start_member(*arguments, **more))


@pytest.fixture(scope="session")
def metaq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetaqCluster]:
    """A MetaQ 1.4 broker with its ZooKeeper, and the topic `kit-orders` of 12 partitions."""
    from tests.kit.metaq import metaq_cluster

    with metaq_cluster(tmp_path_factory.mktemp("metaq"), {"kit-orders": 12}) as cluster:
        yield cluster


@pytest.fixture
def new_metaq_member() -> Iterator[Callable[..., MetaqMember]]:
    """Start members as `start_metaq_member` does; those that still run at the end are killed."""
    from tests.kit.metaq_members import start_metaq_member

    with ExitStack() as running:
        yield lambda *arguments, **more: running.enter_context(start_metaq_member(*arguments, **more))


@pytest.fixture(scope="module")
def rocketmq55(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RocketMq]:
    """A RocketMQ 5.5 name server and broker; a hanging member is given up after 10 to 22 s."""
    from tests.kit.rocketmq import rocketmq_55

    with rocketmq_55(tmp_path_factory.mktemp("rocketmq-5.5"), {"channelExpiredTimeout": "10000"}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def rocketmq49(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RocketMq]:
    """A RocketMQ 4.9 name server and broker; a hanging member is given up after two minutes."""
    from tests.kit.rocketmq import rocketmq_49

    with rocketmq_49(tmp_path_factory.mktemp("rocketmq-4.9")) as cluster:
        yield cluster


@pytest.fixture(params=["rocketmq55", "rocketmq49"])
def each_rocketmq(request: pytest.FixtureRequest) -> RocketMq:
    """Each of the two clusters in turn."""
    cluster: RocketMq = request.getfixturevalue(request.param)
    return cluster


@pytest.fixture
def new_rocketmq_member() -> Iterator[Callable[..., RocketMqMember]]:
    """Start members as `tests.kit.rocketmq_members.start_member` does; those that still run at the end are killed."""
    from tests.kit.rocketmq_members import start_member

    with ExitStack() as running:
        yield lambda *arguments, **more: running.enter_context(start_member(*arguments, **more))
