"""The order of Scala's maps, on which votes of Kafka 1.0 depend."""

import pytest

from udfs.jvm.scala_maps import group_by_order, mutable_map_order

STRATEGIES = ["sticky", "roundrobin", "range", "cooperative-sticky"]


def test_up_to_four_groups_keep_the_order_of_the_map_that_collected_them() -> None:
    # From the last slot of a table of sixteen to the first.
    assert mutable_map_order(STRATEGIES) == group_by_order(STRATEGIES)
    assert group_by_order(STRATEGIES) == group_by_order(STRATEGIES[::-1])
    # Seen live on a broker of 1.0.2: range wins the ties against both others.
    assert group_by_order(["roundrobin", "range"]) == ["range", "roundrobin"]
    assert group_by_order(["sticky", "range"]) == ["range", "sticky"]


def test_from_the_fifth_on_groups_are_a_tree_of_five_bits_a_level() -> None:
    five = [*STRATEGIES, "custom"]
    assert sorted(group_by_order(five)) == sorted(five)
    assert group_by_order(five) != mutable_map_order(five)
    assert group_by_order(five) == group_by_order(five[::-1])


@pytest.mark.parametrize("order", [group_by_order, mutable_map_order])
def test_a_text_that_comes_again_counts_once(order) -> None:
    assert order(["b", "a", "b"]) == order(["b", "a"])
    assert order([]) == []


def test_texts_of_one_hash_are_a_chain_that_takes_new_ones_at_its_head() -> None:
    # "Aa" and "BB" have one hash code.
    assert mutable_map_order(["Aa", "BB"]) == ["BB", "Aa"]
    assert mutable_map_order(["BB", "Aa"]) == ["Aa", "BB"]


def test_a_table_that_doubles_reverses_its_chains() -> None:
    # The thirteenth of sixteen slots doubles the table: the chain is read from its head into the larger one.
    others = [f"k{number}" for number in range(10)]
    before, after = ["Aa", "BB", *others], ["Aa", "BB", *others, "one more"]
    places = [order.index("BB") < order.index("Aa") for order in map(mutable_map_order, (before, after))]
    assert places == [True, False]
