"""Tables follow the journal exactly once, in time, and wherever a crash comes."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from streaming.settings.locations import Location
from streaming.tables import materializer
from streaming.tables.arrow_rows import from_arrow, to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.errors import TableError
from streaming.tables.journal_entries import Entry, RowFilter
from streaming.tables.journal_piece import JournalPiece
from streaming.tables.journal_progress import JournalProgress, to_mark
from streaming.tables.materializer import Materializer
from streaming.tables.projections import PROJECTIONS, Projection
from streaming.tables.replay_tables import EVERY_TABLE
from streaming.tables.schema import CHANGES, QUEUE_PROGRESS, REBALANCES, REJECTED_EVENTS, TABLES, Row
from streaming.tables.writer import Mark
from tests.streaming.tables.journals import T0, Journal, a_history, assigned, joined, released, rows, stable
from udfs.model import journal
from udfs.model.spans import SpansWithdrawn

FOLLOWING = [projection.table.name for projection in PROJECTIONS]


def write(root: Path, changes: Sequence[journal.Change], batch: int) -> None:
    DeltaRsTable(root, CHANGES).append(to_arrow(CHANGES, rows(changes, batch)), Mark("job", batch))


def shorten_log(root: Path) -> None:
    """Leave of the journal's log what its newest checkpoint needs."""
    DeltaTable(str(root / "changes")).create_checkpoint()
    *old, _ = sorted((root / "changes" / "_delta_log").glob("*.json"))
    for file in old:
        file.unlink()


def content(root: Path, name: str) -> list[Row]:
    table = EVERY_TABLE[name]
    found = from_arrow(table, DeltaTable(str(root / name)).to_pyarrow_table())
    return sorted(found, key=lambda row: [str(row[column]) for column in table.names])


def contents(root: Path) -> dict[str, list[Row]]:
    return {name: content(root, name) for name in FOLLOWING}


def some_changes(seed: int = 7) -> list[journal.Change]:
    """The change concerns every table that follows the journal."""
    history = Journal()
    topic = journal.TopicChanged(
        topic="orders", queue_count=1, queues=[{"broker": None, "queue_id": 0, "racks": ["r1"]}], valid_from=T0
    )
    finding = journal.FindingOpened(
        finding_id="f1",
        finding="source_silent",
        severity="warning",
        message="m",
        advice="a",
        evidence=["e"],
        opened_at=T0,
    )
    return [
        history.change(0, topic, group=None, subject="orders"),
        history.change(0, finding, group=None),
        *a_history(random.Random(seed), 60),
    ]


def in_batches(root: Path, changes: Sequence[journal.Change], ends: Sequence[int]) -> None:
    begin = 0
    for batch, end in enumerate([*ends, len(changes)]):
        if changes[begin:end]:
            write(root, changes[begin:end], batch)
        begin = end


def test_spans_that_are_over_are_split_and_withdrawn_in_a_later_piece_too(tmp_path: Path) -> None:
    replaced = journal.MemberReplaced(former_member_id="a", member_id="a2", instance_id="i", replaced_at=T0 + 7)
    history = Journal()
    changes = [
        history.change(at, body)
        for at, body in (
            (0, assigned(0, "a", 0)),
            (5, released(0, "a", 5)),
            (5, assigned(0, "b", 5)),
            (5, assigned(1, "a", 5)),
            (7, replaced),
            (5, SpansWithdrawn(since=T0 + 5)),
            (5, assigned(2, "a", 5)),
            (7, replaced),
        )
    ]
    in_batches(tmp_path / "whole", changes, [])
    Materializer(tmp_path / "whole", 0).run()
    following = Materializer(tmp_path / "pieces", 0)
    for batch, change in enumerate(changes):
        write(tmp_path / "pieces", [change], batch)
        following.run()

    found = content(tmp_path / "pieces", "assignments")
    assert found == content(tmp_path / "whole", "assignments")
    assert [
        (row["queue_id"], row["member_id"], row["valid_from"] - T0, row["valid_to"] and row["valid_to"] - T0)
        for row in found
    ] == [
        (0, "a", 0, 7),
        (0, "a2", 7, None),
        (2, "a", 5, 7),
        (2, "a2", 7, None),
    ]


