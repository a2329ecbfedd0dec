"""A kind of finding is widespread by the share and number of groups, until few have it for a while."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.settings.model import Widespread, load
from streaming.views.reader import Reader
from streaming.views.widespread import WidespreadKind, widespread_kinds
from tests.streaming.tables.journals import T0
from tests.streaming.views.many_groups import Troubled, names, write_groups

MINUTE = 60_000


def settings(**values: object) -> Widespread:
    return load(overrides={f"widespread.{name}": value for name, value in values.items()}).widespread


def found(root: Path, at: int = MINUTE, cluster: str | None = None, **values: object) -> list[tuple[str, int, int]]:
    many = widespread_kinds(Reader(root), settings(**values), T0 + at, cluster=cluster)
    assert {spread.cluster for spread in many} <= {"c1"}
    return [(spread.kind, spread.groups, spread.of_groups) for spread in many]


@pytest.mark.parametrize(
    ("groups", "flapping", "is_widespread"),
    [(20, 6, False), (20, 7, True), (10, 3, False), (9, 3, True), (3, 3, True), (4, 2, False), (2, 2, False)],
)
def test_more_than_the_share_of_the_groups_and_no_fewer_than_the_least_number(
    tmp_path: Path, groups: int, flapping: int, is_widespread: bool
) -> None:
    write_groups(tmp_path, groups, Troubled(names(1, flapping)))
    assert found(tmp_path) == ([("flapping", flapping, groups)] if is_widespread else [])


def test_the_settings_name_the_kinds_the_share_and_the_least_number(tmp_path: Path) -> None:
    write_groups(tmp_path, 10, Troubled(names(1, 5)), Troubled(names(1, 10), "queue_unassigned", severity="critical"))
    assert found(tmp_path) == [("flapping", 5, 10)]
    assert found(tmp_path, kinds=["queue_unassigned"]) == [("queue_unassigned", 10, 10)]
    assert found(tmp_path, kinds=[]) == []
    assert found(tmp_path, share=0.5) == []
    assert found(tmp_path, share=0.49) == [("flapping", 5, 10)]
    assert found(tmp_path, min_groups=6) == []


def test_groups_without_members_and_findings_of_the_cluster_itself_do_not_count(tmp_path: Path) -> None:
    write_groups(tmp_path, 8, Troubled([*names(1, 3), None]), empty=50)
    assert found(tmp_path) == [("flapping", 3, 8)]


def test_it_is_over_when_few_groups_are_left_for_the_span(tmp_path: Path) -> None:
    calm = 10 * MINUTE
    write_groups(tmp_path, 10, Troubled(names(1, 8), until=calm), Troubled(names(9, 9)))
    assert found(tmp_path, -1) == []
    assert found(tmp_path, 0) == [("flapping", 9, 10)]
    assert found(tmp_path, calm + 120_000 - 1) == [("flapping", 9, 10)]
    assert found(tmp_path, calm + 120_000) == []
    assert found(tmp_path, calm, span_ms=0) == []


def test_each_cluster_is_one_of_its_own(tmp_path: Path) -> None:
    write_groups(tmp_path, 4, Troubled(names(1, 4)))
    assert found(tmp_path, cluster="c2") == []
    assert found(tmp_path, cluster="c1") == [("flapping", 4, 4)]


def test_it_has_findings_of_its_groups_only() -> None:
    spread = WidespreadKind("c1", "flapping", 4, 5)
    assert spread.text == "flapping in 4 of 5 groups of c1"
    finding = {"cluster": "c1", "kind": "flapping", "group_id": "g"}
    assert spread.has(finding)
    assert not any(spread.has(finding | other) for other in ({"cluster": "c"}, {"kind": "k"}, {"group_id": None}))
