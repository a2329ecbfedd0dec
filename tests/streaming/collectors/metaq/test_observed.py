"""One read of a group and of a topic: the owners of partitions, and how much has changed."""

from __future__ import annotations

from streaming.collectors.metaq.observed import (
    Folder,
    ZkGroup,
    ZkMember,
    ZkOwner,
    ZkOwners,
    ZkShare,
    ZkTopic,
    changes_between,
)

MEMBER = ZkMember(("t",), 1, 2, 3)


def owner(name: str) -> ZkOwner:
    return ZkOwner(name, 5, 6)


def test_partitions_belong_to_registered_members_only() -> None:
    topics = {
        "u": ZkOwners(Folder(), {"0-1": owner("a"), "0-0": owner("b")}),
        "t": ZkOwners(Folder(), {"0-0": owner("departed"), "0-1": owner("a")}),
    }
    group = ZkGroup(Folder(), {"b": MEMBER, "a": MEMBER, "idle": MEMBER}, topics)
    assert [(topic, name, held_by.member_id) for topic, name, held_by in group.owned()] == [
        ("t", "0-1", "a"),
        ("u", "0-0", "b"),
        ("u", "0-1", "a"),
    ]
    held = group.held()
    assert list(held) == ["a", "b", "idle"]
    assert [list(of_member) for of_member in held.values()] == [[("t", "0-1"), ("u", "0-1")], [("u", "0-0")], []]


def test_a_slave_has_the_partitions_of_its_master_and_they_count_once() -> None:
    shares = {"1-m": ZkShare("1", 1, 0), "0-m": ZkShare("0", 1, 0), "0-s1": ZkShare("0", 2, 0)}
    assert ZkTopic(Folder(), shares).queues() == (("0", 0), ("0", 1), ("1", 0))
    assert ZkTopic(Folder(), {}).queues() == ()


def test_the_count_of_changes_continues_where_the_servers_number_wraps() -> None:
    assert changes_between(Folder(cversion=3), Folder(cversion=5)) == 2
    assert changes_between(Folder(cversion=2**31 - 1), Folder(cversion=-(2**31) + 1)) == 2
    assert changes_between(Folder(cversion=5), Folder(cversion=5)) == 0