def test_tables_do_not_depend_on_how_the_journal_came(tmp_path: Path) -> None:
    changes = some_changes()
    in_batches(tmp_path / "whole", changes, [])
    Materializer(tmp_path / "whole", 0).run()
    following = Materializer(tmp_path / "pieces", 0)
    for batch, begin in enumerate(range(0, len(changes), 7)):
        write(tmp_path / "pieces", changes[begin : begin + 7], batch)
        following.notice()
    whole = contents(tmp_path / "whole")
    assert all(whole.values())
    assert contents(tmp_path / "pieces") == whole


def test_taking_groups_in_shares_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = some_changes()
    in_batches(tmp_path / "whole", changes, [20])
    Materializer(tmp_path / "whole", 0).run()
    monkeypatch.setattr(materializer, "CHANGES_AT_ONCE", 10)
    in_batches(tmp_path / "turns", changes, [20])
    Materializer(tmp_path / "turns", 0).run()
    assert contents(tmp_path / "turns") == contents(tmp_path / "whole")


class Reports:
    """A listener that notes how far a large piece is applied."""

    def __init__(self) -> None:
        self.followed_to: list[tuple[int, int]] = []

    def begin(self, tables: Location) -> None: ...
    def replaced(self, *commit: object) -> None: ...

    def followed(self, changes: int, of: int) -> None:
        self.followed_to.append((changes, of))


def test_progress_within_a_large_piece_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = Reports()
    following = Materializer(tmp_path, 0, reports)
    write(tmp_path, [Journal().change(0, stable(1), group="small")], 0)
    following.run()
    assert reports.followed_to == []
    monkeypatch.setattr(materializer, "CHANGES_AT_ONCE", 10)
    history = Journal()
    write(tmp_path, [history.change(0, stable(1), group=f"g{number:02d}") for number in range(40)], 1)
    following.run()
    done = [changes for changes, of in reports.followed_to if of == 40]
    assert (done, len(done)) == (sorted(done), len(reports.followed_to))
    assert done[-1] == 40
    assert len(done) > 4


class Crash(BaseException):
    """Stands for kill -9."""


