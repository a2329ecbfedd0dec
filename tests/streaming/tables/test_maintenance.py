"""Upkeep leaves fewer files and the same rows; nothing that a reader needs is deleted."""

from __future__ import annotations

import os
import time
from pathlib import Path

from deltalake import DeltaTable

from streaming.settings.model import Retention
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.journal_entries import RowFilter
from streaming.tables.maintenance import Kept, optimize
from streaming.tables.materializer import Materializer
from streaming.tables.replay_tables import EVERY_TABLE
from streaming.tables.retention import RETENTIONS, dropped_before
from streaming.tables.schema import CHANGES, GROUPS, Row
from streaming.tables.writer import Edit, Mark
from tests.streaming.tables.journals import T0, Journal, annotated, stable
from tests.streaming.tables.test_materializer import content, contents, some_changes, write
from tests.streaming.views.annotated_story import annotate, annotation

HOUR = 3_600_000
YEARS = 100 * 365 * 24 * HOUR


KEPT = dict.fromkeys(RETENTIONS, YEARS)


def kept_up(root: Path, vacuum_after_ms: int = YEARS, **keep_ms: int) -> dict[str, Kept]:
    """Keep up the tables; rows of tables that are not named are kept."""
    done = optimize(root, keep_ms=KEPT | keep_ms, vacuum_after_ms=vacuum_after_ms)
    return {kept.upkeep.table: kept for kept in done}


def filled(root: Path, follow: bool = True) -> None:
    following = Materializer(root, 0)
    for batch, change in enumerate(some_changes()[:20]):
        write(root, [change], batch)
        if follow:
            following.run()


def test_files_become_few_and_rows_stay(tmp_path: Path) -> None:
    filled(tmp_path)
    before = contents(tmp_path)
    done = kept_up(tmp_path)["changes"].upkeep
    assert (done.files_before, done.files_after, done.files_compacted) == (20, 1, 20)
    assert contents(tmp_path) == before
    assert len(content(tmp_path, "changes")) == 20
    # A reader that follows the table does not notice it.
    write(tmp_path, some_changes()[20:], 20)
    Materializer(tmp_path, 0).run()
    write(tmp_path / "whole", some_changes(), 0)
    Materializer(tmp_path / "whole", 0).run()
    assert contents(tmp_path) == contents(tmp_path / "whole")


def later(root: Path, batch: int, hours: int = 100) -> None:
    """Advance the cluster's time: another group has an event."""
    write(root, [Journal().change(hours * HOUR, stable(1, at=hours * HOUR), group="later")], batch)
    Materializer(root, 0).run()


def test_old_changes_go_once_every_table_has_passed_them(tmp_path: Path) -> None:
    filled(tmp_path)
    # A last change that touches every table but topics and findings, which ride along.
    write(tmp_path, some_changes()[20:], 20)
    later(tmp_path, 21)
    before = contents(tmp_path)
    # Annotations are changes of no cluster; they are as old as the newest event of any says.
    of_none = sum(change.cluster == "" for change in some_changes())
    rows = kept_up(tmp_path, changes=HOUR)["changes"].upkeep.dropped
    assert rows == (("", of_none, T0 + 99 * HOUR), ("c1", len(some_changes()) - of_none, T0 + 99 * HOUR))
    assert [row["group_id"] for row in content(tmp_path, "changes")] == ["later"]
    assert any(before.values())
    Materializer(tmp_path, 0).run()
    assert contents(tmp_path) == before


def test_changes_that_a_table_has_not_passed_stay_however_old(tmp_path: Path) -> None:
    filled(tmp_path)
    later(tmp_path, 20)
    write(tmp_path, some_changes()[20:], 21)
    done = kept_up(tmp_path, changes=HOUR)["changes"]
    assert done.is_held_back
    assert len(content(tmp_path, "changes")) == len(some_changes()) + 1


def test_a_recording_keeps_its_rows_whenever_it_is_read(tmp_path: Path) -> None:
    """Its own span is minutes; the wall clock is years later."""
    filled(tmp_path)
    before = contents(tmp_path)
    done = optimize(tmp_path, keep_ms=dict.fromkeys(RETENTIONS, HOUR), vacuum_after_ms=YEARS, now_ms=T0 + YEARS)
    assert not any(kept.upkeep.dropped for kept in done)
    assert contents(tmp_path) == before
    assert len(content(tmp_path, "changes")) == 20


def test_clusters_age_by_their_own_events(tmp_path: Path) -> None:
    """One is followed, one was recorded years before; the clock of a third is ahead of the machine's."""
    history = Journal()
    changes = [
        history.change(at, stable(1, at=at), cluster=cluster)
        for cluster, times in {"recorded": (0, HOUR), "live": (0, 50 * HOUR), "ahead": (0, 10_000 * HOUR)}.items()
        for at in times
    ]
    write(tmp_path, changes, 0)
    Materializer(tmp_path, 0).run()
    done = optimize(tmp_path, keep_ms={"changes": 2 * HOUR}, vacuum_after_ms=YEARS, now_ms=T0 + 51 * HOUR)
    (journal,) = [kept.upkeep for kept in done if kept.upkeep.table == "changes"]
    assert journal.dropped == (("ahead", 1, T0 + 49 * HOUR), ("live", 1, T0 + 48 * HOUR))


