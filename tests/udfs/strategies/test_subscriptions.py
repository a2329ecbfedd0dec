"""Subscribers of each topic: shared lists, repetitions, unknown topics."""

from hypothesis import given
from hypothesis import strategies as st

from tests.udfs.strategies.groups import group, queue
from udfs.strategies.subscriptions import distinct_queues, kinds_of, subscribers_by_topic, topics_with_queues

_TOPICS = st.lists(st.sampled_from("tuvw"), max_size=5)


@given(st.lists(_TOPICS, max_size=8))
def test_each_topic_has_its_subscribers_in_their_order_once_each(lists: list[list[str]]) -> None:
    members = group({f"m{place}": names for place, names in enumerate(lists)}, {}).members
    assert subscribers_by_topic(members) == {
        topic: [place for place, names in enumerate(lists) if topic in names] for names in lists for topic in names
    }


@given(st.lists(_TOPICS, max_size=8))
def test_equal_lists_are_one_kind_whether_or_not_they_are_one_object(lists: list[list[str]]) -> None:
    members = group({f"m{place}": names for place, names in enumerate(lists)}, {}).members
    kinds, places = kinds_of(members)
    assert [list(kinds[place]) for place in places] == lists
    assert len(set(kinds)) == len(kinds)
    assert set(places) == set(range(len(kinds)))


def test_topics_with_the_same_subscribers_share_one_list() -> None:
    found = subscribers_by_topic(group({"a": ["t", "u"], "b": ["t", "u", "v"], "c": ["u", "t"]}, {}).members)
    assert found["t"] is found["u"]
    assert found["t"] is not found["v"]


def test_unknown_and_empty_topics_are_left_out_and_the_others_come_by_name() -> None:
    problem = group({}, {"v": 1, "t": 2, "empty": 0, "other": 1})
    assert [topic.name for topic in topics_with_queues(problem, ["v", "missing", "empty", "t"])] == ["t", "v"]


def test_queues_are_kept_once_at_their_first_place() -> None:
    queues = [queue(text) for text in ("t-1", "t-0", "t-1", "u-1", "t-0")]
    assert distinct_queues(queues) == [queue(text) for text in ("t-1", "t-0", "u-1")]
