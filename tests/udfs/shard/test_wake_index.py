"""Which groups a topic or the time wakes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.model.errors import StateVersionError
from udfs.shard.wake_index import NEVER, WakeIndex, topic_hash

Group = tuple[int | None, list[str]]
GROUPS = st.tuples(st.none() | st.integers(0, 9), st.lists(st.sampled_from("tuvw"), unique=True))


def written(index: WakeIndex, numbers: list[int], groups: list[Group], inserted: list[int] | None = None) -> None:
    index.replace(
        np.asarray(inserted or [], dtype=np.int64),
        np.asarray(numbers, dtype=np.int64),
        [wake for wake, _ in groups],
        [[topic_hash(topic) for topic in topics] for _, topics in groups],
    )


def check(index: WakeIndex, groups: list[Group]) -> None:
    for clock in range(11):
        assert index.due(clock).tolist() == [wake is not None and wake < clock for wake, _ in groups]
    for topic in "tuvwx":
        assert index.subscribed([topic]).tolist() == [topic in topics for _, topics in groups]
    assert index.subscribed("tu").tolist() == [not {"t", "u"}.isdisjoint(topics) for _, topics in groups]
    for number, (wake, topics) in enumerate(groups):
        assert index.wake_of(number) == wake
        assert index.topics_of(number) == {topic_hash(topic) for topic in topics}


@given(st.lists(GROUPS, max_size=6), st.data())
def test_each_group_has_its_own_time_and_topics_through_writes_and_encodings(
    groups: list[Group], data: st.DataObject
) -> None:
    index = WakeIndex(len(groups))
    written(index, list(range(len(groups))), groups)
    check(index, groups)
    index = WakeIndex(len(groups), index.encode())
    check(index, groups)
    # Some are written anew, others come in between.
    inserted = sorted(data.draw(st.lists(st.integers(0, len(groups)), max_size=3)))
    after: list[Group | None] = list(groups)
    for place in reversed(inserted):
        after.insert(place, None)
    fresh = [number for number, group in enumerate(after) if group is None]
    again = [number for number in range(len(after)) if number in fresh or data.draw(st.booleans())]
    changed = [data.draw(GROUPS) for _ in again]
    written(index, again, changed, inserted)
    for number, group in zip(again, changed, strict=True):
        after[number] = group
    check(WakeIndex(len(after), index.encode()), [group for group in after if group is not None])


def test_a_group_of_which_nothing_was_written_is_never_due() -> None:
    index = WakeIndex(2)
    assert not index.due(NEVER).any()
    assert (index.wake_of(1), index.topics_of(1)) == (None, frozenset())


def test_a_topics_hash_is_the_same_in_every_process() -> None:
    # States hold it: BLAKE2b of 4 bytes.
    assert topic_hash("orders") == int.from_bytes(bytes.fromhex("f85164bc"), "little")


def test_topics_that_do_not_fit_their_groups_are_damage() -> None:
    index = WakeIndex(1)
    written(index, [0], [(5, ["t", "u"])])
    index.counts[0] = 1
    with pytest.raises(StateVersionError, match="topics do not match"):
        WakeIndex(1, index.encode())
    index.counts = np.asarray([3, -1])
    index.wake_at = np.asarray([5, 5])
    with pytest.raises(StateVersionError, match="topics do not match"):
        WakeIndex(2, index.encode())
