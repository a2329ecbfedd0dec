"""Fixtures of the kit, for every test: `kafka41`, `kafka10`, `each_kafka`, `new_member` and the like.

Brokers run once for each test process; tests use topics and groups of their own. A test that stops its broker or needs
other settings starts its own with `tests.kit.brokers`. RocketMQ's compute even when they are idle: the tests that share
them run one after the other in one process, and each cluster ends behind the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.kit.scenes import is_scene

if TYPE_CHECKING:
    # Not at run time: a test of the core shall not wait for librdkafka to load.
    from streaming.stores.places import Place
    from tests.kit.brokers import Broker
    from tests.kit.hdfs import HdfsServer
    from tests.kit.members import Member
    from tests.kit.metaq import MetaqCluster
    from tests.kit.metaq_members import MetaqMember
    from tests.kit.rocketmq import RocketMq
    from tests.kit.rocketmq_members import RocketMqMember
    from tests.kit.s3 import S3Server
    from tests.kit.spark_cluster import SparkCluster

# What one test process runs as a whole, by what the tests share: RocketMQ's clusters; the session of Spark; the tables
# of one long run and the process in which jobs run; a browser, servers, and the recorded day as tables; that day.
_SCOPES = {
    "rocketmq": (
        "tests/kit/test_rocketmq.py",
        "tests/live/test_rocketmq_collector.py",
        "tests/live/test_rocketmq_costs.py",
        "tests/live/test_rocketmq_groups.py",
        "tests/live/test_rocketmq_job.py",
        "tests/live/test_rocketmq_lag_in_time.py",
        "tests/live/test_rocketmq_outages.py",
        "tests/live/test_rocketmq_predictions.py",
        "tests/live/test_rocketmq_waits.py",
        "tests/live/test_several_clusters.py",
        "tests/streaming/collectors/rocketmq/remoting/test_client.py",
    ),
    "spark": (
        "tests/dashboard/questions/test_answer.py",
        "tests/docs/test_queries_page.py",
        "tests/streaming/commands/test_query.py",
        "tests/streaming/commands/test_state.py",
        "tests/streaming/pipeline/",
        "tests/streaming/replays/",
        "tests/streaming/spark/",
        "tests/streaming/tables/",
    ),
    "job": ("tests/crash/test_leftovers.py", "tests/job/"),
    "browser": ("tests/browser/",),
    "day": (
        "tests/simulation/test_flapping.py",
        "tests/simulation/test_recorded_day.py",
        "tests/streaming/history/test_identity.py",
        "tests/streaming/history/test_reported_policies.py",
    ),
}
# Longest first: what comes last is waited for by all processes but one.
_FIRST = (
    *("rocketmq", "job", "spark", "browser"),
    *("tests/crash/test_chaos.py", "tests/cluster/test_spark_cluster.py", "tests/crash/test_crash.py"),
)


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


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server of the S3 protocol."""
    from tests.kit.s3 import running_s3

    with running_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A standalone cluster of Spark with two workers of one core; a test that kills one adds another."""
    from tests.kit.spark_cluster import running_spark_cluster

    with running_spark_cluster(tmp_path_factory.mktemp("spark-cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    from tests.kit.wheel import build_wheel

    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed_monitor(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `rebalance-monitor` of the installed wheel."""
    from tests.kit.wheel import install_wheel

    return install_wheel(wheel, tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="session")