@contextlib.contextmanager
def crash_at_commit(monkeypatch: pytest.MonkeyPatch, survived: int) -> Iterator[None]:
    """Crash at the commit after this many."""
    commit, commits = DeltaRsTable._write, itertools.count()

    def crashing(table: DeltaRsTable, *args: object, **more: object) -> bool:
        if next(commits) >= survived:
            raise Crash
        return commit(table, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(DeltaRsTable, "_write", crashing)
        yield


def crash_at_each_commit(monkeypatch: pytest.MonkeyPatch, start: Path, whole: dict[str, list[Row]]) -> int:
    """Run from ``start`` with a crash before the first commit, before the second, and so on until none is left.

    Returns: how many commits there are. After each crash a further run must give the ``whole``.
    """
    for survived in itertools.count():
        root = start.with_name(f"crash-{survived}")
        shutil.copytree(start, root)
        crashed = Materializer(root, 0)
        try:
            with crash_at_commit(monkeypatch, survived):
                crashed.run()
        except Crash:
            # Either the same process tries again, or another one takes over.
            (crashed if survived % 2 else Materializer(root, 0)).run()
            is_over = False
        else:
            is_over = True
        assert contents(root) == whole, f"after a crash before commit {survived}"
        end = DeltaRsTable(root, CHANGES).version
        assert Materializer(root, 0).reached() == end
        if is_over:
            break
    return survived


def test_a_crash_between_the_shares_of_a_large_version_changes_nothing_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_batches(tmp_path / "journal", some_changes(), [])
    shutil.copytree(tmp_path / "journal", tmp_path / "whole")
    Materializer(tmp_path / "whole", 0).run()
    monkeypatch.setattr(materializer, "CHANGES_AT_ONCE", 5)
    commits = crash_at_each_commit(monkeypatch, tmp_path / "journal", contents(tmp_path / "whole"))
    # Topics and findings of the cluster, then each of the two groups: more commits than there are tables.
    assert len(FOLLOWING) < commits < 20


def test_the_size_of_a_piece_is_bounded_however_much_of_the_journal_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = Journal()
    changes = [history.change(at, stable(at), group=f"g{group:02d}") for at in range(4) for group in range(30)]
    taken: list[int] = []

    def measured(projection: Projection) -> Projection:
        def row_filter(entries: Sequence[Entry]) -> RowFilter:
            taken.append(len(entries))
            return projection.row_filter(entries)

        return projection._replace(row_filter=row_filter)

    monkeypatch.setattr(materializer, "PROJECTIONS", tuple(map(measured, PROJECTIONS)))
    monkeypatch.setattr(materializer, "CHANGES_AT_ONCE", 12)
    for way, ends in (("one", []), ("many", list(range(5, 120, 5)))):
        in_batches(tmp_path / way, changes, ends)
        Materializer(tmp_path / way, 0).run()
        assert len(taken) > len(changes) / 12
        assert max(taken) <= 12
        taken.clear()
    assert contents(tmp_path / "one") == contents(tmp_path / "many")
    assert len(content(tmp_path / "one", "groups")) == 30


def test_tables_made_anew_from_a_large_journal_survive_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = some_changes()
    in_batches(tmp_path, changes, [30])
    Materializer(tmp_path, 0).run()
    before = contents(tmp_path)
    for name in FOLLOWING:
        (tmp_path / name).rename(tmp_path / f"old-{name}")
    shorten_log(tmp_path)
    monkeypatch.setattr(materializer, "CHANGES_AT_ONCE", 5)
    with pytest.raises(Crash), crash_at_commit(monkeypatch, 3):
        Materializer(tmp_path, 0).run()
    # The journal grows before the tables have caught up.
    write(tmp_path, [Journal().change(10**6, stable(1), group="g9")], 2)
    Materializer(tmp_path, 0).run()
    after = contents(tmp_path)
    assert [row for row in after["groups"] if row["group_id"] != "g9"] == before["groups"]
    assert {name: after[name] for name in ("assignments", "members", "topics", "findings")} == {
        name: before[name] for name in ("assignments", "members", "topics", "findings")
    }


def test_a_crash_before_any_of_the_commits_changes_nothing_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = some_changes()
    write(tmp_path / "half", changes[:30], 0)
    Materializer(tmp_path / "half", 0).run()
    write(tmp_path / "half", changes[30:], 1)
    shutil.copytree(tmp_path / "half", tmp_path / "quiet")
    Materializer(tmp_path / "quiet", 0).run()
    # Topics and the finding are in the first batch only: seven tables have something to write in the second.
    assert crash_at_each_commit(monkeypatch, tmp_path / "half", contents(tmp_path / "quiet")) == 7


def begin_share(root: Path, without: Sequence[str] = ()) -> JournalPiece:
    """Apply the journal to all tables except these, as if a crash came before their commits; none ends the share."""
    following = Materializer(root, 0)
    piece = following._projector.piece(0, following._journal.refresh(), materializer.CHANGES_AT_ONCE)
    changes = following._projector.changes(piece, None)
    for place, projection in enumerate(PROJECTIONS, 1):
        if projection.table.name not in without:
            mark = Mark(following._app_id, to_mark(JournalProgress(piece.after, piece.upto, stage=place)))
            following._projector.apply(projection, changes, mark, lambda: None, lambda: None)
    return piece


def test_a_share_is_ended_by_the_last_table_that_lacked_it(tmp_path: Path) -> None:
    write(tmp_path, some_changes(), 0)
    piece = begin_share(tmp_path, without=["groups"])
    Materializer(tmp_path, 0).run()
    assert Materializer(tmp_path, 0).reached() == piece.upto


def test_a_piece_that_all_tables_have_is_over(tmp_path: Path) -> None:
    write(tmp_path, some_changes(), 0)
    piece = begin_share(tmp_path)
    before = contents(tmp_path)
    again = Materializer(tmp_path, 0)
    again.run()
    again.run()
    assert contents(tmp_path) == before
    assert again._progress == JournalProgress(piece.upto)


def test_two_tables_are_written_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, some_changes(), 0)
    following = Materializer(tmp_path, 0)
    commit, both = DeltaRsTable._write, threading.Barrier(2, timeout=300)
    written: list[str] = []

    def meeting(table: DeltaRsTable, *args: object, **more: object) -> None:
        if table.table.name in ("assignments", "groups"):
            both.wait()  # it raises if the other thread does not come
        commit(table, *args, **more)
        written.append(table.table.name)

    monkeypatch.setattr(DeltaRsTable, "_write", meeting)
    following.run()
    assert sorted(written) == sorted(FOLLOWING)
    assert written.index("group_minutes") < written.index("groups")
    assert written[-1] == "members"


