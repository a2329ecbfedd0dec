"""Kinds of changes, and the rows that the changes of some groups may touch."""

from __future__ import annotations

import json
from typing import get_args

import msgspec

from streaming.tables.journal_entries import Entry, RowFilter, kinds_of, of_groups
from streaming.tables.predicates import matching, predicate_of
from tests.streaming.tables.journals import assigned, joined, stable
from udfs.model import journal


def test_kinds_are_those_under_which_changes_are_written() -> None:
    bodies = [assigned(0, "a", 0), joined("a", 0), stable(1), journal.GroupRemoved()]
    written = {json.loads(msgspec.json.encode(body))["kind"] for body in bodies}
    assert kinds_of(*map(type, bodies)) == written
    assert kinds_of() == frozenset()


def test_every_body_has_a_kind_of_its_own() -> None:
    bodies = get_args(journal.Body)
    assert len(kinds_of(*bodies)) == len(bodies)
    assert kinds_of(journal.MemberOpened) != kinds_of(journal.MemberChanged)


def test_groups_are_listed_once_and_sorted_across_clusters() -> None:
    entries = [
        Entry(cluster, group_id, 0, None)
        for cluster, group_id in (("c2", "b"), ("c1", "b"), ("c2", "a"), ("c2", "b"), ("c3", None))
    ]
    assert of_groups(entries) == {"cluster": ["c1", "c2", "c3"], "group_id": ["a", "b"]}
    assert of_groups(entries[-1:]) == {"cluster": ["c3"], "group_id": []}
    assert of_groups([]) == {"cluster": [], "group_id": []}


def test_a_filter_of_groups_alone_tests_nothing_else() -> None:
    wanted = RowFilter(of_groups([Entry("c", "g", 0, None)]))
    assert predicate_of(wanted) == "`cluster` IN ('c') AND `group_id` IN ('g')"
    assert (wanted.between, wanted.ends, wanted.ended_since) == ({}, None, None)
    assert not matching(wanted).equals(matching(wanted._replace(ends="valid_to")))
