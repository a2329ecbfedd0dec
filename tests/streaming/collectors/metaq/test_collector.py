"""The collector beside a real ZooKeeper; its nodes are written by hand, as brokers and consumers of any age do."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl
from pydantic import SecretStr

from streaming.collectors.event_log import EventFiles, LogFull
from streaming.collectors.metaq.collector import MetaqCollector
from streaming.collectors.metaq.options import MetaqOptions
from tests.cluster_options import metaq_options
from tests.kit.metaq import client_of
from tests.kit.zookeeper import ZooKeeper, running_zookeeper
from udfs.model.events import AnyEvent

pytestmark = pytest.mark.broker
_WAIT_S = 60.0


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture
def root(request: pytest.FixtureRequest) -> str:
    """A root of the test's own."""
    return f"/{request.node.name.replace('[', '-').replace(']', '')}"


@pytest.fixture
def nodes(keeper: ZooKeeper) -> Iterator[KazooClient]:
    with client_of(keeper) as client:
        yield client


class Log:
    """A log in memory, which may be full."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.memory: bytes | None = None
        self.is_full = False

    def append(self, events: Sequence[AnyEvent]) -> None:
        if self.is_full:
            raise LogFull("no space left")
        self.events += events

    def read_memory(self) -> bytes | None:
        return self.memory

    def keep_memory(self, content: bytes) -> None:
        self.memory = content

    def trouble(self) -> str | None:
        return None

    def flush(self) -> bool:
        return True

    def reported(self, kind: str) -> list[Any]:
        return [event for event in self.events if type(event).__name__ == kind]

    def all_but_clocks(self) -> list[Any]:
        return [event for event in self.events if type(event).__name__ != "Clock"]


def options(keeper: ZooKeeper, root: str, **more: Any) -> MetaqOptions:
    short = {"poll_interval_ms": 200, "progress_interval_ms": 200, "settle_ms": 300, "session_timeout_ms": 4_000}
    return metaq_options(f"{keeper.address}{root}", cluster="c", **(short | more))


def wait_for(claim: Callable[[], object], collector: MetaqCollector, log: Log) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not claim():
        assert time.monotonic() < deadline, (collector.status(), log.all_but_clocks()[-5:])
        time.sleep(0.02)


def wait_for_rounds(log: Log, collector: MetaqCollector, count: int = 2) -> None:
    """Wait until this many more rounds have passed."""
    before = len(log.reported("Clock"))
    wait_for(lambda: len(log.reported("Clock")) >= before + count, collector, log)


def write(nodes: KazooClient, path: str, data: bytes = b"") -> None:
    nodes.create(path, data, makepath=True)


def group_of_two(nodes: KazooClient, root: str, group: str = "g") -> None:
    write(nodes, f"{root}/brokers/topics-pub/t/0-m", b'{"broker":"0-m","numParts":2}')
    write(nodes, f"{root}/brokers/topics-sub/t/0-m", b'{"broker":"0-m","numParts":2}')
    for number, name in enumerate("ab"):
        write(nodes, f"{root}/consumers/{group}/ids/{group}_{name}", b"t")
        write(nodes, f"{root}/consumers/{group}/owners/t/0-{number}", f"{group}_{name}".encode())
        write(nodes, f"{root}/consumers/{group}/offsets/t/0-{number}", b"17-100")


def test_a_cluster_of_old_is_read(keeper: ZooKeeper, nodes: KazooClient, root: str) -> None:
    write(nodes, f"{root}/brokers/ids/0", b"meta://10.0.0.1:8123")
    write(nodes, f"{root}/brokers/topics/t/0-m", b"3")
    write(nodes, f"{root}/brokers/topics/t/0-s1", b"3")
    write(nodes, f"{root}/brokers/topics/t/1", b"2")
    write(nodes, f"{root}/consumers/g/ids/g_a", b"t")
    write(nodes, f"{root}/consumers/g/offsets/t/0-0", b"100")
    log = Log()
    with MetaqCollector(options(keeper, root), log) as collector:
        wait_for(lambda: log.reported("GroupSnapshot"), collector, log)
        (topic,) = log.reported("TopicQueues")
        queues = [(queue.broker, queue.queue_id) for queue in topic.queues]
        assert queues == [("0", 0), ("0", 1), ("0", 2), ("1", 0), ("1", 1)]
        wait_for_rounds(log, collector)
        nodes.set(f"{root}/consumers/g/offsets/t/0-0", b"200")
        wait_for(lambda: len(log.reported("Progress")) == 2, collector, log)
        # The first broker of the present kind ends the old reading.
        write(nodes, f"{root}/brokers/topics-pub/t/0-m", b'{"broker":"0-m","numParts":4}')
        write(nodes, f"{root}/brokers/topics-sub/t/0-m", b'{"broker":"0-m","numParts":4}')
        wait_for(lambda: len(log.reported("TopicQueues")[-1].queues) == 4, collector, log)
    _, progress = log.reported("Progress")
    assert progress.queues[0].offset == 200
    assert progress.event_time == nodes.get(f"{root}/consumers/g/offsets/t/0-0")[1].mtime


def test_garbage_is_named_and_hides_nothing_else(keeper: ZooKeeper, nodes: KazooClient, root: str) -> None:
    group_of_two(nodes, root)
    write(nodes, f"{root}/brokers/topics-sub/t/1-m", b"[" * 3_000)
    write(nodes, f"{root}/brokers/topics-sub/t/not-a-broker", b"{}")
    write(nodes, f"{root}/brokers/topics-sub/empty")
    write(nodes, f"{root}/consumers/g/owners/t/zero", b"g_a")
    write(nodes, f"{root}/consumers/g/owners/t/0-7", b"")
    write(nodes, f"{root}/consumers/g/ids/g_c", b"\xff\xfe")
    write(nodes, f"{root}/consumers/g/offsets/t/zero", b"1")
    write(nodes, f"{root}/consumers/g/offsets/t/0-9", b"much")
    write(nodes, f"{root}/consumers/bare")
    log = Log()
    with MetaqCollector(options(keeper, root), log) as collector:
        wait_for(lambda: len(log.reported("GroupSnapshot")) == 2, collector, log)
        snapshot = next(event for event in log.reported("GroupSnapshot") if event.group == "g")
        assert [member.member_id for member in snapshot.members] == ["g_a", "g_b", "g_c"]
        (observation,) = snapshot.observations
        assert observation.kind == "unreadable_nodes"
        assert "/consumers/g/ids/g_c (not_utf8)" in observation.detail
        assert [len(event.queues) for event in log.reported("TopicQueues")] == [2]
        wait_for_rounds(log, collector)
        assert len(log.reported("GroupSnapshot")) == 2
        for path in ("owners/t/zero", "owners/t/0-7", "ids/g_c"):
            nodes.delete(f"{root}/consumers/g/{path}")
        wait_for(lambda: log.reported("GroupSnapshot")[-1].observations == (), collector, log)


def test_the_end_of_our_own_session_proves_nothing_of_others(keeper: ZooKeeper, nodes: KazooClient, root: str) -> None:
    group_of_two(nodes, root)
    log = Log()
    with MetaqCollector(options(keeper, root), log) as collector:
        wait_for_rounds(log, collector, 8)
        before = log.all_but_clocks()
        ended = collector._client.client_id
        with _same_session(keeper, ended):
            pass  # closing it ends it for both
        wait_for(lambda: (collector._client.client_id or ended) != ended, collector, log)
        wait_for_rounds(log, collector)
        assert log.all_but_clocks() == before
        nodes.delete(f"{root}/consumers/g/ids/g_b")
        wait_for(lambda: log.all_but_clocks() != before, collector, log)
    assert [member.member_id for member in log.reported("GroupSnapshot")[-1].members] == ["g_a"]


def test_a_server_that_hangs_is_no_evidence(tmp_path: Path) -> None:
    with running_zookeeper(tmp_path) as keeper, client_of(keeper) as nodes:
        group_of_two(nodes, "/meta")
        log = Log()
        with MetaqCollector(options(keeper, "/meta"), log) as collector:
            wait_for_rounds(log, collector, 8)
            before = log.all_but_clocks()
            keeper.server.freeze()
            wait_for(lambda: collector.status().state == "away", collector, log)
            clocks = len(log.reported("Clock"))
            keeper.server.thaw()
            wait_for(lambda: collector.status().state == "connected", collector, log)
            assert len(log.reported("Clock")) <= clocks + 2
            wait_for_rounds(log, collector)
        assert log.all_but_clocks() == before


def test_a_server_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    keeper = ZooKeeper(tmp_path)
    log = Log()
    patience = options(keeper, "/meta", connect_timeout_ms=500)
    try:
        with MetaqCollector(patience, log) as collector:
            wait_for(lambda: collector.status().state == "away", collector, log)
            assert not collector.observe_once()
            keeper.start()
            wait_for(lambda: collector.status().state == "connected", collector, log)
            wait_for_rounds(log, collector)
    finally:
        keeper.stop()


def test_a_full_log_loses_nothing(keeper: ZooKeeper, nodes: KazooClient, root: str) -> None:
    group_of_two(nodes, root)
    log = Log()
    with MetaqCollector(options(keeper, root), log) as collector:
        wait_for_rounds(log, collector)
        log.is_full = True
        nodes.delete(f"{root}/consumers/g/ids/g_b")
        wait_for(lambda: collector.status().state == "unwritable", collector, log)
        log.is_full = False
        wait_for(lambda: len(log.reported("GroupSnapshot")[-1].members) == 1, collector, log)
        wait_for_rounds(log, collector)
    assert collector.status().state == "connected"


def test_a_user_without_the_right_is_refused_and_one_with_it_reads(
    keeper: ZooKeeper, nodes: KazooClient, root: str
) -> None:
    everything = [make_digest_acl("monitor", "of-the-test", all=True)]
    nodes.add_auth("digest", "monitor:of-the-test")
    nodes.ensure_path(root)
    nodes.create(f"{root}/consumers", acl=everything)
    nodes.create(f"{root}/consumers/g", acl=everything)
    log = Log()
    with MetaqCollector(options(keeper, root), log) as collector:
        wait_for(lambda: collector.status().state == "refused", collector, log)
        assert log.events == []
    allowed = options(keeper, root, auth={"digest": SecretStr("monitor:of-the-test")})
    with MetaqCollector(allowed, log) as collector:
        wait_for(lambda: log.reported("GroupSnapshot"), collector, log)
    assert "of-the-test" not in repr(allowed)


def test_one_read_reports_everything_and_the_next_collector_nothing_again(
    keeper: ZooKeeper, nodes: KazooClient, root: str, tmp_path: Path
) -> None:
    group_of_two(nodes, root)
    log = EventFiles(tmp_path, "metaq")
    for _ in range(2):
        collector = MetaqCollector(options(keeper, root), log)
        assert collector.observe_once()
        collector.stop()
    lines = b"".join(file.read_bytes() for file in sorted(tmp_path.glob("*.jsonl"))).splitlines()
    assert sum(b"group_snapshot" in line for line in lines) == 1
    assert sum(b'"inferred":true' in line for line in lines) == 1
    assert sum(b"assignment_reported" in line for line in lines) in (2, 4)  # also once they have stood for a while
    assert lines[-1].count(b'"clock"') == 1


def test_an_unreadable_memory_counts_as_absent(keeper: ZooKeeper, nodes: KazooClient, root: str) -> None:
    group_of_two(nodes, root)
    log = Log()
    log.memory = b'{"groups":[]'
    with MetaqCollector(options(keeper, root), log) as collector:
        wait_for(lambda: log.reported("GroupSnapshot"), collector, log)


def test_groups_and_topics_that_are_not_followed_are_not_read(keeper: ZooKeeper, nodes: KazooClient, root: str) -> None:
    group_of_two(nodes, root, "wanted")
    write(nodes, f"{root}/consumers/other/ids/other_a", b"t")
    write(nodes, f"{root}/brokers/topics-sub/u/0-m", b'{"broker":"0-m","numParts":2}')
    log = Log()
    some = options(keeper, root, include_groups=("want.*", "late"), exclude_topics=("u",))
    with MetaqCollector(some, log) as collector:
        wait_for_rounds(log, collector)
        write(nodes, f"{root}/consumers/another/ids/another_a", b"t")
        write(nodes, f"{root}/consumers/late/ids/late_a", b"t,u")
        wait_for(
            lambda: any(event.group == "late" and event.members for event in log.reported("GroupSnapshot")),
            collector,
            log,
        )
    assert {event.group for event in log.reported("GroupSnapshot")} == {"wanted", "late"}
    assert {event.topic for event in log.reported("TopicQueues")} == {"t"}
    assert log.reported("GroupSnapshot")[-1].members[0].subscriptions == ("t",)


def test_a_member_that_describes_itself_anew_is_read_again(keeper: ZooKeeper, nodes: KazooClient, root: str) -> None:
    group_of_two(nodes, root)
    log = Log()
    with MetaqCollector(options(keeper, root), log) as collector:
        wait_for_rounds(log, collector)
        nodes.set(f"{root}/consumers/g/ids/g_b", b"t,u")
        wait_for(lambda: len(log.reported("GroupSnapshot")) == 2, collector, log)
    assert [member.subscriptions for member in log.reported("GroupSnapshot")[-1].members] == [("t",), ("t", "u")]


def test_a_removed_group_is_reported_as_deleted(keeper: ZooKeeper, nodes: KazooClient, root: str) -> None:
    group_of_two(nodes, root)
    log = Log()
    with MetaqCollector(options(keeper, root), log) as collector:
        wait_for_rounds(log, collector)
        nodes.delete(f"{root}/consumers/g", recursive=True)
        wait_for(lambda: log.reported("GroupDeleted"), collector, log)
    assert collector.status().groups == 0


@contextlib.contextmanager
def _same_session(keeper: ZooKeeper, client_id: tuple[int, bytes]) -> Iterator[None]:
    client = KazooClient(hosts=keeper.address, client_id=client_id, timeout=4.0)
    client.start(timeout=30)
    try:
        yield
    finally:
        client.stop()
        client.close()