def test_the_rows_of_the_last_table_are_computed_while_the_others_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, some_changes(), 0)
    following = Materializer(tmp_path, 0)
    read, commit, is_read = DeltaRsTable.read, DeltaRsTable._write, threading.Event()

    def noted(table: DeltaRsTable, wanted: RowFilter) -> pa.Table:
        found = read(table, wanted)
        if table.table.name == "members":
            is_read.set()
        return found

    def waiting(table: DeltaRsTable, *args: object, **more: object) -> None:
        if table.table.name == "groups":
            assert is_read.wait(timeout=300)
        commit(table, *args, **more)

    monkeypatch.setattr(DeltaRsTable, "read", noted)
    monkeypatch.setattr(DeltaRsTable, "_write", waiting)
    following.run()
    assert content(tmp_path, "members")


def test_groups_are_not_written_when_their_minutes_were_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, some_changes(), 0)
    following = Materializer(tmp_path, 0)
    commit = DeltaRsTable._write

    def failing(table: DeltaRsTable, *args: object, **more: object) -> None:
        if table.table.name == "group_minutes":
            raise TableError("the disk is full")
        commit(table, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(DeltaRsTable, "_write", failing)
        with pytest.raises(TableError, match="the disk is full"):
            following.run()
    assert content(tmp_path, "groups") == content(tmp_path, "members") == []
    following.run()
    in_batches(tmp_path / "whole", some_changes(), [])
    Materializer(tmp_path / "whole", 0).run()
    assert contents(tmp_path) == contents(tmp_path / "whole")


def refuse_side_by_side(monkeypatch: pytest.MonkeyPatch, writer: type, name: str) -> None:
    """Fail where a method of a writer runs for two tables at a time."""
    real, free = getattr(writer, name), threading.Lock()

    def alone(table: object, *args: object, **more: object) -> object:
        assert free.acquire(blocking=False)
        try:
            return real(table, *args, **more)
        finally:
            free.release()

    monkeypatch.setattr(writer, name, alone)


def test_one_table_at_a_time_of_a_large_piece_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, some_changes(), 0)
    monkeypatch.setattr(materializer, "_SMALL_PIECE", 10)
    refuse_side_by_side(monkeypatch, DeltaRsTable, "merge")
    Materializer(tmp_path, 0).run()
    assert content(tmp_path, "groups")


def test_the_version_of_the_journal_that_is_reached_is_marked_in_the_commits(tmp_path: Path) -> None:
    in_batches(tmp_path, some_changes(), [30])
    following = Materializer(tmp_path, 0)
    following.run()
    end = DeltaRsTable(tmp_path, CHANGES).version
    assert following.reached() == end
    assert Materializer(tmp_path, 0).reached() == end


def test_a_table_that_nothing_concerns_gets_no_commit(tmp_path: Path) -> None:
    write(tmp_path, [Journal().change(0, stable(1))], 0)
    Materializer(tmp_path, 0).run()
    versions = {name: DeltaRsTable(tmp_path, TABLES[name]).version for name in FOLLOWING}
    names = ("assignments", "members", "topics", "findings", "audits", "annotations", "episodes")
    untouched = dict.fromkeys(names, 0)
    assert versions == {**untouched, "group_minutes": 1, "groups": 1}


def test_an_existing_journal_is_caught_up_at_the_start(tmp_path: Path) -> None:
    in_batches(tmp_path, some_changes(), [10, 20, 40])
    following = Materializer(tmp_path, 3_600_000)
    following.start()
    try:
        assert content(tmp_path, "members")
    finally:
        following.stop()


def test_waiting_changes_are_applied_at_the_stop(tmp_path: Path) -> None:
    following = Materializer(tmp_path, 3_600_000)
    following.start()
    write(tmp_path, some_changes(), 0)
    following.notice()
    assert content(tmp_path, "members") == []
    following.stop()
    assert content(tmp_path, "members")


def test_a_change_is_followed_within_one_interval_without_further_input(tmp_path: Path) -> None:
    following = Materializer(tmp_path, 200)
    following.start()
    write(tmp_path, some_changes(), 0)
    following.notice()
    try:
        assert following.wait_until_idle(timeout=30)
        assert content(tmp_path, "members")
    finally:
        following.stop()