def test_annotations_of_no_cluster_age_by_the_newest_event_of_any(tmp_path: Path) -> None:
    history = Journal()
    changes = [history.change(time, stable(1), cluster=cluster) for cluster, time in {"a": 9 * HOUR, "b": 0}.items()]
    changes += [
        annotated(at, f"{cluster} {at // HOUR}", cluster=cluster) for at in (0, 9 * HOUR) for cluster in ("a", "b")
    ]
    changes += [annotated(at, f"any {at // HOUR}") for at in (0, 9 * HOUR)]
    write(tmp_path, [*changes, annotated(0, "of a cluster without events", cluster="unheard of")], 0)
    Materializer(tmp_path, 0).run()
    kept_up(tmp_path, annotations=HOUR)
    found = {row["annotation_id"] for row in content(tmp_path, "annotations")}
    assert found == {"a 9", "b 0", "b 9", "any 9", "of a cluster without events"}


def test_the_lives_of_pods_that_run_stay_as_long_as_they_are_followed(tmp_path: Path) -> None:
    """Their annotations are written once, when they begin, which may be months ago."""
    history = Journal()
    write(tmp_path, [history.change(9 * HOUR, stable(1)), annotated(0, "deploy")], 0)
    Materializer(tmp_path, 0).run()

    def life(name: str, platform: str, written: int, ended: int | None = None) -> Row:
        return annotation(name, written, ended, kind="pod", platform=platform)

    def followed(platform: str, since: int, until: int) -> Row:
        row = annotation(f"followed {platform}", since, until, kind="pods_followed", platform=platform)
        return row | {"written_at": T0 + until}

    annotate(
        tmp_path,
        followed("k", 5, 9 * HOUR),
        life("runs", "k", 6),
        life("ended long ago", "k", 6, 7),
        life("ended now", "k", 9 * HOUR, 9 * HOUR),
        # A killed process wrote it, and the next one does not know it: it may be over.
        life("written before the collector began", "k", 4),
        followed("it's", 5, 9 * HOUR),
        life("runs elsewhere", "it's", 5),
        followed("given up", 5, HOUR),
        life("of a collector that was given up", "given up", 6),
        life("of a platform that nobody follows", "unknown", 6),
    )
    planned = optimize(tmp_path, keep_ms=KEPT | {"annotations": HOUR}, vacuum_after_ms=YEARS, dry_run=True)
    dropped = {kept.upkeep.table: kept.upkeep.dropped for kept in planned}["annotations"]
    assert kept_up(tmp_path, annotations=HOUR)["annotations"].upkeep.dropped == dropped == ((None, 6, T0 + 8 * HOUR),)
    left = {row["annotation_id"] for row in content(tmp_path, "annotations")}
    assert left == {"followed k", "runs", "ended now", "followed it's", "runs elsewhere"}


def fill_all(root: Path) -> None:
    """Fill every table with old and new rows of two groups, and with rows open since the old time."""
    old, new = T0, T0 + 100 * HOUR
    both = [{"cluster": "c1", "group_id": name} for name in ("there", "gone")]
    ids = {"rebalance_id": "r", "finding_id": "f", "member_id": "m", "topic": "t", "position": "p"}

    def store(name: str, *rows: Row) -> None:
        table = EVERY_TABLE[name]
        stored = [{key: value for key, value in row.items() if key in table.names} for row in rows]
        DeltaRsTable(root, table).append(to_arrow(table, stored), Mark("test", 0))

    store("groups", both[0])
    for name, rule in RETENTIONS.items():
        starts = [column for column in ("valid_from", "joined_at", "opened_at") if column in EVERY_TABLE[name].names]
        begun = dict.fromkeys(starts, old)
        at = [old, old + 1, *([new] if rule.is_event_time else [old + 100 * HOUR])]
        times = [{**begun, rule.time: time} for time in at]
        still_open = [{**begun, rule.time: None}] if EVERY_TABLE[name].ends else []
        store(name, *(ids | group | time | {"queue_id": 0} for group in both for time in [*times, *still_open]))


def test_old_rows_of_every_table_are_dropped_but_nothing_still_valid(tmp_path: Path) -> None:
    fill_all(tmp_path)
    before = {name: content(tmp_path, name) for name in RETENTIONS}
    keep_ms = {name: HOUR for name in RETENTIONS if name != "changes"}
    planned = optimize(tmp_path, keep_ms=keep_ms, vacuum_after_ms=YEARS, dry_run=True)
    assert {name: content(tmp_path, name) for name in RETENTIONS} == before
    done = optimize(tmp_path, keep_ms=keep_ms, vacuum_after_ms=YEARS)
    assert [kept.upkeep.dropped for kept in planned] == [kept.upkeep.dropped for kept in done]
    for name, rule in RETENTIONS.items():
        rows = content(tmp_path, name)
        lost = [row for row in before[name] if row not in rows]
        if name == "changes":
            assert lost == []
            continue
        # Each of two groups has an old row. Of tables of spans nothing else is old; of others, also the last row of the
        # group that is gone.
        assert len(lost) == (3 if rule.last_of else 4), name
        assert all(row[rule.time] is not None and row[rule.time] < T0 + 99 * HOUR for row in lost), name
        kept = {(row["group_id"], row[rule.time]) for row in rows if rule.last_of}
        assert not rule.last_of or kept >= {("there", T0 + 1), ("there", T0 + 100 * HOUR)}, name


