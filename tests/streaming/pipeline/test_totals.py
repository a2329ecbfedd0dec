"""Totals that are updated with each commit equal those that a count of the tables gives."""

from __future__ import annotations

import random
from pathlib import Path

from streaming.pipeline.totals import ClusterTotal, Totals
from streaming.tables import arrow_rows, schema
from streaming.tables.materializer import Materializer
from tests.streaming.tables.journals import Journal, joined, stable
from tests.streaming.tables.test_materializer import content, some_changes, write
from udfs.model import journal


class Following:
    """A listener of the tables, as the job has one."""

    def __init__(self) -> None:
        self.totals = Totals()
        self.begun = 0

    def begin(self, root: Path) -> None:
        self.begun += 1
        self.totals.count(root)

    def followed(self, changes: int, of: int) -> None: ...

    def replaced(self, *commit: object) -> None:
        self.totals.replaced(*commit)  # type: ignore[arg-type]


def counted(root: Path) -> Totals:
    totals = Totals()
    totals.count(root)
    return totals


def a_finding(number: int) -> journal.FindingOpened:
    return journal.FindingOpened(
        finding_id=f"f{number}", finding="idle", severity="info", message="m", advice="a", evidence=[], opened_at=number
    )


def test_numbers_kept_up_are_those_of_the_tables_after_every_commit(tmp_path: Path) -> None:
    following = Following()
    materializer = Materializer(tmp_path, 0, following)
    chance, history = random.Random(5), Journal()
    for batch in range(40):
        cluster, group = chance.choice("ab"), f"g{chance.randrange(5)}"
        number = chance.randrange(6)
        bodies: list[journal.Body] = [
            journal.GroupRemoved()
            if chance.random() < 0.3
            else journal.GroupChanged(system="kafka", state="stable", members=chance.randrange(4)),
            a_finding(number) if chance.random() < 0.5 else journal.FindingClosed(finding_id=f"f{number}", closed_at=9),
        ]
        write(tmp_path, [history.change(batch, body, group, cluster) for body in bodies], batch)
        materializer.run()
        totals = following.totals
        assert totals.clusters == counted(tmp_path).clusters
        assert totals.open_findings == counted(tmp_path).open_findings
        rows = content(tmp_path, "groups")
        assert totals.clusters == {
            name: ClusterTotal("kafka", len(of), sum(row["members"] for row in of))
            for name in sorted({row["cluster"] for row in rows})
            if (of := [row for row in rows if row["cluster"] == name])
        }
        assert totals.open_findings == sum(row["closed_at"] is None for row in content(tmp_path, "findings"))
    assert following.totals.clusters


def test_a_process_overtaken_by_another_counts_anew(tmp_path: Path) -> None:
    following, history = Following(), Journal()
    first, second = Materializer(tmp_path, 0, following), Materializer(tmp_path, 0)
    write(tmp_path, [history.change(0, stable(1))], 0)
    first.run()
    write(tmp_path, [history.change(1, stable(5)), history.change(1, joined("a", 1))], 1)
    second.run()
    write(tmp_path, [history.change(2, stable(7), group="g2")], 2)
    first.run()
    assert following.begun
    assert following.totals.clusters == counted(tmp_path).clusters == {"c1": ClusterTotal("kafka", 2, 12)}


def test_tables_that_are_not_there_yet_count_as_empty(tmp_path: Path) -> None:
    write(tmp_path, some_changes()[:1], 0)
    assert counted(tmp_path).clusters == {}
    assert counted(tmp_path).open_findings == 0


def test_rows_of_other_tables_change_nothing() -> None:
    totals = Totals()
    rows = arrow_rows.to_arrow(schema.TOPICS, [{"cluster": "a", "topic": "t", "queue_count": 3, "valid_from": 0}])
    totals.replaced(schema.TOPICS, rows.slice(0, 0), rows)
    assert (totals.clusters, totals.open_findings) == ({}, 0)
