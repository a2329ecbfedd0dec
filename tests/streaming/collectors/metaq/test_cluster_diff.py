"""Reports of a cluster: everything once, nothing before it is in the log, and the clock after all of it."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.collectors.metaq import cluster_diff
from streaming.collectors.metaq.cluster_diff import MetaqClusterDiff, PendingEvents
from streaming.collectors.metaq.watch_queue import FiredWatches
from streaming.collectors.metaq.zk_reader import ZkReader
from tests.cluster_options import metaq_options
from tests.streaming.collectors.metaq.node_tree import NodeTree, group_of_two

EVERYTHING = FiredWatches(everything=True)


class Cluster:
    """Nodes in memory, and what is reported of them. The clocks of both machines agree."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **more: Any) -> None:
        self.tree = NodeTree()
        monkeypatch.setattr(cluster_diff, "now_ms", lambda: self.tree.now_ms)
        short = {"poll_interval_ms": 1_000, "progress_interval_ms": 1_000, "settle_ms": 500}
        self.options = metaq_options("zk", cluster="c", **(short | more))
        self.reader = ZkReader(self.tree, self.options, lambda _: None)
        self.differ = MetaqClusterDiff(self.options)
        self.events: list[Any] = []

    def keep(self, draft: PendingEvents) -> list[Any]:
        self.differ.keep(draft)
        self.events += draft.events
        return draft.events

    def read(self, fired: FiredWatches = EVERYTHING) -> list[Any]:
        return self.keep(self.differ.diff(self.reader, fired))

    def report_settled(self) -> list[Any]:
        return self.keep(self.differ.diff_again(self.reader))

    def round(self) -> list[Any]:
        return self.keep(self.differ.round(self.reader, self.tree.now_ms))

    def restart(self) -> None:
        self.differ = MetaqClusterDiff(self.options, self.differ.memory())


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster(monkeypatch)
    group_of_two(made.tree)
    return made


def kinds(events: list[Any]) -> list[str]:
    return [type(event).__name__ for event in events]


def changed(name: str, at: int) -> FiredWatches:
    return FiredWatches(groups={name: at})


def test_a_first_read_reports_everything_and_a_restart_nothing_again(cluster: Cluster) -> None:
    assert kinds(cluster.read()) == ["TopicQueues", "GroupSnapshot", "AssignmentReported", "AssignmentReported"]
    assert (cluster.differ.groups, cluster.differ.topics) == (1, 1)
    cluster.restart()
    assert cluster.read() == []
    assert (cluster.differ.groups, cluster.differ.topics) == (1, 1)


def test_events_missing_from_the_log_are_drafted_again(cluster: Cluster) -> None:
    first = cluster.differ.diff(cluster.reader, EVERYTHING)
    assert kinds(cluster.differ.diff(cluster.reader, EVERYTHING).events) == kinds(first.events)
    assert cluster.differ.groups == 0
    cluster.keep(first)
    assert cluster.read() == []


def test_only_what_was_noticed_is_read(cluster: Cluster) -> None:
    group_of_two(cluster.tree, "h")
    cluster.read()
    for group in "gh":
        cluster.tree.write(f"/meta/consumers/{group}/ids/{group}_c", b"t")
    events = cluster.read(changed("g", cluster.tree.now_ms))
    assert [(event.group, len(event.members)) for event in events] == [("g", 3)]
    assert events[0].event_time == cluster.tree.nodes["/meta/consumers/g/ids/g_c"].ctime


def test_groups_and_topics_that_come_and_go_are_noticed_in_the_lists(cluster: Cluster) -> None:
    cluster.read()
    group_of_two(cluster.tree, "new")
    cluster.tree.write("/meta/brokers/topics-sub/u/0-m", b'{"numParts":1}')
    cluster.tree.delete("/meta/consumers/g")
    events = cluster.read(FiredWatches(lists=cluster.tree.now_ms))
    assert sorted({(type(event).__name__, getattr(event, "group", None)) for event in events}, key=str) == [
        ("AssignmentReported", "new"),
        ("GroupDeleted", "g"),
        ("GroupSnapshot", "new"),
        ("TopicQueues", None),
    ]
    assert (cluster.differ.groups, cluster.differ.topics) == (1, 2)


def test_a_group_that_keeps_changing_is_left_to_its_next_watch(cluster: Cluster) -> None:
    def change_always(path: str) -> None:
        if path.endswith("/ids/g_b") and path in cluster.tree.nodes:
            cluster.tree.delete(path)
        elif path.endswith("/g/ids"):
            cluster.tree.write(f"{path}/g_b", b"t")

    cluster.tree.on_request = change_always
    draft = cluster.differ.diff(cluster.reader, EVERYTHING)
    assert draft.unread == ["g"]
    cluster.tree.on_request = lambda _: None
    assert cluster.differ.diff(cluster.reader, EVERYTHING).unread == []


