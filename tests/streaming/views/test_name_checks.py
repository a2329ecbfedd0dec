"""Names that the tables do not know are errors that say what was meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.tables.errors import AmbiguousError, NotFoundError
from streaming.views.name_checks import (
    member_named,
    one_group,
    require_kind,
    require_present,
    require_queue,
    require_topic,
)
from streaming.views.reader import Reader
from tests.streaming.views.story import rebalance, store


def test_known_names_are_accepted(tables: Path) -> None:
    reader = Reader(tables)
    for scope in ((None, None), ("c1", None), (None, "orders"), ("c2", "twin")):
        require_present(reader, *scope)
    require_topic(reader, "orders")
    require_queue(reader, "orders", 1)
    require_queue(reader, "events", 5, broker="broker-a")  # shared by message
    require_kind(reader, "expected_differs")
    require_kind(reader, "a_kind_of_a_source")
    assert member_named(reader, "a") == "a"


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (lambda reader: require_present(reader, "c9", None), "there is no cluster c9; there are c1, c2"),
        (lambda reader: require_present(reader, None, "x"), "there is no group x"),
        (lambda reader: require_present(reader, None, "order"), "there is no group order; did you mean orders?"),
        (lambda reader: require_present(reader, "c2", "orders"), "there is no group orders in cluster c2"),
        (lambda reader: one_group(reader, "ordres"), "there is no group ordres; did you mean orders?"),
        (lambda reader: require_topic(reader, "Orders"), "there is no topic Orders; did you mean orders?"),
        (lambda reader: require_queue(reader, "orders", 2), "topic orders has no queue 2; its queues are 0 to 1"),
        (lambda reader: require_queue(reader, "events", 0, broker="broker-b"), "did you mean broker-a?"),
        (lambda reader: require_queue(reader, "orders", 0, broker="b"), "its queues have no brokers"),
        (lambda reader: require_kind(reader, "flaping"), "there is no kind flaping; did you mean flapping?"),
        (lambda reader: member_named(reader, "zz"), "there is no member zz"),
    ],
)
def test_unknown_names_are_reported_with_suggestions(
    check: Callable[[Reader], object], sentence: str, tables: Path
) -> None:
    with pytest.raises(NotFoundError, match=re.escape(sentence) + "$"):
        check(Reader(tables))


def test_a_group_of_several_clusters_or_a_short_id_needs_more(tables: Path) -> None:
    with pytest.raises(AmbiguousError, match="group twin is in several clusters: c1, c2; name one with --cluster"):
        one_group(Reader(tables), "twin")
    with pytest.raises(AmbiguousError, match="members have an id that begins with "):
        member_named(Reader(tables), "")


def test_a_group_that_is_only_in_its_history_is_found(tmp_path: Path) -> None:
    store(tmp_path, [rebalance("aa11", 0, "group_created", None)])
    require_present(Reader(tmp_path), "c1", "orders")