def test_a_failure_beside_the_job_is_raised_in_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    following = Materializer(tmp_path, 1)
    following.start()

    def fail(*_: object, **__: object) -> bool:
        raise TableError("the disk is full")

    write(tmp_path, some_changes(), 0)
    with monkeypatch.context() as patch:
        patch.setattr(DeltaRsTable, "_write", fail)
        following.notice()
        assert following.wait_until_idle(timeout=30)
        with pytest.raises(TableError, match="the disk is full"):
            following.notice()
    following.stop()
    assert content(tmp_path, "members")


def test_tables_made_anew_begin_with_what_the_journal_still_holds(tmp_path: Path) -> None:
    changes = some_changes()
    in_batches(tmp_path, changes, [30])
    Materializer(tmp_path, 0).run()
    before = contents(tmp_path)
    for name in FOLLOWING:
        (tmp_path / name).rename(tmp_path / f"old-{name}")
    shorten_log(tmp_path)
    Materializer(tmp_path, 0).run()
    assert contents(tmp_path) == before


def test_the_advice_about_a_log_that_was_cut_loses_nothing_that_cannot_be_made_again(tmp_path: Path) -> None:
    """An operator who follows the page word for word gets all tables again; those of the job alone are unchanged."""
    changes = some_changes()
    write(tmp_path, changes[:30], 0)
    Materializer(tmp_path, 0).run()
    for table in (REBALANCES, REJECTED_EVENTS, QUEUE_PROGRESS):
        rows_of_job = to_arrow(table, [{table.key[0]: "only here"}])
        DeltaRsTable(tmp_path, table).append(rows_of_job, Mark("job", 0))
    before = {name: content(tmp_path, name) for name in TABLES if name not in FOLLOWING}
    for batch, change in enumerate(changes[30:], 1):
        write(tmp_path, [change], batch)
    before[CHANGES.name] = content(tmp_path, CHANGES.name)
    shorten_log(tmp_path)
    with pytest.raises(TableError, match="no longer goes back") as failed:
        Materializer(tmp_path, 0).run()
    listed = re.search(r"Delete the folders ([\w, ]+), and no others", str(failed.value))
    assert listed is not None
    for name in listed[1].split(", "):
        shutil.rmtree(tmp_path / name)
    Materializer(tmp_path, 0).run()
    assert {name: content(tmp_path, name) for name in before} == before
    write(tmp_path / "whole", changes, 0)
    Materializer(tmp_path / "whole", 0).run()
    assert contents(tmp_path) == contents(tmp_path / "whole")


def test_two_that_follow_one_journal_do_not_count_twice(tmp_path: Path) -> None:
    changes = some_changes()
    in_batches(tmp_path / "alone", changes, [])
    Materializer(tmp_path / "alone", 0).run()
    first, second = Materializer(tmp_path / "both", 0), Materializer(tmp_path / "both", 0)
    write(tmp_path / "both", changes[:20], 0)
    first.run()
    write(tmp_path / "both", changes[20:40], 1)
    second.run()
    write(tmp_path / "both", changes[40:], 2)
    first.run()
    second.run()
    assert contents(tmp_path / "both") == contents(tmp_path / "alone")


def test_a_second_checkpoint_on_the_same_tables_counts_on(tmp_path: Path) -> None:
    history = Journal()
    write(tmp_path, [history.change(0, joined("a", 0)), history.change(0, stable(1))], 0)
    Materializer(tmp_path, 0).run()
    anew = Journal()
    DeltaRsTable(tmp_path, CHANGES).append(
        to_arrow(CHANGES, rows([anew.change(5, joined("b", 5)), anew.change(5, stable(2))])), Mark("another job", 0)
    )
    Materializer(tmp_path, 0).run()
    assert [row["member_id"] for row in content(tmp_path, "members")] == ["a", "b"]
    assert [row["members"] for row in content(tmp_path, "groups")] == [2]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a priority for each thread")
def test_its_thread_runs_behind_the_batches(tmp_path: Path) -> None:
    def priorities() -> dict[int, int]:
        return {
            thread.native_id: os.getpriority(os.PRIO_PROCESS, thread.native_id)
            for thread in threading.enumerate()
            if thread.native_id is not None
        }

    before = priorities()
    following = Materializer(tmp_path, interval_ms=1)
    following.start()
    write(tmp_path, some_changes(), 0)
    following.notice()
    assert following.wait_until_idle(60)
    during = priorities()
    following.stop()
    (its_own,) = (during[thread] for thread in during.keys() - before.keys())
    assert its_own > before[threading.get_native_id()] == during[threading.get_native_id()]