def installed_reader(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `rebalance-monitor` of the wheel that was installed without an extra: it has no Spark."""
    from tests.kit.wheel import install_wheel, required_packages

    return install_wheel(wheel, tmp_path_factory.mktemp("reader"), required_packages(wheel))


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """An HDFS."""
    from tests.kit.hdfs import running_hdfs

    with running_hdfs(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(params=["disk", pytest.param("s3", marks=pytest.mark.broker)])
def either_place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An empty folder: of a disk, or of a store, whose options are in the environment."""
    from streaming.stores.places import place_of

    return tmp_path if request.param == "disk" else place_of(request.getfixturevalue("s3").folder(monkeypatch))


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


class _RocketMqClusters:
    """Those that have been started, until the tests that share them are over."""

    def __init__(self) -> None:
        self._started: dict[str, tuple[RocketMq, ExitStack]] = {}

    def start(self, fixture: str, folder: Path, settings: Mapping[str, str]) -> RocketMq:
        """Return the cluster of a fixture, started if it is not yet."""
        from tests.kit.rocketmq import rocketmq_49, rocketmq_55

        if fixture not in self._started:
            running = ExitStack()
            start = rocketmq_55 if fixture == "rocketmq55" else rocketmq_49
            self._started[fixture] = running.enter_context(start(folder, settings, tls=True)), running
        cluster, _ = self._started[fixture]
        return cluster

    def end_all_but(self, wanted: Collection[str]) -> None:
        """End those of other fixtures."""
        for fixture in self._started.keys() - wanted:
            _, running = self._started.pop(fixture)
            running.close()


_ROCKETMQ = _RocketMqClusters()
# One cluster after the other, and then the tests that need neither.
_ROCKETMQ_ORDER = ({"rocketmq49"}, {"rocketmq49", "rocketmq55"}, {"rocketmq55"}, set[str]())


def clusters_of(item: pytest.Item) -> set[str]:
    """Return the fixtures of RocketMQ's shared clusters that a test uses; it may name one as its parameter."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    used = {*getattr(item, "fixturenames", ()), *(value for value in parameters if isinstance(value, str))}
    return used & {"rocketmq49", "rocketmq55"}


def scope_of(nodeid: str) -> str:
    """Return what one test process runs as a whole: a file of tests, or those that share an expensive fixture."""
    file = nodeid.partition("::")[0]
    return next((name for name, places in _SCOPES.items() if file.startswith(places)), file)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark scenes, before marks choose, and order files by when they start: longest first. RocketMQ's go by cluster."""
    for item in items:
        if is_scene(item.nodeid) and item.get_closest_marker("slow") is None:
            item.add_marker("scene")

    def place(item: pytest.Item) -> tuple[int, int]:
        scope = scope_of(item.nodeid)
        cluster = _ROCKETMQ_ORDER.index(clusters_of(item)) if scope == "rocketmq" else 0
        return (_FIRST.index(scope) if scope in _FIRST else len(_FIRST)), cluster

    items.sort(key=place)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End each of RocketMQ's clusters behind the last test that shares it."""
    _ROCKETMQ.end_all_but(clusters_of(nextitem) if nextitem is not None else ())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Let each test process take whole scopes."""
    from xdist.scheduler import LoadFileScheduling

    class LoadScopes(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    return LoadScopes(config, log)


@pytest.fixture
def rocketmq55(tmp_path_factory: pytest.TempPathFactory) -> RocketMq:
    """A RocketMQ 5.5 name server and broker; a hanging member is given up after 10 to 22 s."""
    return _ROCKETMQ.start("rocketmq55", tmp_path_factory.mktemp("rocketmq-5.5"), {"channelExpiredTimeout": "10000"})


@pytest.fixture
def rocketmq49(tmp_path_factory: pytest.TempPathFactory) -> RocketMq:
    """A RocketMQ 4.9 name server and broker; a hanging member is given up after two minutes."""
    return _ROCKETMQ.start("rocketmq49", tmp_path_factory.mktemp("rocketmq-4.9"), {})


@pytest.fixture(params=["rocketmq55", "rocketmq49"])
def each_rocketmq(request: pytest.FixtureRequest) -> RocketMq:
    """Each of the two clusters in turn."""
    cluster: RocketMq = request.getfixturevalue(request.param)
    return cluster


@pytest.fixture(params=["rocketmq55", pytest.param("rocketmq49", marks=pytest.mark.slow)])
def client_rocketmq(request: pytest.FixtureRequest) -> RocketMq:
    """One cluster for what the two have been found to do alike; in `make soak` each of them."""
    cluster: RocketMq = request.getfixturevalue(request.param)
    return cluster


@pytest.fixture
def new_rocketmq_member() -> Iterator[Callable[..., RocketMqMember]]:
    """Start members as `tests.kit.rocketmq_members.start_member` does; those that still run at the end are killed."""
    from tests.kit.rocketmq_members import start_member

    with ExitStack() as running:
        yield lambda *arguments, **more: running.enter_context(start_member(*arguments, **more))
