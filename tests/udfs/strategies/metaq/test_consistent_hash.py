"""MetaQ's ring of hashes."""

from tests.udfs.strategies.groups import as_text, group
from udfs.strategies.registry import strategy


def test_the_ring_gives_the_recorded_owners() -> None:
    # Seen on a live ZooKeeper.
    problem = group({"GroupC_idA": ["t"], "GroupC_idB": ["t"]}, {"t": 12}, broker="0")
    held = strategy("consistent-hash", "metaq")(problem)["GroupC_idB"]
    assert sorted(queue.queue_id for queue in held) == [0, 2, 3, 4, 11]


def test_only_subscribers_are_on_the_ring_of_a_topic() -> None:
    alone = strategy("consistent-hash", "metaq")(group({"a": ["t"], "b": ["u"]}, {"t": 12, "u": 2}, broker="0"))
    assert as_text(alone) == {
        "a": "t-0 t-1 t-10 t-11 t-2 t-3 t-4 t-5 t-6 t-7 t-8 t-9",
        "b": "u-0 u-1",
    }


def test_when_one_leaves_only_its_partitions_move() -> None:
    members = {f"GroupC_id{letter}": ["t"] for letter in "ABC"}
    before = strategy("consistent-hash", "metaq")(group(members, {"t": 60}, broker="0"))
    left = before.pop("GroupC_idB")
    del members["GroupC_idB"]
    after = strategy("consistent-hash", "metaq")(group(members, {"t": 60}, broker="0"))
    assert left
    assert {queue for member in before for queue in set(after[member]) - set(before[member])} == set(left)
