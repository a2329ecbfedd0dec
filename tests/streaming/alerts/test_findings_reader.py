"""What alerts read: open findings by the version of their table, and what is widespread by the time."""

from __future__ import annotations

from pathlib import Path

from streaming.alerts.findings_reader import FindingsReader
from streaming.views.widespread import WidespreadKind
from tests.streaming.alerts.planted import widespread
from tests.streaming.tables.journals import T0
from tests.streaming.views.many_groups import Troubled, names, write_groups

MINUTE = 60_000


def test_it_follows_the_versions_of_the_table(tables: Path) -> None:
    reader = FindingsReader(tables, widespread(), lambda: T0)
    found = reader.read({"f1", "gone"})
    assert (list(found.current), dict(found.closed), found.missing) == (["f1"], {}, {"gone"})
    assert found.widespread == ()
    assert reader.read(set()).current is found.current


def test_what_is_widespread_ends_with_time_alone(tmp_path: Path) -> None:
    write_groups(tmp_path, 10, Troubled(names(1, 8), until=MINUTE), Troubled(names(9, 9)))
    times = iter((T0 + MINUTE, T0 + MINUTE + widespread().span_ms))
    reader = FindingsReader(tmp_path, widespread(), lambda: next(times))
    found = [reader.read(set()) for _ in range(2)]
    assert [list(one.current) for one in found] == [["flapping-1-g9"]] * 2
    assert [one.widespread for one in found] == [(WidespreadKind("c1", "flapping", 9, 10),), ()]


def test_costs_are_those_of_the_rebalances_before_a_finding(tables: Path) -> None:
    reader = FindingsReader(tables, widespread(), lambda: T0)
    (finding,) = reader.read(set()).current.values()
    assert reader.costs([finding])["f1"].rebalances == 3
