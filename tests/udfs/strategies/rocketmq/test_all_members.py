"""How RocketMQ's clients ask: what one without an id does to the group."""

import pytest

from tests.udfs.strategies.groups import as_text, group
from udfs.model.errors import StrategyError
from udfs.strategies.registry import names, strategy

# The class of CONFIG answers without a look at what it is asked.
_CHECKED = [name for name in names() if name.startswith("rocketmq.") and name != "rocketmq.CONFIG"]
_SETTINGS = {"rooms": ["r"], "machines": ["r"], "member_rooms": {"": "r", "a": "r"}}


@pytest.mark.parametrize("name", _CHECKED)
def test_a_client_without_an_id_fails_where_it_allocates(name: str) -> None:
    problem = group({"": ["t"], "a": ["t"]}, {"t": 2}, broker="r@b", settings=_SETTINGS)
    with pytest.raises(StrategyError) as failed:
        strategy(name, "rocketmq")(problem)
    assert (failed.value.code, failed.value.message) == ("illegal_argument", "a client has an empty id")


@pytest.mark.parametrize("name", _CHECKED)
def test_a_client_without_an_id_and_without_topics_disturbs_no_other(name: str) -> None:
    problem = group({"": ["empty", "missing"], "a": []}, {"t": 2, "empty": 0}, broker="r@b", settings=_SETTINGS)
    assert as_text(strategy(name, "rocketmq")(problem)) == {"": "", "a": ""}


def test_the_slice_of_a_client_without_an_id_that_does_not_subscribe_has_no_owner() -> None:
    problem = group({"": [], "a": ["t"]}, {"t": 2})
    assert as_text(strategy("AVG", "rocketmq")(problem)) == {"": "", "a": "t-1"}


def test_a_non_subscribers_slice_has_no_owner() -> None:
    answer = strategy("AVG", "rocketmq")(group({"a": ["t"], "b": ["u"], "c": ["t"]}, {"t": 6}))
    assert as_text(answer) == {"a": "t-0 t-1", "b": "", "c": "t-4 t-5"}


def test_two_connections_of_one_id_take_the_same_slice_and_the_second_has_no_owner() -> None:
    answer = strategy("AVG", "rocketmq")(group({"a": ["t"], "a#2": ["t"], "b": ["t"]}, {"t": 6}))
    assert as_text(answer) == {"a": "t-0 t-1", "a#2": "t-0 t-1", "b": "t-4 t-5"}
