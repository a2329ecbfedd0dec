"""The tables that a computation reads are noted while it runs."""

from __future__ import annotations

from dashboard.reading.dependencies import note_reads, noted_reads
from dashboard.reading.job_facts import tables
from dashboard.reading.questions import Reading
from streaming.tables.schema import TABLES


def test_tables_are_noted_also_where_their_rows_are_kept_already(reading: Reading) -> None:
    for _ in range(2):
        with noted_reads() as found:
            reading.columns("groups", ["group_id"])
            reading.tables.history("changes", 1)
        assert found == {"groups", "changes"}


def test_sizes_are_read_too(reading: Reading) -> None:
    with noted_reads() as found:
        tables(reading)
    assert found == set(TABLES)


def test_a_block_inside_another_notes_for_both() -> None:
    with noted_reads() as outer:
        with noted_reads() as inner:
            note_reads(["members"])
        note_reads(["groups"])
    assert (inner, outer) == ({"members"}, {"members", "groups"})


def test_outside_of_a_block_nothing_is_noted() -> None:
    with noted_reads() as found:
        pass
    note_reads(["members"])
    assert found == set()
