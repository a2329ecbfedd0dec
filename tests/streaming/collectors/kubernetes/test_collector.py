"""The collector follows a server that speaks the protocol over HTTP, and says what it does not know."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streaming.collectors.collector import source_status_of
from streaming.collectors.event_log import EventFiles
from streaming.collectors.kubernetes.api_server import ApiServer
from streaming.collectors.kubernetes.collector import KubernetesCollector
from streaming.collectors.kubernetes.options import KubernetesOptions
from streaming.machine.process import since_boot_ms
from streaming.tables.liveness import SourceStatus
from tests.core_config import core_config
from tests.kit.kubernetes_server import KubernetesServer, kubernetes_server
from tests.streaming.collectors.kubernetes.objects import T0, ended, pod, replica_set, running
from tests.streaming.collectors.kubernetes.written import Written
from udfs.ingest.parser import parse
from udfs.model.annotations import Annotation

CONFIG = core_config()
PATIENCE_S = 20.0


def wait_for(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.fixture
def server() -> Iterator[KubernetesServer]:
    with kubernetes_server() as found:
        found.put("replicasets", replica_set())
        found.put("pods", pod("a", "10.0.0.7", 10))
        yield found


class Follower:
    """A collector that writes into a folder, and what it has written."""

    def __init__(self, server: KubernetesServer, folder: Path) -> None:
        self.folder = folder / "events"
        self.folder.mkdir(exist_ok=True)
        file = server.kubeconfig(folder)
        # A server that hangs is noticed within a second.
        options = KubernetesOptions("k", kubeconfig=str(file), watch_s=1, answer_s=0.7)
        self.collector = KubernetesCollector(options, ApiServer(options), EventFiles(self.folder, "kubernetes-k"))
        self._made_at_ms = since_boot_ms()

    def __enter__(self) -> Follower:
        self.collector.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.collector.stop()

    def written(self) -> Written:
        """Return what its files hold."""
        found = Written()
        for file in sorted(self.folder.glob("*.jsonl")):
            for line in file.read_bytes().splitlines():
                annotation = parse(line, T0, CONFIG)
                assert isinstance(annotation, Annotation), annotation
                found.take([annotation])
        return found

    def texts(self, kind: str) -> list[str]:
        """Return the texts of a kind."""
        return [row["text"] for row in self.written().rows(kind)]

    def status(self) -> SourceStatus:
        """Return what its liveness would say."""
        return source_status_of(self.collector.status(), self._made_at_ms)


def test_it_lists_then_watches_and_stores_what_happened(server: KubernetesServer, tmp_path: Path) -> None:
    with Follower(server, tmp_path) as follower:
        wait_for(lambda: len(follower.texts("pod")) == 1, "the pod of the list")
        server.put("pods", pod("a", "10.0.0.7", 10, containers=[running(52, 1, ended(50))]))
        wait_for(lambda: bool(follower.texts("container_ended")), "the killed container")
        assert follower.status() == SourceStatus("kubernetes k")
    assert follower.texts("container_ended") == [
        "pod orders-a (deployment orders, revision 42, node worker-3) was OOMKilled (container app, exit code 137)"
    ]
    assert follower.texts("pods_followed") == ["the pods of kubernetes cluster k are known"]


def test_a_list_in_pages_is_read_as_a_whole(server: KubernetesServer, tmp_path: Path) -> None:
    for number in range(1_200):
        server.put("pods", pod(f"n{number}", f"10.1.{number // 250}.{number % 250}", 10))
    follower = Follower(server, tmp_path)
    assert follower.collector.observe_once()
    assert len(follower.texts("pod")) == 1_201
    assert server.requests.count("list pods") == 3


def test_a_restart_writes_nothing_twice_and_closes_what_vanished(server: KubernetesServer, tmp_path: Path) -> None:
    server.put("pods", pod("a", "10.0.0.7", 10, containers=[running(52, 1, ended(50))]))
    server.put("pods", pod("b", "10.0.0.8", 10))
    with Follower(server, tmp_path) as follower:
        wait_for(lambda: len(follower.texts("pod")) == 2, "both pods")
    before = follower.written().rows("container_ended")
    server.delete("pods", "b")
    server.put("pods", pod("c", "10.0.0.8", 70))
    again = Follower(server, tmp_path)
    assert again.collector.observe_once()
    written = again.written()
    assert written.rows("container_ended") == before
    lives = {row["pod"]: row["ended_at"] is None for row in written.rows("pod")}
    assert lives == {"orders-a": True, "orders-b": False, "orders-c": True}


def test_after_410_it_lists_again(server: KubernetesServer, tmp_path: Path) -> None:
    with Follower(server, tmp_path) as follower:
        wait_for(lambda: len(follower.texts("pod")) == 1, "the pod")
        lists = server.requests.count("list pods")
        server.delete("pods", "a")
        server.compact()
        server.put("pods", pod("b", "10.0.0.7", 60))
        wait_for(lambda: len(follower.texts("pod")) == 2, "the new pod")
        wait_for(lambda: server.requests.count("list pods") > lists or bool(follower.texts("pod_deleted")), "a list")
        wait_for(lambda: bool(follower.texts("pod_deleted")), "the pod that vanished")


def test_a_server_that_dies_and_comes_back(server: KubernetesServer, tmp_path: Path) -> None:
    with Follower(server, tmp_path) as follower:
        wait_for(lambda: len(follower.texts("pod")) == 1, "the pod")
        server.stop()
        wait_for(lambda: "does not answer" in follower.status().problem, "that it is away")
        server.put("pods", pod("b", "10.0.0.8", 60))
        server.start()
        wait_for(lambda: len(follower.texts("pod")) == 2, "the new pod")
        wait_for(lambda: follower.status() == SourceStatus("kubernetes k"), "that all is known")


def test_a_server_that_says_nothing_is_no_server_without_news(server: KubernetesServer, tmp_path: Path) -> None:
    with Follower(server, tmp_path) as follower:
        wait_for(lambda: len(follower.texts("pod")) == 1, "the pod")
        server.hangs = True
        wait_for(lambda: "does not answer" in follower.status().problem, "that it hangs")
        known = follower.collector.status().answered_at_ms
        time.sleep(1.5)
        assert follower.collector.status().answered_at_ms == known
        server.hangs = False
        wait_for(lambda: follower.status() == SourceStatus("kubernetes k"), "that all is known")


def test_a_missing_right_is_named_and_the_others_are_followed(server: KubernetesServer, tmp_path: Path) -> None:
    server.forbidden = {("list", "events"), ("watch", "nodes")}
    with Follower(server, tmp_path) as follower:
        wait_for(lambda: follower.status().partial.count("is missing") == 2, "two missing rights")
        partial = follower.status().partial
        assert "not followed: events (the right to list events is missing (403: events is forbidden:" in partial
        assert "not followed: nodes (the right to watch nodes is missing (403: nodes is forbidden:" in partial
        assert follower.status().problem == ""
        server.put("pods", pod("b", "10.0.0.8", 60))
        wait_for(lambda: len(follower.texts("pod")) == 2, "the new pod")
    [text] = follower.texts("pods_followed")
    assert "the right to list events is missing" in text


def test_without_the_right_to_list_pods_nothing_is_known(server: KubernetesServer, tmp_path: Path) -> None:
    server.forbidden = {("list", "pods")}
    follower = Follower(server, tmp_path)
    assert not follower.collector.observe_once()
    assert "refuses access (the right to list pods is missing (403" in follower.status().problem
    [row] = follower.written().rows("pods_followed")
    assert row["ended_at"] is None
    assert "not followed: pods (the right to list pods is missing" in row["text"]


def test_an_expired_token_is_read_again(server: KubernetesServer, tmp_path: Path) -> None:
    with Follower(server, tmp_path) as follower:
        wait_for(lambda: len(follower.texts("pod")) == 1, "the pod")
        server.token = "second-token"
        wait_for(lambda: "not accepted (401)" in follower.status().problem, "that it is refused")
        server.kubeconfig(tmp_path)
        wait_for(lambda: follower.status() == SourceStatus("kubernetes k"), "that the new token is used")


@pytest.mark.parametrize("seed", range(3))
def test_the_pods_of_a_random_history_are_the_right_ones(seed: int, tmp_path: Path) -> None:
    """Addresses are used again, watches break, versions are compacted away, the collector restarts."""
    chance = random.Random(seed)
    # Address and time in ms -> the pod that had it then, for certain.
    certain: list[tuple[str, int, str]] = []
    with kubernetes_server() as server:
        server.put("replicasets", replica_set())
        follower = Follower(server, tmp_path)
        follower.collector.start()
        present: dict[str, str] = {}
        for number in range(40):
            address = f"10.0.0.{chance.randint(1, 3)}"
            if address in present:
                server.delete("pods", present.pop(address))
            else:
                began = time.time() - T0 / 1_000
                found = pod(f"s{number}", address, began)
                found["status"]["conditions"] = []
                present[address] = f"s{number}"
                server.put("pods", found)
            how = chance.random()
            if how < 0.1:
                server.compact()
            elif how < 0.15:
                server.stop()
                time.sleep(0.2)
                server.start()
            elif how < 0.2:
                follower.collector.stop()
                follower = Follower(server, tmp_path)
                follower.collector.start()
            time.sleep(chance.uniform(0.0, 0.3))
            certain += [(host, int(time.time() * 1_000), f"orders-{uid}") for host, uid in present.items()]
        wait_for(lambda: follower.collector.status().state == "connected", "the end")
        time.sleep(1.5)
        follower.collector.stop()
    pods = follower.written().pods()
    named = [(pods.of({"address": host, "joined_at": at}), uid) for host, at, uid in certain]
    assert [(life["pod"], uid) for life, uid in named if life is not None and life["pod"] != uid] == []
    assert sum(life is not None for life, _ in named) > len(certain) / 3
