"""The collector beside a real MetaQ cluster and real consumers; the core reads what it wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.job.commands import ManyRuns
from tests.kit.metaq import MetaqCluster, metaq_cluster
from tests.kit.metaq_members import MetaqMember, partitions_of, wait_until, wait_until_shared
from tests.kit.processes import wait_until as wait_for
from tests.live.job import CLUSTER, RunningJob, job_that_follows
from tests.live.metaq_story import QUICK, Story, collecting, details
from tests.live.pages import live_pages

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]
StartMember = Callable[..., MetaqMember]
# Session timeout of members that must not expire, even on a busy machine.
STEADY = {"session_timeout_ms": 20_000}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetaqCluster]:
    """Start a cluster for tests that do not change it."""
    with metaq_cluster(tmp_path_factory.mktemp("metaq"), {"orders": 5, "bills": 4, "many-orders": 12}) as cluster:
        yield cluster


def test_members_that_join_stop_crash_and_hang(
    cluster: MetaqCluster, new_metaq_member: StartMember, tmp_path: Path
) -> None:
    with collecting(cluster, tmp_path / "events") as collected:
        story, orders = Story("life", collected), partitions_of("orders", 5)
        a = new_metaq_member(cluster, "life", ["orders"], consumer_id="a", **STEADY)
        story.record("the first joins", [a], orders, ("group_created", None), ("member_joined", "life_a"))
        b = new_metaq_member(cluster, "life", ["orders"], consumer_id="b", **STEADY)
        story.record("a second joins", [a, b], orders, ("member_joined", "life_b"))
        b.stop()
        story.record("it stops", [a], orders, ("member_left", "life_b"))
        c = new_metaq_member(cluster, "life", ["orders"], consumer_id="c")
        story.record("a third joins", [a, c], orders, ("member_joined", "life_c"))
        c.kill()
        story.record("it is killed", [a], orders, ("session_expired", "life_c"))
        d = new_metaq_member(cluster, "life", ["orders"], consumer_id="d")
        story.record("a fourth joins", [a, d], orders, ("member_joined", "life_d"))
        d.freeze()
        story.record("it hangs", [a], orders, ("session_expired", "life_d"))
        d.thaw()
        story.record("it goes on", [a, d], orders, ("member_joined", "life_d"))
        d.stop()
        a.stop()
        story.record("all stop", [], [], ("member_left", "life_a"), ("member_left", "life_d"))
        collected.stop()
    run = story.check()
    assert all("inferred" in detail for detail in details(run, "life", "session_expired"))
    assert all("inferred" in detail for detail in details(run, "life", "member_left"))


def test_consistent_hashing_is_found_out_and_members_subscribe_as_they_like(
    cluster: MetaqCluster, new_metaq_member: StartMember, tmp_path: Path
) -> None:
    with collecting(cluster, tmp_path / "events") as collected:
        story, orders, bills = Story("ring", collected), partitions_of("many-orders", 12), partitions_of("bills", 4)
        a = new_metaq_member(cluster, "ring", ["many-orders"], consumer_id="a", strategy="CONSIST", **STEADY)
        story.record("the first joins", [a], orders, ("group_created", None), ("member_joined", "ring_a"))
        b = new_metaq_member(cluster, "ring", ["bills", "many-orders"], consumer_id="b", strategy="CONSIST")
        joined = [("member_joined", "ring_b"), ("strategy_changed", None)]
        story.record("a second joins that subscribes to more", [a, b], orders + bills, *joined)
        c = new_metaq_member(cluster, "ring", ["bills"], consumer_id="c", strategy="CONSIST", **STEADY)
        story.record(
            "a third joins that subscribes to something else", [a, b, c], orders + bills, ("member_joined", "ring_c")
        )
        b.kill()
        story.record("the second is killed", [a, c], orders + bills, ("session_expired", "ring_b"))
        collected.stop()
    run = story.check()
    assert all("inferred" in detail for detail in details(run, "ring", "strategy_changed"))


def test_queues_come_and_go_with_settings_and_brokers(new_metaq_member: StartMember, tmp_path: Path) -> None:
    with metaq_cluster(tmp_path, {"orders": 5}) as cluster, collecting(cluster, tmp_path / "events") as collected:
        story = Story("queues", collected)
        changed = ("queue_count_changed", "orders")
        a = new_metaq_member(cluster, "queues", ["orders"], consumer_id="a", **STEADY)
        story.record(
            "one joins", [a], partitions_of("orders", 5), ("group_created", None), ("member_joined", "queues_a")
        )
        b = new_metaq_member(cluster, "queues", ["orders"], consumer_id="b", **STEADY)
        story.record("another joins", [a, b], partitions_of("orders", 5), ("member_joined", "queues_b"))
        cluster.broker.set_topics({"orders": 7})
        story.record("growth", [a, b], partitions_of("orders", 7), changed)
        cluster.broker.set_topics({"orders": 3})
        story.record("shrinkage", [a, b], partitions_of("orders", 3), changed)
        with cluster.add_broker({"orders": 2}) as second:
            both = partitions_of("orders", 3) + partitions_of("orders", 2, broker=1)
            story.record("a second broker", [a, b], both, changed)
            second.kill()
            story.record("it is killed", [a, b], partitions_of("orders", 3), changed)
        cluster.broker.stop()
        story.record("the broker stops", [a, b], [], changed)
        cluster.broker.start()
        story.record("it starts again", [a, b], partitions_of("orders", 3), changed)
        collected.stop()
    story.check()


def test_zookeeper_comes_back_and_nothing_happened(new_metaq_member: StartMember, tmp_path: Path) -> None:
    with metaq_cluster(tmp_path, {"orders": 5}) as cluster, collecting(cluster, tmp_path / "events") as collected:
        story, orders = Story("calm", collected), partitions_of("orders", 5)
        a = new_metaq_member(cluster, "calm", ["orders"], consumer_id="a", **STEADY)
        b = new_metaq_member(cluster, "calm", ["orders"], consumer_id="b", **STEADY)
        wait_until([a, b], lambda: a.has_started and b.has_started)
        story.record("both join", [a, b], orders, *_created("calm_a", "calm_b"))
        connected = cluster.zookeeper.connections()
        for end in (cluster.zookeeper.stop, cluster.zookeeper.kill):
            end()
            cluster.zookeeper.start()
            # A client that loses its second server before it has connected to the first one may wait for its whole
            # session.
            wait_for(lambda: cluster.zookeeper.connections() >= connected, "all clients are connected again")
            story.record("ZooKeeper was away", [a, b], orders)
        b.stop()
        story.record("one stops", [a], orders, ("member_left", "calm_b"))
        collected.stop()
    story.check()


def test_a_collector_that_is_killed_continues_and_reports_what_happened_meanwhile(
    cluster: MetaqCluster, new_metaq_member: StartMember, tmp_path: Path
) -> None:
    with collecting(cluster, tmp_path / "events") as collected:
        story, orders = Story("watched", collected), partitions_of("orders", 5)
        a = new_metaq_member(cluster, "watched", ["orders"], consumer_id="a", **STEADY)
        story.record("one joins", [a], orders, ("group_created", None), ("member_joined", "watched_a"))
        collected.kill()
        collected.start()
        story.record("nothing happens", [a], orders)
        collected.kill()
        b = new_metaq_member(cluster, "watched", ["orders"], consumer_id="b")
        wait_until([a, b], lambda: b.has_started and len(a.held) == 3)
        collected.start()
        story.record("another joins meanwhile", [a, b], orders, ("member_joined", "watched_b"))
        collected.kill()
        b.kill()
        wait_until([a], lambda: len(a.held) == 5)
        collected.start()
        story.record("it is killed meanwhile", [a], orders, ("member_gone", "watched_b"))
        collected.stop()
    story.check()


@pytest.mark.spark
@pytest.mark.timeout(1_200)
def test_the_job_and_an_open_page_follow_a_cluster_and_continue_after_a_stop(
    new_metaq_member: StartMember, runs: ManyRuns, tmp_path: Path
) -> None:
    with metaq_cluster(tmp_path, {"orders": 5}) as cluster:
        with _following(runs, cluster, tmp_path / "job") as job:
            a = new_metaq_member(cluster, "tables", ["orders"], consumer_id="a", **STEADY)
            job.wait_for_generation("tables", 1)
            b = new_metaq_member(cluster, "tables", ["orders"], consumer_id="b")
            wait_until_shared([a, b], partitions_of("orders", 5))
            job.wait_for(lambda: _holds(job) == {"tables_a": 3, "tables_b": 2}, "what both hold")
            assert job.stop() == 0
        b.kill()
        wait_until_shared([a], partitions_of("orders", 5))
        with _following(runs, cluster, tmp_path / "job") as job:
            job.wait_for_generation("tables", 3)
            with live_pages(job.tables, CLUSTER, "tables") as pages:
                job.wait_for(lambda: _holds(job) == {"tables_a": 5}, "what one holds")
                pages.wait_until_shown({"tables_a"})
                pages.every_page()
            assert job.stop() == 0
        rows = [job.generations("tables")[number] for number in (1, 2, 3)]
        assert sorted(job.generations("tables")) == [1, 2, 3]
        assert [row["trigger"] for row in rows] == ["group_created", "member_joined", "member_gone"]
        assert job.rows("rejected_events") == []


def _following(runs: ManyRuns, cluster: MetaqCluster, folder: Path) -> AbstractContextManager[RunningJob]:
    return job_that_follows(runs, ["--metaq", cluster.zookeeper.address], folder, settings=QUICK)


def _holds(job: RunningJob) -> dict[str, int]:
    """Return how many queues each member holds, if its reports are as they should be."""
    now = [row for row in job.rows("assignments") if row["valid_to"] is None]
    by_origin = [
        Counter(row["member_id"] for row in now if row["origin"] == origin) for origin in ("computed", "reported")
    ]
    return dict(by_origin[0]) if by_origin[0] == by_origin[1] else {}


def _created(*members: str) -> list[tuple[str, str | None]]:
    return [("group_created", None), *(("member_joined", member) for member in members)]