def test_strategies_are_inferred_once_a_state_has_lasted(cluster: Cluster) -> None:
    cluster.read()
    assert cluster.differ.is_waiting
    assert cluster.report_settled() == []
    cluster.tree.now_ms += 500
    assert kinds(cluster.report_settled()) == ["GroupSettings", "AssignmentReported", "AssignmentReported"]
    assert not cluster.differ.is_waiting
    assert cluster.report_settled() == []


def test_a_change_of_a_topic_unsettles_its_subscribers(cluster: Cluster) -> None:
    cluster.read()
    cluster.tree.now_ms += 500
    cluster.report_settled()
    cluster.tree.write("/meta/brokers/topics-sub/t/0-m", b'{"numParts":3}')
    cluster.read(FiredWatches(topics={"t": cluster.tree.now_ms}))
    assert cluster.differ.is_waiting


def test_no_clock_passes_a_doubt_and_none_decreases(cluster: Cluster) -> None:
    cluster.read()
    first = cluster.round()[-1].event_time
    assert first == cluster.tree.now_ms
    cluster.tree.delete("/meta/brokers/topics-sub/t")
    doubted = cluster.tree.now_ms
    cluster.read(FiredWatches(topics={"t": doubted}))
    cluster.tree.now_ms += 400
    assert cluster.round()[-1].event_time == doubted - 1
    cluster.tree.now_ms += 100
    (event,) = [event for event in cluster.report_settled() if type(event).__name__ == "TopicQueues"]
    assert (event.event_time, event.queue_count) == (doubted, 0)
    assert cluster.round()[-1].event_time == cluster.tree.now_ms
    cluster.tree.now_ms -= 10_000
    assert cluster.round()[-1].event_time == cluster.tree.now_ms + 10_000


def test_offsets_of_groups_are_read_one_part_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, progress_interval_ms=3_000)
    for group in "abcdef":
        group_of_two(cluster.tree, group)
    cluster.read()

    def read_of() -> list[str]:
        cluster.tree.requests.clear()
        cluster.round()
        return sorted({path.split("/")[3] for path in cluster.tree.requests})

    assert [read_of() for _ in range(4)] == [["a", "b"], ["c", "d"], ["e", "f"], ["a", "b"]]


def test_an_offset_that_moves_is_progress(cluster: Cluster) -> None:
    cluster.read()
    first, clock = cluster.round()
    assert not any(queue.moved for queue in first.queues)
    assert first.event_time <= clock.event_time
    assert kinds(cluster.round()) == ["Clock"]
    cluster.tree.write("/meta/consumers/g/offsets/t/0-1", b"18-150")
    progress, clock = cluster.round()
    assert [(queue.queue_id, queue.offset, queue.moved) for queue in progress.queues] == [(1, 150, True)]
    assert progress.event_time <= clock.event_time


def test_an_unreadable_node_is_a_violation_once(cluster: Cluster) -> None:
    cluster.tree.write("/meta/consumers/g/ids/g_c", b"\xff")
    cluster.tree.write("/meta/brokers/topics-sub/t/broker", b"{}")
    draft = cluster.differ.diff(cluster.reader, EVERYTHING)
    assert [violation.path for violation in cluster.differ.new_violations(draft)] == [
        "/brokers/topics-sub/t/broker",
        "/consumers/g/ids/g_c",
    ]
    cluster.keep(draft)
    cluster.tree.write("/meta/consumers/g/ids/g_d", b"\xff")
    draft = cluster.differ.diff(cluster.reader, EVERYTHING)
    assert [violation.path for violation in cluster.differ.new_violations(draft)] == ["/consumers/g/ids/g_d"]


def test_a_clock_of_zookeeper_that_is_behind_is_learned_from_new_nodes(cluster: Cluster) -> None:
    cluster.read()
    ahead = 60_000
    cluster.tree.now_ms += ahead  # of the collector's machine; nodes keep the times of the servers
    read_at = cluster.tree.now_ms
    cluster.read(changed("g", read_at))
    cluster.tree.write("/meta/consumers/g/ids/g_c", b"t")
    cluster.tree.nodes["/meta/consumers/g/ids/g_c"].ctime -= ahead
    cluster.read(changed("g", cluster.tree.now_ms))
    assert cluster.round()[-1].event_time == pytest.approx(cluster.tree.now_ms - ahead, abs=50)
