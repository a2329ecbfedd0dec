"""What happened on a Kubernetes cluster follows from its objects; the pod named for an address is the right one."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from streaming.collectors.kubernetes.objects import RESOURCES
from streaming.collectors.kubernetes.platform_history import PlatformHistory
from tests.core_config import core_config
from tests.streaming.collectors.kubernetes.objects import (
    Object,
    deployment,
    ended,
    ms,
    node,
    pod,
    replica_set,
    running,
    stopped,
    unhealthy,
)
from tests.streaming.collectors.kubernetes.written import Written
from udfs.ingest.parser import parse
from udfs.model.annotations import Annotation

CONFIG = core_config()
BY_NAME = {resource.name: resource for resource in RESOURCES}
OF_42 = "(deployment orders, revision 42, node worker-3)"


class Cluster:
    """A history, with what it has written."""

    def __init__(self, memory: bytes | None = None, written: Written | None = None) -> None:
        self.history = PlatformHistory("k", None, memory)
        self.written = written or Written()

    def list(self, resource: str, objects: list[Object], second: float) -> list[str]:
        """Return the texts that follow from a list."""
        read = [msgspec.convert(found, BY_NAME[resource].read_as) for found in objects]
        return self._texts(self.history.listed(BY_NAME[resource], read, ms(second)))

    def change(self, resource: str, found: Object, second: float) -> list[str]:
        """Return the texts that follow from a change."""
        of = BY_NAME[resource]
        return self._texts(self.history.changed(of, msgspec.convert(found, of.read_as), ms(second)))

    def delete(self, resource: str, found: Object, second: float) -> list[str]:
        """Return the texts that follow from a deletion."""
        of = BY_NAME[resource]
        return self._texts(self.history.deleted(of, msgspec.convert(found, of.read_as), ms(second)))

    def _texts(self, annotations: list[Annotation]) -> list[str]:
        self.written.take(annotations)
        for annotation in annotations:
            line = msgspec.json.encode(annotation)
            assert parse(line, ms(0), CONFIG) == annotation
        return [annotation.text for annotation in annotations]


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster()
    found.list("replicasets", [replica_set()], 0)
    found.list("pods", [], 0)
    found.change("pods", pod("a", "10.0.0.7", 10), 11)
    return found


def test_the_life_of_a_pod_names_its_address_workload_revision_node_and_image(cluster: Cluster) -> None:
    [life] = cluster.written.rows("pod")
    assert life == {
        "annotation_id": "a/pod/10.0.0.7",
        "hosts": ("10.0.0.7", "orders-a"),
        "began_at": ms(10) + 999,
        "ended_at": None,
        "text": f"pod orders-a {OF_42} has the address 10.0.0.7",
        "platform": "k",
        "pod": "orders-a",
        "namespace": "shop",
        "workload": "deployment orders",
        "revision": "42",
        "node": "worker-3",
        "image": "shop/orders:2.4.1",
    }


def test_a_container_that_was_killed_for_its_memory_is_named_once(cluster: Cluster) -> None:
    again = pod("a", "10.0.0.7", 10, containers=[running(52, 1, ended(50))])
    text = f"pod orders-a {OF_42} was OOMKilled (container app, exit code 137)"
    assert cluster.change("pods", again, 51) == [text]
    assert cluster.change("pods", again, 52) == []
    [row] = cluster.written.rows("container_ended")
    assert (row["began_at"], row["ended_at"], row["hosts"]) == (ms(50), ms(50), ("10.0.0.7", "orders-a"))


DISRUPTION = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "2026-03-01T02:00:40Z"}


@pytest.mark.parametrize(
    ("changed", "kind", "text"),
    [
        (
            pod("a", "10.0.0.7", 10, conditions=[{**DISRUPTION, "reason": "PreemptionByScheduler"}]),
            "pod_preempted",
            "was preempted by a pod of higher priority",
        ),
        (
            pod("a", "10.0.0.7", 10, conditions=[{**DISRUPTION, "reason": "EvictionByEvictionAPI"}]),
            "pod_evicted",
            "was evicted through the API",
        ),
        (
            pod("a", "10.0.0.7", 10, phase="Failed", reason="Evicted", message="The node was low on memory"),
            "pod_evicted",
            "was evicted by its node: The node was low on memory",
        ),
    ],
)
def test_why_a_pod_departs_is_written_once(cluster: Cluster, changed: Object, kind: str, text: str) -> None:
    said = cluster.change("pods", changed, 41)
    assert f"pod orders-a {OF_42} {text}" in said
    later = cluster.delete("pods", changed, 60)
    assert [found for found in later if "has the address" not in found] == []
    assert len(cluster.written.rows(kind)) == 1


def test_a_pod_that_is_deleted_loses_its_address_when_its_last_container_ends(cluster: Cluster) -> None:
    asked = pod("a", "10.0.0.7", 10, containers=[stopped(45, 143, "Error")])
    asked["metadata"] |= {"deletionTimestamp": "2026-03-01T02:01:10Z", "deletionGracePeriodSeconds": 30}
    said = cluster.delete("pods", asked, 47)
    assert said == [
        f"pod orders-a {OF_42} was asked to stop, because it was deleted",
        f"pod orders-a {OF_42} has the address 10.0.0.7",
    ]
    assert cluster.written.rows("pod")[0]["ended_at"] == ms(45)
    assert cluster.written.rows("pod_deleted")[0]["began_at"] == ms(40)


def test_a_pod_that_vanished_unwatched_has_its_address_until_it_was_known_last(cluster: Cluster) -> None:
    assert cluster.list("pods", [], 90) == [
        f"pod orders-a {OF_42} has the address 10.0.0.7",
        f"pod orders-a {OF_42} was deleted while nobody watched",
    ]
    assert cluster.written.rows("pod")[0]["ended_at"] == ms(11)
    [gone] = cluster.written.rows("pod_deleted")
    assert (gone["began_at"], gone["ended_at"]) == (ms(11), ms(90))


def test_a_pod_on_the_network_of_its_node_has_no_address_of_its_own(cluster: Cluster) -> None:
    cluster.change("pods", pod("n", "192.168.0.3", 20, spec={"hostNetwork": True}), 21)
    assert cluster.written.rows("pod")[1]["hosts"] == ("orders-n",)


def test_a_failed_probe_is_one_annotation_however_often_it_fails(cluster: Cluster) -> None:
    text = "failed a probe{}: Liveness probe failed: HTTP probe failed with statuscode: 500"
    assert cluster.change("events", unhealthy("e", "a", 30, 30, 1), 30) == [f"pod orders-a {OF_42} {text.format('')}"]
    many = unhealthy("e", "a", 30, 50, 3)
    assert cluster.change("events", many, 50) == [f"pod orders-a {OF_42} {text.format(' 3 times')}"]
    assert cluster.list("events", [many], 60) == []
    assert cluster.change("events", unhealthy("f", "unknown", 30, 50, 3), 61) == []
    [row] = cluster.written.rows("probe_failed")
    assert (row["began_at"], row["ended_at"]) == (ms(30), ms(50))


def test_a_node_that_is_cordoned_is_drained_once_a_pod_is_evicted_from_it(cluster: Cluster) -> None:
    assert cluster.list("nodes", [node()], 20) == []
    assert cluster.change("nodes", node(cordoned=30), 31) == ["node worker-3 was cordoned"]
    evicted = pod("a", "10.0.0.7", 10, conditions=[{**DISRUPTION, "reason": "EvictionByEvictionAPI"}])
    assert cluster.change("pods", evicted, 41)[-1] == "node worker-3 was cordoned and drained"
    assert cluster.change("nodes", node(), 70) == ["node worker-3 was cordoned and drained; that is over"]
    [row] = cluster.written.rows("drain")
    assert (row["began_at"], row["ended_at"], row["hosts"]) == (ms(30), ms(70), ("10.0.0.7",))


def test_a_rollout_begins_and_ends_and_a_scaling_says_from_what_to_what(cluster: Cluster) -> None:
    assert cluster.list("deployments", [deployment(3, "42", 1)], 20) == []
    assert cluster.change("deployments", deployment(5, "42", 2), 30) == ["deployment orders was scaled from 3 to 5"]
    text = "deployment orders {} revision 43, after revision 42"
    assert cluster.change("deployments", deployment(5, "43", 3, 4), 40) == [text.format("began")]
    assert cluster.change("deployments", deployment(5, "43", 3), 55) == [text.format("rolled out")]
    assert cluster.change("deployments", deployment(5, "43", 3), 56) == []
    [row] = cluster.written.rows("deploy")
    assert (row["began_at"], row["ended_at"], row["hosts"]) == (ms(40), ms(55), ("10.0.0.7",))


def test_a_pod_is_written_again_once_its_replica_set_is_known() -> None:
    cluster = Cluster()
    cluster.list("pods", [pod("a", "10.0.0.7", 10)], 11)
    assert cluster.written.rows("pod")[0]["workload"] == "replicaset orders-7d9f"
    cluster.change("replicasets", replica_set(), 12)
    [life] = cluster.written.rows("pod")
    assert (life["workload"], life["revision"]) == ("deployment orders", "42")


def test_a_stateful_set_and_a_daemon_set_have_their_revision_in_labels() -> None:
    cluster = Cluster()
    of_set = ("StatefulSet", "orders", "s")
    cluster.change("pods", pod("a", "10.0.0.7", 1, owner=of_set, labels={"controller-revision-hash": "orders-5d8"}), 2)
    labels = {"controller-revision-hash": "77", "pod-template-generation": "4"}
    cluster.change("pods", pod("b", "10.0.0.8", 1, owner=("DaemonSet", "agent", "x"), labels=labels), 2)
    cluster.change("pods", pod("c", "10.0.0.9", 1, owner=None), 2)
    found = [(row["workload"], row["revision"]) for row in cluster.written.rows("pod")]
    assert found == [("statefulset orders", "5d8"), ("daemonset agent", "4"), (None, None)]


def test_until_when_pods_are_known_is_one_row(cluster: Cluster) -> None:
    [never] = Cluster().history.followed("not followed: pods (403)", ms(0), has_pods=False)
    assert (never.from_, never.to) == (None, None)
    assert never.text == "the pods of kubernetes cluster k are not known; not followed: pods (403)"
    cluster.written.take(cluster.history.followed("not followed: events (403)", ms(80)))
    [row] = cluster.written.rows("pods_followed")
    assert (row["began_at"], row["ended_at"]) == (ms(0), ms(11))
    assert row["text"] == "the pods of kubernetes cluster k are known; not followed: events (403)"
    [lost] = cluster.history.followed("not followed: pods (403)", ms(90), has_pods=False)
    assert lost.text == "the pods of kubernetes cluster k are no longer known; not followed: pods (403)"
    assert lost.to == ms(11)


# -- random histories -------------------------------------------------------------------------------------------------


class Truth:
    """A cluster of three addresses, and which pod had each of them in every second."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.pods: dict[str, Object] = {}
        self.freed: dict[str, int] = {}
        self.owner: dict[tuple[str, int], str] = {}
        self.made = 0

    def step(self, second: int) -> list[tuple[str, Object]]:
        """Return the changes of one second."""
        changes: list[tuple[str, Object]] = []
        for uid, found in list(self.pods.items()):
            roll = self.chance.random()
            if roll < 0.08:
                hows = ["deleted at once", "ended first", "ended", "restarted"]
                # What has ended for good can only be deleted.
                how = "deleted at once" if uid in self.freed else self.chance.choice(hows)
                if how == "restarted":
                    found = self._copy(found, containers=[running(second, 1, ended(second))])
                    self.pods[uid] = found
                    changes.append(("MODIFIED", found))
                    continue
                if how != "deleted at once":
                    found = self._copy(found, containers=[stopped(second)], phase="Failed")
                    self.freed[uid] = second
                    self.pods[uid] = found
                    changes.append(("MODIFIED", found))
                if how != "ended":
                    self.freed.setdefault(uid, second)
                    del self.pods[uid]
                    changes.append(("DELETED", found))
        taken = {found["status"]["podIP"] for uid, found in self.pods.items() if uid not in self.freed}
        for address in ("10.0.0.1", "10.0.0.2", "10.0.0.3"):
            if address not in taken and self.chance.random() < 0.3:
                self.made += 1
                uid = f"p{self.made}"
                self.pods[uid] = pod(uid, address, second)
                changes.append(("ADDED", self.pods[uid]))
        for uid, found in self.pods.items():
            if uid not in self.freed:
                self.owner[found["status"]["podIP"], second] = f"orders-{uid}"
        return changes

    def _copy(self, found: Object, *, containers: list[Object], phase: str = "Running") -> Object:
        status = found["status"] | {"containerStatuses": containers, "phase": phase}
        return {**found, "status": status}