def test_every_table_but_that_of_the_present_has_a_retention() -> None:
    assert {*RETENTIONS, GROUPS.name} == set(EVERY_TABLE)
    assert {f"{name}_hours" for name in RETENTIONS} == set(Retention.model_fields)
    for name, rule in RETENTIONS.items():
        # A span's age counts from its end, not from its beginning.
        assert EVERY_TABLE[name].ends in (None, rule.time)


def test_a_table_promises_to_be_only_appended_to_as_long_as_it_is(tmp_path: Path) -> None:
    fill_all(tmp_path)

    def promise() -> str:
        return DeltaTable(str(tmp_path / "rebalances")).metadata().configuration["delta.appendOnly"]

    kept_up(tmp_path)
    assert promise() == "true"
    kept_up(tmp_path, rebalances=HOUR)
    assert promise() == "false"
    optimize(tmp_path, keep_ms={}, vacuum_after_ms=YEARS)
    assert promise() == "true"


def test_drops_are_recorded_in_the_table(tmp_path: Path) -> None:
    fill_all(tmp_path)
    assert kept_up(tmp_path, assignments=HOUR, findings=HOUR)["assignments"].upkeep.dropped
    kept_up(tmp_path, assignments=2 * HOUR)  # Nothing comes back.
    noted = dropped_before(DeltaTable(str(tmp_path / "assignments")).metadata().configuration)
    assert noted == {"c1": T0 + 99 * HOUR}
    assert dropped_before(DeltaTable(str(tmp_path / "members")).metadata().configuration) == {}


def test_the_job_continues_after_rows_were_dropped(tmp_path: Path) -> None:
    """Marks stay, and tables with upkeep in between equal those of a whole history without its old rows."""
    changes = some_changes()
    filled(tmp_path)
    following = Materializer(tmp_path, 0)
    later(tmp_path, 20)
    keep_ms = dict.fromkeys(RETENTIONS, HOUR)
    optimize(tmp_path, keep_ms=keep_ms, vacuum_after_ms=YEARS)
    write(tmp_path, changes[20:], 21)
    following.run()
    write(tmp_path, changes[:20], 0)  # A batch that is repeated.
    following.run()
    write(tmp_path / "whole", changes, 0)
    later(tmp_path / "whole", 1)
    for name in ("groups", "topics", "findings", "members", "assignments"):
        ends = EVERY_TABLE[name].ends
        whole = [row for row in content(tmp_path / "whole", name) if ends is None or row[ends] is None]
        assert [row for row in content(tmp_path, name) if ends is None or row[ends] is None] == whole


def test_files_go_once_no_version_needs_them(tmp_path: Path) -> None:
    table = DeltaRsTable(tmp_path, GROUPS)
    group = to_arrow(GROUPS, [{"cluster": "c", "group_id": "g", "members": 1}])
    table.append(group, Mark("job", 0))
    table.merge(lambda: Edit(table.read(RowFilter({"group_id": ["g"]})), group), Mark("present", 1))
    folder = tmp_path / "groups"
    orphan = folder / "part-left-behind-by-a-crash.parquet"
    orphan.write_bytes(b"")
    two_days_ago = time.time() - 48 * 3_600
    os.utime(orphan, (two_days_ago, two_days_ago))
    (planned,) = optimize(tmp_path, keep_ms={}, vacuum_after_ms=24 * HOUR, dry_run=True)
    assert planned.upkeep.files_deleted == 1
    assert orphan.exists()
    assert kept_up(tmp_path, vacuum_after_ms=24 * HOUR)["groups"].upkeep.files_deleted == 1
    assert not orphan.exists()
    # A reader of the previous version may still need files that were removed just now.
    assert len(list(folder.glob("*.parquet"))) == 2
    assert DeltaTable(str(folder)).to_pyarrow_table().num_rows == 1


def test_a_file_that_is_being_written_is_never_deleted(tmp_path: Path) -> None:
    DeltaRsTable(tmp_path, GROUPS)
    new = tmp_path / "groups" / "part-not-committed-yet.parquet"
    new.write_bytes(b"")
    kept_up(tmp_path, vacuum_after_ms=0)
    assert new.exists()


def test_tables_that_are_not_there_are_left_alone(tmp_path: Path) -> None:
    DeltaRsTable(tmp_path, CHANGES)
    assert list(kept_up(tmp_path, vacuum_after_ms=0)) == ["changes"]
    assert not [name for name in EVERY_TABLE if name != "changes" and (tmp_path / name).exists()]
