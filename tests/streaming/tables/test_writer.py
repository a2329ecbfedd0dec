"""The contract of each writer of a table: exactly once, against races, readable by others. One suite over all."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import duckdb
import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from streaming.settings.locations import Location
from streaming.tables import delta_log_table, delta_rs_table, delta_spark_table
from streaming.tables.arrow_rows import from_arrow, to_arrow
from streaming.tables.commit_notes import USER_METADATA
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.delta_schema import CHECKPOINT_INTERVAL, PROPERTIES
from streaming.tables.delta_spark_table import DeltaSparkTable
from streaming.tables.errors import TableError
from streaming.tables.journal_entries import RowFilter
from streaming.tables.location import WRITER_PROPERTY, table_uri
from streaming.tables.retention import RETENTIONS, OldRows
from streaming.tables.schema import ASSIGNMENTS, CHANGES, GROUPS, QUEUE_PROGRESS, REJECTED_EVENTS, TABLES, Table
from streaming.tables.writer import COMMIT_VERSION, Edit, LogTruncatedError, Mark, TableWriter
from streaming.views.reader import Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.kit.s3 import S3Server

Open: TypeAlias = Callable[[Location, Table], TableWriter]


# Writer and store. test_delta_spark_table.py has a sample of the slow combinations.
CASES = (
    pytest.param((delta_rs_table.NAME, "disk"), id="delta-rs-disk"),
    pytest.param((delta_rs_table.NAME, "s3"), id="delta-rs-s3", marks=pytest.mark.broker),
    pytest.param((delta_spark_table.NAME, "disk"), id="delta-spark-disk", marks=pytest.mark.spark),
    pytest.param(
        (delta_spark_table.NAME, "s3"),
        id="delta-spark-s3",
        marks=[pytest.mark.spark, pytest.mark.broker, pytest.mark.slow],
    ),
)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Return the names of a writer and of a store."""
    writer, store = request.param
    return writer, store


@pytest.fixture
def opened(request: pytest.FixtureRequest, case: tuple[str, str]) -> Open:
    """Open a table with one of the writers."""
    if case[0] == delta_rs_table.NAME:
        return DeltaRsTable
    spark: SparkSession = request.getfixturevalue("spark")
    if case[1] != "disk":
        request.getfixturevalue("s3").connect(spark)
    return lambda root, table: DeltaSparkTable(spark.newSession(), root, table)


