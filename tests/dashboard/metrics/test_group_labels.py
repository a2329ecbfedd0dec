"""Labels: short, plain, distinct, and not more than the settings allow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from dashboard.metrics.group_labels import LONGEST, GroupLabels, label
from streaming.settings.model import Metrics, load


def metrics(**values: object) -> Metrics:
    return load(overrides={f"metrics.{name}": value for name, value in values.items()}).metrics


@given(some.lists(some.text(alphabet=some.characters() | some.sampled_from("#0a\n\x1b"), max_size=200), unique=True))
def test_different_names_have_different_labels_that_are_short_and_printable(names: list[str]) -> None:
    labels = [label(name) for name in names]
    assert len(set(labels)) == len(names)
    assert all(len(text) <= LONGEST and text.isprintable() for text in labels)


def test_a_name_that_differs_only_behind_the_cut_or_imitates_a_label_stays_apart() -> None:
    long = ["x" * 10_000, "x" * 10_000 + "y", label("x" * 10_000), "a\n", "a\\n", label("a\n")]
    assert len({label(name) for name in long}) == len(long)


def test_the_groups_that_were_decided_first_have_labels() -> None:
    groups = [("c", "b"), ("c", "a"), ("d", "a"), ("c", "z")]
    labels = GroupLabels(groups, [cluster for cluster, _ in groups], metrics(max_groups=2))
    found = [labels.of(*key) for key in groups]
    assert found == [("c", "b"), ("c", "a"), ("d", "other"), ("c", "other")]
    # A newer group changes no other one's label.
    newer = GroupLabels([*groups, ("a", "a")], ["c", "d", "a"], metrics(max_groups=2))
    assert [newer.of(*key) for key in groups] == found


def test_only_groups_that_match_have_labels() -> None:
    groups = [("c", "orders"), ("c", "orders-test"), ("c", "payments"), ("c", "pay\n")]
    labels = GroupLabels(groups, ["c"], metrics(groups=["orders", "pay.*"]))
    assert [labels.of(*key)[1] for key in groups] == ["orders", "other", "payments", label("pay\n")]


def test_clusters_are_bounded_and_a_clusters_own_rows_have_no_group() -> None:
    labels = GroupLabels([("c", "g"), ("d", "g")], ["c", "d"], metrics(max_clusters=1))
    assert labels.of("c", "g") == ("c", "g")
    assert labels.of("d", "g") == ("other", "other")
    assert labels.of("c", None) == ("c", "")
    assert labels.of("d", None) == ("other", "")