def named_wrongly(seed: int) -> list[Any]:
    """Return where a random history names another pod than the one that had an address, and how much it names."""
    chance = random.Random(seed)
    truth, cluster = Truth(chance), Cluster()
    cluster.list("replicasets", [replica_set()], 0)
    cluster.list("pods", [], 0)
    kept: bytes | None = None
    away, last = 0, chance.randint(60, 120)
    for second in range(1, last + 1):
        changes = truth.step(second)
        if away:
            away -= 1
            if not away:
                # A new process, or the same one: after 410 Gone, or with or without the memory of the last.
                how = chance.choice(["gone", "restarted", "killed", "memory lost"])
                if how == "restarted":
                    cluster = Cluster(cluster.history.memory(), cluster.written)
                if how == "killed":
                    cluster = Cluster(kept, cluster.written)
                if how == "memory lost":
                    cluster = Cluster(None, cluster.written)
                    cluster.list("replicasets", [replica_set()], second)
                cluster.list("pods", list(truth.pods.values()), second)
        elif chance.random() < 0.05:
            away = chance.randint(1, 15)
        else:
            for kind, found in changes:
                for _ in range(chance.choice([1, 1, 1, 2])):
                    if kind == "DELETED":
                        cluster.delete("pods", found, second)
                        break
                    cluster.change("pods", found, second)
            cluster.history.confirmed(BY_NAME["pods"], ms(second))
        if chance.random() < 0.2:
            cluster.written.take(cluster.history.followed("", ms(second)))
            kept = cluster.history.memory()
    cluster.written.take(cluster.history.followed("", ms(last)))
    return cluster.written.compare(truth.owner, last, ms)


def test_the_pod_named_for_an_address_is_the_right_one() -> None:
    named = unnamed = 0
    for seed in range(1_000):
        wrong, right, unknown = named_wrongly(seed)
        assert wrong == [], f"seed {seed}"
        named, unnamed = named + right, unnamed + unknown
    # Most of the times without a name are those at which nobody watched.
    assert named > 3 * unnamed
