"""Reading nodes: many at a time, unchanged parts not again, a watch at each."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.collectors.metaq.zk_reader import Offset, ZkReader
from tests.cluster_options import metaq_options
from tests.streaming.collectors.metaq.node_tree import NodeTree, group_of_two


@pytest.fixture
def tree() -> NodeTree:
    return NodeTree()


def reader(tree: NodeTree, fired: list[str] | None = None, **more: Any) -> ZkReader:
    notices = [] if fired is None else fired
    return ZkReader(tree, metaq_options("zk", cluster="c", **more), lambda event: notices.append(event.path))


def test_no_more_requests_wait_at_a_time_than_is_allowed() -> None:
    class Counting:
        """Returns when it is waited for, and counts what waits."""

        def __init__(self) -> None:
            self.waiting = self.most = 0

        def get_async(self, path: str, watch: object) -> Counting:
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            return self

        def get(self, timeout: float) -> tuple[bytes, object]:
            self.waiting -= 1
            return b"", object()

    client = Counting()
    reader = ZkReader(client, metaq_options("zk", cluster="c", requests_in_flight=16), print)
    assert len(reader._request(("unwatched", f"/{number}") for number in range(1_000))) == 1_000
    assert client.most == 16


def test_a_group_is_read_with_its_transactions_and_unchanged_parts_are_not_read_again(tree: NodeTree) -> None:
    group_of_two(tree)
    reading = reader(tree)
    first = reading.read_groups({"g": None})["g"]
    assert first is not None
    assert {name: member.subscriptions for name, member in first.members.items()} == {"g_a": ("t",), "g_b": ("t",)}
    assert {key: owner.member_id for key, owner in first.topics["t"].owners.items()} == {"0-0": "g_a", "0-1": "g_b"}
    assert first.members["g_a"].czxid < first.members["g_b"].czxid
    tree.requests.clear()
    assert reading.read_groups({"g": first})["g"] == first
    assert sorted(tree.requests) == [f"/meta/consumers/g/{name}" for name in ("ids", "owners", "owners/t")]
    tree.write("/meta/consumers/g/ids/g_c", b"t")
    tree.requests.clear()
    second = reading.read_groups({"g": first})["g"]
    assert second is not None
    assert [path for path in tree.requests if "/ids/" in path] == ["/meta/consumers/g/ids/g_c"]
    assert sorted(second.members) == ["g_a", "g_b", "g_c"]


def test_a_node_deleted_and_made_again_between_two_reads_is_read_again(tree: NodeTree) -> None:
    group_of_two(tree)
    reading = reader(tree)
    first = reading.read_groups({"g": None})["g"]
    tree.delete("/meta/consumers/g/owners/t/0-1")
    tree.write("/meta/consumers/g/owners/t/0-1", b"g_a")
    second = reading.read_groups({"g": first})["g"]
    assert second is not None
    assert second.topics["t"].owners["0-1"].member_id == "g_a"


def test_a_member_that_was_written_again_is_read_when_it_is_named(tree: NodeTree) -> None:
    group_of_two(tree)
    reading = reader(tree)
    first = reading.read_groups({"g": None})["g"]
    tree.write("/meta/consumers/g/ids/g_b", b"t,u")
    unnamed, named = (reading.read_groups({"g": first}, described=names)["g"] for names in ((), {"g"}))
    assert unnamed is not None
    assert named is not None
    assert (unnamed.members["g_b"].subscriptions, named.members["g_b"].subscriptions) == (("t",), ("t", "u"))


def test_a_group_that_changes_while_it_is_read_has_no_reading(tree: NodeTree) -> None:
    group_of_two(tree)
    group_of_two(tree, "other")

    def delete_between(path: str) -> None:
        if path.endswith("/g/ids/g_b"):
            tree.on_request = lambda _: None
            tree.delete(path)

    tree.on_request = delete_between
    found = reader(tree).read_groups({"g": None, "other": None})
    assert found["g"] is None
    assert found["other"] is not None


def test_every_change_of_what_was_read_is_noticed_once(tree: NodeTree) -> None:
    group_of_two(tree)
    fired: list[str] = []
    reading = reader(tree, fired)
    reading.read_groups({"g": None})
    reading.read_topics(reading.topics())
    reading.groups()
    tree.delete("/meta/consumers/g/owners/t/0-0")
    tree.write("/meta/consumers/g/ids/g_c", b"t")
    tree.write("/meta/consumers/g/ids/g_a", b"u")
    tree.write("/meta/brokers/topics-sub/t/1-m", b"{}")
    tree.write("/meta/consumers/new")
    assert fired == [
        "/meta/consumers/g/owners/t",
        "/meta/consumers/g/ids",
        "/meta/consumers/g/ids/g_a",
        "/meta/brokers/topics-sub/t",
        "/meta/consumers",
    ]


def test_the_making_of_what_is_not_there_is_noticed(tree: NodeTree) -> None:
    fired: list[str] = []
    reading = reader(tree, fired)
    assert (reading.groups(), reading.topics(), reading.read_groups({"g": None})["g"] is not None) == ([], [], True)
    tree.write("/meta/consumers/g/ids/g_a", b"t")
    assert fired == ["/meta/consumers", "/meta/consumers/g/ids"]


def test_old_brokers_are_read_until_one_of_the_current_kind_appears(tree: NodeTree) -> None:
    tree.write("/meta/brokers/topics/t/0-m", b"3")
    tree.write("/meta/brokers/topics/t/1", b"2")
    reading = reader(tree)
    assert (reading.topics(), reading.is_old) == (["t"], True)
    topic = reading.read_topics(["t", "absent"])
    assert topic["absent"] is None
    assert topic["t"] is not None
    assert topic["t"].queues() == (("0", 0), ("0", 1), ("0", 2), ("1", 0), ("1", 1))
    group_of_two(tree)
    assert (reading.topics(), reading.is_old) == (["t"], False)
    topic = reading.read_topics(["t"])
    assert topic["t"] is not None
    assert topic["t"].queues() == (("0", 0), ("0", 1))


def test_nodes_that_cannot_be_read_are_violations_and_hide_nothing_else(tree: NodeTree) -> None:
    group_of_two(tree)
    tree.write("/meta/consumers/g/ids/g_c", b"\xff")
    tree.write("/meta/consumers/g/owners/t/zero", b"g_a")
    tree.write("/meta/brokers/topics-sub/t/broker", b"{}")
    reading = reader(tree)
    first = reading.read_groups({"g": None})["g"]
    assert first is not None
    assert [(violation.path, violation.reason) for violation in first.violations] == [
        ("/consumers/g/ids/g_c", "not_utf8"),
        ("/consumers/g/owners/t/zero", "not_a_partition"),
    ]
    assert first.members["g_c"].subscriptions == ()
    assert sorted(first.topics["t"].owners) == ["0-0", "0-1"]
    again = reading.read_groups({"g": first})["g"]
    assert again is not None
    assert "/consumers/g/ids/g_c" in [violation.path for violation in again.violations]
    topic = reading.read_topics(["t"])["t"]
    assert topic is not None
    assert ([violation.path for violation in topic.violations], len(topic.queues())) == (
        ["/brokers/topics-sub/t/broker"],
        2,
    )


def test_offsets_are_read_without_watches_and_other_nodes_left_out(tree: NodeTree) -> None:
    group_of_two(tree)
    tree.write("/meta/consumers/g/offsets/t/zero", b"1")
    tree.write("/meta/consumers/g/offsets/t/0-9", b"much")
    tree.write("/meta/consumers/g/offsets/u/0-0", b"5")
    tree.write("/meta/consumers/bare")
    fired: list[str] = []
    found = reader(tree, fired, exclude_topics=("u",)).read_offsets(["g", "bare", "absent"])
    times = [tree.nodes[f"/meta/consumers/g/offsets/t/0-{number}"].mtime for number in (0, 1)]
    assert found == {
        "g": [Offset("t", "0-0", 100, times[0]), Offset("t", "0-1", 100, times[1])],
        "bare": [],
        "absent": [],
    }
    tree.write("/meta/consumers/g/offsets/t/0-0", b"200")
    assert fired == []


def test_unfollowed_groups_and_topics_are_not_read(tree: NodeTree) -> None:
    for group in ("wanted", "other"):
        group_of_two(tree, group)
    tree.write("/meta/consumers/wanted/ids/wanted_a", b"t,u")
    reading = reader(tree, include_groups=("want.*",), exclude_topics=("t",))
    assert (reading.groups(), reading.topics()) == (["wanted"], [])
    found = reading.read_groups({"wanted": None})["wanted"]
    assert found is not None
    assert (found.members["wanted_a"].subscriptions, found.topics) == (("u",), {})
