"""How a coordinator chooses the strategy of a classic group."""

from typing import NamedTuple

import pytest

from udfs.model.errors import StrategyError
from udfs.strategies.kafka.vote import vote, vote_of


def test_three_members_elect_range_by_two_to_one() -> None:
    c1, c2, c3 = ["range", "roundrobin", "custom"], ["range", "roundrobin", "sticky"], ["roundrobin", "range", "sticky"]
    assert vote([c1, c2, c3], "4.x") == "range"
    assert vote([c3, c2, c1], "1.0") == "range"


def test_range_wins_a_tie_with_round_robin_in_both_orders() -> None:
    # Seen live on a broker of 1.0.2.
    assert vote([["range", "roundrobin"], ["roundrobin", "range"]], "1.0") == "range"
    assert vote([["roundrobin", "range"], ["range", "roundrobin"]], "4.x") == "range"


def test_a_tie_between_range_and_sticky_depends_on_the_coordinators_version() -> None:
    lists = [["range", "sticky"], ["sticky", "range"]]
    assert (vote(lists, "1.0"), vote(lists, "4.x")) == ("range", "sticky")


@pytest.mark.parametrize(
    ("lists", "code"),
    [([], "no_members"), ([["range"], ["sticky"]], "no_common_strategy"), ([[]], "no_common_strategy")],
)
def test_a_vote_without_a_winner_is_an_error_with_a_reason(lists: list[list[str]], code: str) -> None:
    with pytest.raises(StrategyError) as failed:
        vote(lists, "4.x")
    assert failed.value.code == code


def test_an_order_of_ties_that_no_coordinator_has_is_an_error_even_without_members() -> None:
    with pytest.raises(StrategyError) as failed:
        vote([], "2.x")
    assert failed.value.code == "unknown_tie_order"
    assert "4.x, 1.0, not '2.x'" in failed.value.message


class Member(NamedTuple):
    member_id: str
    strategies: tuple[str, ...] | None


def test_members_vote_in_the_order_of_the_coordinators_map_and_not_in_that_of_their_joining() -> None:
    # "Aa" and "BB" share a slot of a HashMap: there the first to be voted for wins a tie.
    members = [Member("2", ("BB", "Aa")), Member("1", ("Aa", "BB"))]
    assert vote([("BB", "Aa"), ("Aa", "BB")], "4.x") == "BB"
    assert vote_of(members, "4.x") == vote_of(members[::-1], "4.x") == "Aa"


def test_a_member_without_a_list_supports_nothing() -> None:
    with pytest.raises(StrategyError) as failed:
        vote_of([Member("1", ("range",)), Member("2", None)], "4.x")
    assert failed.value.code == "no_common_strategy"


@pytest.mark.parametrize("tie_order", ["1.0", "4.x"])
def test_members_with_one_list_elect_its_first_whatever_their_ids(tie_order: str) -> None:
    assert vote_of([Member(str(number), ("sticky", "range")) for number in range(20)], tie_order) == "sticky"


def test_an_order_of_ties_that_no_coordinator_has_is_an_error_though_all_lists_are_one() -> None:
    with pytest.raises(StrategyError) as failed:
        vote_of([Member("1", ("range",)), Member("2", ("range",))], "2.x")
    assert failed.value.code == "unknown_tie_order"
