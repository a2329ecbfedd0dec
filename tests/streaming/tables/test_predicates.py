"""Row filters as SQL: values go in as they are, long lists as bounds."""

from __future__ import annotations

from streaming.tables.journal_entries import RowFilter
from streaming.tables.predicates import LISTED, literal_time, one_of, predicate_of


def test_quotes_are_doubled_and_values_sorted() -> None:
    assert one_of("c", ["it's", "a"]) == "c IN ('a', 'it''s')"


def test_nothing_is_one_of_no_values() -> None:
    assert one_of("c", []) == "false"


def test_many_values_become_bounds() -> None:
    many = [f"g{number:04d}" for number in range(LISTED + 1)]
    assert one_of("c", many) == f"c BETWEEN 'g0000' AND 'g{LISTED:04d}'"
    assert one_of("c", many[:-1]).startswith("c IN (")


def test_times_keep_their_milliseconds() -> None:
    assert "'2026-01-01T00:00:00.007Z'" in literal_time(1_767_225_600_007)


def test_every_test_must_hold() -> None:
    wanted = RowFilter({"cluster": ["c"]}, {"minute": (0, 1)}, ends="valid_to")
    sql = predicate_of(wanted) or ""
    assert sql.startswith("`cluster` IN ('c') AND `minute` BETWEEN ")
    assert sql.endswith(" AND (`valid_to` IS NULL)")
    assert " OR `valid_to` >= " in (predicate_of(wanted._replace(ended_since=5)) or "")
    assert predicate_of(RowFilter({})) is None