@pytest.fixture
def root(
    request: pytest.FixtureRequest, case: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Location:
    """Return where tables are: a folder, or a URI of a store."""
    if case[1] == "disk":
        return tmp_path
    server: S3Server = request.getfixturevalue("s3")
    for name, value in server.options.items():
        monkeypatch.setenv(name, value)
    return f"{server.uri}/{uuid.uuid4().hex}"


def delta(root: Location, name: str) -> DeltaTable:
    return DeltaTable(table_uri(root, name))


def groups(*names: str, members: int = 1) -> pa.Table:
    return to_arrow(GROUPS, [{"cluster": "c1", "group_id": name, "members": members} for name in names])


def among(*names: str) -> RowFilter:
    return RowFilter({"cluster": ["c1"], "group_id": list(names)})


def replacing(table: TableWriter, name: str, coming: pa.Table) -> Callable[[], Edit]:
    return lambda: Edit(table.read(among(name)), coming)


def found(root: Location) -> list[tuple[str, int]]:
    rows = from_arrow(GROUPS, delta(root, "groups").to_pyarrow_table())
    return sorted((row["group_id"], row["members"]) for row in rows)


def names(root: Location) -> list[str]:
    return [name for name, _ in found(root)]


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[dict[str, object]]:
    rows = [row for batch in batches for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: [str(value) for value in row.values()])


# -- exactly once ----------------------------------------------------------------------------------------------------


def test_rows_under_one_mark_are_written_once(opened: Open, root: Location) -> None:
    table = opened(root, GROUPS)
    assert table.append(groups("a"), Mark("job", 0))
    assert not table.append(groups("b"), Mark("job", 0))
    assert not opened(root, GROUPS).append(groups("c"), Mark("job", 0))
    assert table.append(groups("d"), Mark("other job", 0))
    assert names(root) == ["a", "d"]


def test_a_commit_carries_the_note_of_its_mark(opened: Open, root: Location) -> None:
    table = opened(root, GROUPS)
    table.append(groups("a"), Mark("job", 0, '{"batches":1}'))
    table.append(groups("b"), Mark("job", 1))
    notes = [commit.get(USER_METADATA) for commit in delta(root, "groups").history(2)]
    assert notes == [None, '{"batches":1}']


def test_an_older_mark_writes_nothing(opened: Open, root: Location) -> None:
    table = opened(root, GROUPS)
    table.append(groups("a"), Mark("job", 7))
    assert not opened(root, GROUPS).append(groups("b"), Mark("job", 3))
    assert table.mark("job") == 7
    assert table.mark("nobody") is None


def test_a_merge_under_one_mark_is_done_once(opened: Open, root: Location) -> None:
    table = opened(root, GROUPS)
    table.append(groups("a", "b", "c"), Mark("job", 0))
    assert table.merge(replacing(table, "b", groups("b", members=7)), Mark("present", 1))
    assert not table.merge(replacing(table, "b", groups("b", members=9)), Mark("present", 1))
    assert found(root) == [("a", 1), ("b", 7), ("c", 1)]


def test_a_change_without_effect_commits_nothing(opened: Open, root: Location) -> None:
    table = opened(root, GROUPS)
    before = table.version
    assert not table.merge(lambda: Edit(groups(), groups()), Mark("present", 1))
    assert table.version == before


def test_a_stream_of_rows_is_one_commit(opened: Open, root: Location) -> None:
    table = opened(root, GROUPS)
    before = table.version

    def stream() -> pa.RecordBatchReader:
        batches = (batch for name in ("a", "b", "c") for batch in groups(name).to_batches())
        return pa.RecordBatchReader.from_batches(GROUPS.schema, batches)

    assert table.append(stream, Mark("job", 0))
    assert not table.append(stream, Mark("job", 0))
    assert names(root) == ["a", "b", "c"]
    assert table.version == before + 1


# -- merges ----------------------------------------------------------------------------------------------------------


def test_a_merge_updates_deletes_and_inserts_and_the_feed_holds_these_rows_alone(opened: Open, root: Location) -> None:
    table = opened(root, GROUPS)
    table.append(groups("a", "b", "c"), Mark("job", 0))
    first = table.version
    table.merge(replacing(table, "b", groups("b", members=7)), Mark("present", 1))
    table.merge(replacing(table, "c", groups("d")), Mark("present", 2))
    feed = pa.table(delta(root, "groups").load_cdf(starting_version=first)).to_pylist()
    assert sorted(
        (row["_commit_version"] - first, row["_change_type"], row["group_id"], row["members"]) for row in feed
    ) == [
        (0, "insert", "a", 1),
        (0, "insert", "b", 1),
        (0, "insert", "c", 1),
        (1, "update_postimage", "b", 7),
        (1, "update_preimage", "b", 1),
        (2, "delete", "c", 1),
        (2, "insert", "d", 1),
    ]


def test_rows_are_found_by_keys_with_nulls_quotes_and_long_texts(opened: Open, root: Location) -> None:
    table = opened(root, ASSIGNMENTS)
    odd = ["it's", 'a "b" `c`', "back\\slash", "g" * 200, "ü\u2028x"]
    spans = [
        {"cluster": "c1", "group_id": name, "topic": "t", "queue_id": 1, "valid_from": 5, "broker": broker}
        for name in odd
        for broker in (None, "b")
    ]
    table.append(to_arrow(ASSIGNMENTS, spans), Mark("job", 0))
    wanted = RowFilter({"group_id": odd}, ends="valid_to")
    assert table.read(wanted).num_rows == len(spans)
    ended = to_arrow(ASSIGNMENTS, [{**span, "valid_to": 9} for span in spans])
    table.merge(lambda: Edit(table.read(wanted), ended), Mark("present", 1))
    assert table.read(wanted).num_rows == 0
    rows = from_arrow(ASSIGNMENTS, delta(root, "assignments").to_pyarrow_table())
    assert [row["valid_to"] for row in rows] == [9] * len(spans)


def test_a_merge_of_many_rows_is_a_merge_of_few(opened: Open, root: Location) -> None:
    table = opened(root, GROUPS)
    every = [f"g{number:05d}" for number in range(3_000)]
    table.append(groups(*every), Mark("job", 0))
    table.merge(lambda: Edit(table.read(among(*every[::2])), groups(*every[::2], members=2)), Mark("present", 1))
    assert found(root) == [(name, 2 - number % 2) for number, name in enumerate(every)]


def test_a_filter_reads_what_matches_and_nothing_else(opened: Open, root: Location) -> None:
    table = opened(root, ASSIGNMENTS)
    spans = [
        {"cluster": "c1", "group_id": name, "valid_from": begin, "valid_to": end}
        for name, begin, end in (("a", 1, None), ("a", 2, 5), ("a", 3, 6), ("b", 4, None))
    ]
    table.append(to_arrow(ASSIGNMENTS, spans), Mark("job", 0))

    def begins(wanted: RowFilter) -> list[int]:
        return sorted(row["valid_from"] for row in from_arrow(ASSIGNMENTS, table.read(wanted)))

    assert begins(among("a")) == [1, 2, 3]
    assert begins(RowFilter({"group_id": ["a"]}, ends="valid_to")) == [1]
    assert begins(RowFilter({"group_id": ["a"]}, ends="valid_to", ended_since=6)) == [1, 3]
    assert begins(RowFilter({"group_id": ["a", "b"]}, {"valid_from": (2, 4)})) == [2, 3, 4]
    assert begins(RowFilter({"group_id": []})) == []
    assert begins(RowFilter({"group_id": [f"g{n}" for n in range(2_000)]})) == []


# -- races -----------------------------------------------------------------------------------------------------------


def test_the_loser_of_a_race_starts_over_and_nothing_is_lost(opened: Open, root: Location) -> None:
    first, second = opened(root, GROUPS), opened(root, GROUPS)
    first.append(groups("a", "b"), Mark("first", 0))
    calls = 0

    def late() -> Edit:
        nonlocal calls
        calls += 1
        edit = Edit(second.read(among("a")), groups("a", members=2))
        if calls == 1:
            first.merge(replacing(first, "b", groups("b", members=3)), Mark("first", 1))
        return edit

    assert second.merge(late, Mark("second", 0))
    assert calls == 2
    assert found(root) == [("a", 2), ("b", 3)]


def test_only_one_of_two_racing_commits_with_the_same_mark_is_written(opened: Open, root: Location) -> None:
    first, second = opened(root, GROUPS), opened(root, GROUPS)
    raced = False

    def stream() -> pa.RecordBatchReader:
        nonlocal raced
        if not raced:
            raced = True
            assert first.append(groups("a"), Mark("job", 0))
        return pa.RecordBatchReader.from_batches(GROUPS.schema, groups("a").to_batches())

    assert not second.append(stream, Mark("job", 0))
    assert names(root) == ["a"]


@pytest.mark.parametrize("commits", [3, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_two_writers_on_one_table_lose_nothing(opened: Open, root: Location, commits: int) -> None:
    """One writer adds and changes rows like the job; another compacts and vacuums beside it, like `optimize`."""
    job, upkeep = opened(root, GROUPS), opened(root, GROUPS)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for number in range(commits):
                job.append(groups(f"g{number:03d}"), Mark("job", number))
                job.merge(replacing(job, "g000", groups("g000", members=number + 2)), Mark("present", number))
        except BaseException as failure:  # noqa: BLE001 - shown below
            failures.append(failure)

    working = threading.Thread(target=work)
    working.start()
    rounds = 0
    while working.is_alive() or rounds < commits:
        upkeep.maintain(vacuum_after_ms=86_400_000)
        rounds += 1
    working.join()
    assert failures == []
    assert rounds >= commits
    expected = [("g000", commits + 1), *((f"g{number:03d}", 1) for number in range(1, commits))]
    assert found(root) == expected


# -- the journal -----------------------------------------------------------------------------------------------------


def test_added_rows_are_read_by_version_and_upkeep_adds_none(opened: Open, root: Location) -> None:
    table = opened(root, CHANGES)
    start = table.version
    for number in range(3):
        rows = [{"cluster": "c1", "number": number, "event_time": number * 1_000, "body": "{}"}]
        table.append(to_arrow(CHANGES, rows), Mark("job", number))
    table.maintain(vacuum_after_ms=86_400_000, old=OldRows(RETENTIONS["changes"], {"c1": 1_000}))
    end = table.refresh()
    assert end > start + 3
    reported = rows_of(table.appended(start + 1, end, ["number", "cluster"]))
    assert reported == [{"number": number, "cluster": "c1", COMMIT_VERSION: start + 1 + number} for number in (1, 2)]
    assert rows_of(table.appended(end, end, ["number"])) == []
    assert rows_of(table.rows_at(end, ["number"])) == [{"number": number, COMMIT_VERSION: end} for number in (1, 2)]


def test_a_log_that_reaches_back_no_further_is_an_error(opened: Open, tmp_path: Path) -> None:
    table = opened(tmp_path, CHANGES)
    for number in range(2):
        table.append(to_arrow(CHANGES, [{"cluster": "c1", "number": number}]), Mark("job", number))
    DeltaTable(str(tmp_path / "changes")).create_checkpoint()
    *old, _ = sorted((tmp_path / "changes/_delta_log").glob("*.json"))
    for file in old:
        file.unlink()
    again = opened(tmp_path, CHANGES)
    with pytest.raises(LogTruncatedError):
        list(again.appended(0, again.version, ["number"]))


# -- upkeep ----------------------------------------------------------------------------------------------------------


def test_many_small_files_become_few_and_the_log_gets_checkpoints(
    opened: Open, case: tuple[str, str], tmp_path: Path
) -> None:
    table = opened(tmp_path, GROUPS)
    every = [f"g{number:03d}" for number in range(CHECKPOINT_INTERVAL + 5)]
    # Spark takes seconds for a commit: those long before the checkpoint are made beside it, with the same marks.
    beside = CHECKPOINT_INTERVAL - 5 if case[0] == delta_spark_table.NAME else 0
    for number, name in enumerate(every):
        if number < beside:
            marked = CommitProperties(app_transactions=[Transaction("job", number)])
            write_deltalake(table.uri, groups(name), mode="append", commit_properties=marked)
        else:
            assert table.append(groups(name), Mark("job", number))
    assert names(tmp_path) == every
    assert len(DeltaTable(str(tmp_path / "groups")).file_uris()) < delta_log_table.SMALL_FILES
    log = tmp_path / "groups" / "_delta_log"
    assert list(log.glob("*.checkpoint.parquet"))
    # A reader that opens the table from the checkpoint alone still knows the marks.
    for old in sorted(log.glob("*.json"))[: CHECKPOINT_INTERVAL - 1]:
        old.unlink()
    assert not opened(tmp_path, GROUPS).append(groups("again"), Mark("job", CHECKPOINT_INTERVAL + 4))


def test_upkeep_of_a_table_that_is_in_order_commits_nothing(opened: Open, root: Location) -> None:
    table = opened(root, GROUPS)
    for number in range(3):
        table.append(groups("a", f"g{number}"), Mark("job", number))
    done = table.maintain(vacuum_after_ms=86_400_000)
    assert (done.files_before, done.files_after) == (3, 1)
    version = table.refresh()
    table.maintain(vacuum_after_ms=86_400_000)
    assert table.refresh() == version


def progress(cluster: str, queue: int, *times: int, broker: str | None = None) -> list[dict[str, object]]:
    place = {"cluster": cluster, "group_id": "g", "topic": "t", "broker": broker, "queue_id": queue}
    return [{**place, "event_time": time} for time in times]


def test_old_rows_go_but_the_last_of_each_queue(opened: Open, root: Location) -> None:
    table = opened(root, QUEUE_PROGRESS)
    odd = "it's \\ `c`"
    rows = [
        *progress("c1", 0, 1, 2, 9),
        *progress("c1", 0, 1, 2, broker="b"),
        *progress("c1", 1, 8, 9),
        *progress(odd, 0, 1, 2, 3),
        *progress("not named", 0, 1, 2),
    ]
    table.append(to_arrow(QUEUE_PROGRESS, rows), Mark("job", 0))
    assert table.newest("event_time") == {"c1": 9, odd: 3, "not named": 2}
    old = OldRows(RETENTIONS["queue_progress"], {"c1": 9, odd: 3}, lambda: {("c1", "g")})
    version = table.version
    planned = table.survey(vacuum_after_ms=86_400_000, old=old)
    assert planned.dropped == (("c1", 2, 9), (odd, 2, 3))
    assert table.refresh() == version
    assert table.maintain(vacuum_after_ms=86_400_000, old=old).dropped == planned.dropped
    assert table.maintain(vacuum_after_ms=86_400_000, old=old).dropped == ()
    assert table.mark("job") == 0
    left = from_arrow(QUEUE_PROGRESS, delta(root, "queue_progress").to_pyarrow_table())
    assert sorted((row["cluster"], row["broker"] or "", row["queue_id"], row["event_time"]) for row in left) == [
        *[("c1", "", 0, 2), ("c1", "", 0, 9), ("c1", "", 1, 8), ("c1", "", 1, 9), ("c1", "b", 0, 2)],
        *[(odd, "", 0, 3), ("not named", "", 0, 1), ("not named", "", 0, 2)],
    ]


def test_open_spans_stay_and_the_feed_has_those_that_were_dropped(opened: Open, root: Location) -> None:
    table = opened(root, ASSIGNMENTS)
    ends = [None, 1, 2, 3]
    spans = [{"cluster": "c1", "group_id": "g", "queue_id": 0, "valid_from": 0, "valid_to": end} for end in ends]
    table.append(to_arrow(ASSIGNMENTS, spans), Mark("job", 0))
    first = table.version
    dropped_rows = table.maintain(vacuum_after_ms=86_400_000, old=OldRows(RETENTIONS["assignments"], {"c1": 2})).dropped
    assert dropped_rows == (("c1", 1, 2),)
    assert from_arrow(ASSIGNMENTS, table.read(RowFilter({"cluster": ["c1"]}, ends="valid_to")))[0]["valid_to"] is None
    feed = pa.table(delta(root, "assignments").load_cdf(starting_version=first + 1)).to_pylist()
    assert [row["_change_type"] for row in feed] == ["delete"]
    assert delta(root, "assignments").to_pyarrow_table().num_rows == 3


def test_history_loses_old_rows_once_it_no_longer_promises_to_be_append_only(opened: Open, root: Location) -> None:
    table = opened(root, REJECTED_EVENTS)
    rows = [{"cluster": None, "source": "s", "position": str(time), "seen_at": time} for time in range(3)]
    table.append(to_arrow(REJECTED_EVENTS, rows), Mark("job", 0))
    old = OldRows(RETENTIONS["rejected_events"], 2)
    assert table.maintain(vacuum_after_ms=86_400_000, old=old).dropped == ((None, 2, 2),)
    assert delta(root, "rejected_events").metadata().configuration["delta.appendOnly"] == "false"
    assert table.append(to_arrow(REJECTED_EVENTS, rows[:1]), Mark("job", 1))
    table.maintain(vacuum_after_ms=86_400_000)
    assert delta(root, "rejected_events").metadata().configuration["delta.appendOnly"] == "true"
    assert delta(root, "rejected_events").to_pyarrow_table().num_rows == 2


@pytest.mark.parametrize("rounds", [3, pytest.param(40, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_rows_are_dropped_beside_a_job_that_appends_and_changes(opened: Open, root: Location, rounds: int) -> None:
    """Each row of the job is older than the row after it; its last open rows are never dropped."""
    job, upkeep = opened(root, ASSIGNMENTS), opened(root, ASSIGNMENTS)
    failures: list[BaseException] = []
    written = 0

    def span(number: int, end: int | None) -> pa.Table:
        row = {"cluster": "c1", "group_id": "g", "topic": "t", "queue_id": 0, "member_id": "m", "origin": "computed"}
        return to_arrow(ASSIGNMENTS, [row | {"valid_from": number * 1_000, "valid_to": end}])

    def work() -> None:
        nonlocal written
        try:
            for number in range(rounds):
                job.append(span(number, None), Mark("job", number))
                if number:
                    ended = RowFilter({"cluster": ["c1"]}, {"valid_from": ((number - 1) * 1_000,) * 2})
                    close = span(number - 1, number * 1_000)
                    job.merge(lambda ended=ended, close=close: Edit(job.read(ended), close), Mark("present", number))
                written = number
        except BaseException as failure:  # noqa: BLE001 - shown below
            failures.append(failure)

    working = threading.Thread(target=work)
    working.start()
    dropped = 0
    while True:
        is_over = not working.is_alive()
        old = OldRows(RETENTIONS["assignments"], {"c1": written * 1_000})
        dropped += sum(drop.rows for drop in upkeep.maintain(vacuum_after_ms=86_400_000, old=old).dropped)
        if is_over:
            break
    working.join()
    assert failures == []
    left = from_arrow(ASSIGNMENTS, delta(root, "assignments").to_pyarrow_table())
    assert sorted((row["valid_from"] // 1_000, row["valid_to"]) for row in left) == [
        (rounds - 2, (rounds - 1) * 1_000),
        (rounds - 1, None),
    ]
    assert dropped == rounds - 2


# -- what others see -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(TABLES))
def test_delta_rs_and_duckdb_read_every_table_even_empty(opened: Open, root: Location, name: str) -> None:
    table = opened(root, TABLES[name])
    there = delta(root, name)
    assert there.to_pyarrow_table().num_rows == 0
    assert there.protocol().min_reader_version == 1
    assert there.metadata().description == TABLES[name].comment
    assert there.metadata().configuration.items() >= PROPERTIES.items()
    with duckdb.connect() as connection:
        connection.register("rows", pa.table(there.scan()))
        assert connection.execute("select count(*) from rows").fetchall() == [(0,)]
    table.append(to_arrow(table.table, [{"cluster": "c1"}]), Mark("job", 0))
    assert delta(root, name).to_pyarrow_table()["cluster"].to_pylist() == ["c1"]


def test_texts_that_hardly_repeat_have_no_dictionary(opened: Open, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    rows = [{"cluster": "c1", "body": f"{{{number}}}"} for number in range(200)]
    opened(tmp_path, CHANGES).append(to_arrow(CHANGES, rows), Mark("job", 0))
    (file,) = (tmp_path / "changes").glob("*.parquet")
    group = pq.ParquetFile(file).metadata.row_group(0)
    columns = {group.column(index).path_in_schema: group.column(index) for index in range(group.num_columns)}
    assert not columns["body"].has_dictionary_page
    assert columns["cluster"].has_dictionary_page


def test_a_table_of_an_older_release_gets_the_columns_that_it_lacks(opened: Open, root: Location) -> None:
    older = GROUPS._replace(
        columns=tuple(column for column in GROUPS.columns if column.name not in ("mode", "members"))
    )
    before = opened(root, older)
    before.append(to_arrow(older, [{"cluster": "c1", "group_id": "old"}]), Mark("job", 0))
    assert Reader(root).read("groups")["members"].to_pylist() == [None]
    table = opened(root, GROUPS)
    assert (table.identity, table.mark("job")) == (before.identity, 0)
    table.append(groups("new", members=3), Mark("job", 1))
    rows = delta(root, "groups").to_pyarrow_table()
    assert dict(zip(rows["group_id"].to_pylist(), rows["members"].to_pylist(), strict=True)) == {"old": None, "new": 3}
    table.merge(replacing(table, "old", groups("old", members=4)), Mark("present", 0))
    assert found(root) == [("new", 3), ("old", 4)]
    assert opened(root, GROUPS).version == table.version


def test_columns_that_somebody_added_stay(opened: Open, root: Location) -> None:
    wider = GROUPS._replace(columns=(*GROUPS.columns, GROUPS.columns[0]._replace(name="team")))
    opened(root, wider).append(
        to_arrow(wider, [{"cluster": "c1", "group_id": name, "team": "t"} for name in "ac"]), Mark("job", 0)
    )
    table = opened(root, GROUPS)
    table.append(groups("b"), Mark("job", 1))
    table.merge(replacing(table, "c", groups("c", members=5)), Mark("present", 1))
    rows = delta(root, "groups").to_pyarrow_table().sort_by("group_id")
    assert rows["team"].to_pylist() == ["t", None, "t"]
    assert rows["members"].to_pylist() == [None, 1, 5]


def test_a_folder_with_another_table_is_refused(opened: Open, root: Location) -> None:
    opened(root, GROUPS._replace(columns=(GROUPS.columns[0]._replace(type=pa.int64()), *GROUPS.columns[1:])))
    with pytest.raises(TableError, match=r"column cluster is long, not string.*--tables"):
        opened(root, GROUPS)


def test_a_table_does_not_change_its_writer(opened: Open, root: Location) -> None:
    opened(root, GROUPS)
    table = delta(root, "groups")
    table.alter.set_table_properties({WRITER_PROPERTY: "another"}, raise_if_not_exists=False)
    with pytest.raises(TableError, match=r"is written by another, not by .*tables\.writer"):
        opened(root, GROUPS)


def test_a_place_where_nothing_can_be_written_is_named(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    message = r"file/groups`? cannot be used: .*(Not a directory|Cannot create).*--tables"
    with pytest.raises(TableError, match=message) as refused:
        opened(tmp_path / "file", GROUPS)
    assert "An error occurred while calling" not in str(refused.value)
