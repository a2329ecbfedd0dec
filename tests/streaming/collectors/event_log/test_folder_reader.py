"""The job as a reader of a folder: what it has missed follows from what it read and what writers deleted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streaming.collectors.event_log import folder_reader
from streaming.collectors.event_log.folder_reader import FolderReader
from streaming.collectors.event_log.readers import DeletedMark, file_of, read_readers, write_deleted
from streaming.pipeline.pending_losses import PendingLosses
from streaming.spark.checkpoint import ControlFolder
from streaming.stores.places import Place, hadoop_uri, write_whole

MS = 1_000_000
WRITER = "kafka-c1"


class Reading:
    """A folder, and a checkpoint whose two sources have read some of it."""

    def __init__(self, root: Place) -> None:
        self.folder, self.control, self.root = root / "events", root / "control", root
        self.query = root / "query"
        for made in (self.folder, self.control, self.query / "commits", self.query / "offsets"):
            made.mkdir(parents=True, exist_ok=True)
        self._batch = -1

    def reader(self) -> FolderReader:
        losses = PendingLosses(self.root / "losses.json", ControlFolder(self.control))
        return FolderReader(self.folder, "r", checkpoint=self.root, query=self.query, sources=[1, 2], losses=losses)

    def read(self, lines: list[int], names: list[int] | None = None) -> None:
        """Finish a batch in which the two sources read these files."""
        self._batch += 1
        for source, numbers in ((1, lines), (2, lines if names is None else names)):
            folder = self.query / "sources" / str(source)
            folder.mkdir(parents=True, exist_ok=True)
            paths = [hadoop_uri(file_of(self.folder, WRITER, number * MS)) for number in numbers]
            entries = [json.dumps({"path": path, "timestamp": 0, "batchId": self._batch}) for path in paths]
            write_whole(folder / str(self._batch), "\n".join(["v1", *entries]).encode())
        offset = json.dumps({"logOffset": self._batch})
        write_whole(self.query / "offsets" / str(self._batch), f"v1\n{{}}\n-\n{offset}\n{offset}".encode())
        write_whole(self.query / "commits" / str(self._batch), b"v1\n{}")

    def delete(self, *ranges: tuple[int, int]) -> None:
        """Let the writer have deleted these and no others."""
        mark = DeletedMark()
        for first, last in ranges:
            mark.add(first * MS, last * MS, ["c1", "c2"])
        write_deleted(self.folder, WRITER, mark)

    def losses(self) -> list[tuple[str, int, int]]:
        marks: list[dict[str, Any]] = [
            json.loads(line)
            for file in sorted(self.control.glob("*-lost.json"))
            for line in file.read_text().splitlines()
        ]
        return [(mark["cluster"], mark["lost"]["since_ms"], mark["lost"]["until_ms"]) for mark in marks]

    def published(self) -> dict[str, int]:
        [mark] = read_readers(self.folder)
        return {writer: number // MS for writer, number in mark.read.items()}


@pytest.fixture
def place(either_place: Place) -> Reading:
    return Reading(either_place)


def test_files_read_by_both_sources_in_finished_batches_are_published(place: Reading) -> None:
    reader = place.reader()
    reader.step()
    assert place.published() == {}
    place.read([1, 2, 3], [1, 2])
    reader.step()
    assert place.published() == {WRITER: 2}
    place.read([4], [3])
    (place.query / "commits" / "1").unlink()
    reader.step()
    assert place.published() == {WRITER: 2}
    assert place.reader().step() is None
    assert place.published() == {WRITER: 2}


def test_files_deleted_after_they_were_read_are_no_loss(place: Reading) -> None:
    reader = place.reader()
    reader.step()
    place.read([1, 2, 3])
    place.delete((1, 1), (2, 3))
    reader.step()
    assert place.losses() == []
    place.read([4])
    place.delete((1, 1), (2, 3), (4, 4))
    place.reader().step()
    assert place.losses() == []


def test_a_loss_while_the_job_was_down_is_from_the_last_file_read_to_the_last_deleted(place: Reading) -> None:
    place.reader().step()
    place.read([1, 2])
    place.reader().step()
    place.delete((1, 3), (4, 4), (5, 6))
    place.reader().step()
    assert place.losses() == [("c1", 2, 6), ("c2", 2, 6)]
    place.reader().step()
    place.read([7])
    place.reader().step()
    assert len(place.losses()) == 2


def test_a_loss_is_found_also_when_files_behind_it_have_been_read_meanwhile(place: Reading) -> None:
    reader = place.reader()
    reader.step()
    place.read([1])
    reader.step()
    place.delete((2, 3))
    place.read([4, 5])
    place.delete((2, 3), (4, 4))
    reader.step()
    assert place.losses() == [("c1", 1, 3), ("c2", 1, 3)]


def test_losses_with_reading_between_them_are_two_spans(place: Reading) -> None:
    place.reader().step()
    place.read([1, 4])
    place.delete((2, 3), (4, 4), (5, 5))
    place.reader().step()
    assert [span for cluster, *span in place.losses() if cluster == "c1"] == [[1, 3], [4, 5]]


def test_a_file_that_is_noted_but_not_yet_deleted_is_waited_for(place: Reading) -> None:
    reader = place.reader()
    reader.step()
    place.read([1])
    write_whole(file_of(place.folder, WRITER, 3 * MS), b"still there")
    place.delete((2, 3))
    reader.step()
    assert place.losses() == []
    file_of(place.folder, WRITER, 3 * MS).unlink()
    reader.step()
    assert place.losses() == [("c1", 1, 3), ("c2", 1, 3)]


def test_a_new_reader_misses_nothing_of_before_but_all_of_a_writer_that_comes_later(place: Reading) -> None:
    place.delete((1, 5))
    reader = place.reader()
    reader.step()
    assert place.losses() == []
    write_deleted(place.folder, "metaq-c3", DeletedMark(clusters=["c3"], ranges=[(7 * MS, 8 * MS)]))
    reader.step()
    assert place.losses() == [("c3", 7, 8)]


def test_a_checkpoint_of_an_earlier_release_misses_what_was_deleted_after_what_it_read(place: Reading) -> None:
    place.read([1, 2])
    place.delete((1, 2), (3, 4))
    place.reader().step()
    place.reader().step()
    assert place.losses() == [("c1", 2, 4), ("c2", 2, 4)]


def test_a_job_that_is_always_behind_reports_once_in_ten_minutes_and_nothing_is_left_out(
    place: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000_000
    monkeypatch.setattr(folder_reader, "now_ms", lambda: now)
    reader = place.reader()
    reader.step()
    ranges = []
    for step in range(4):
        ranges.append((10 + step, 10 + step))
        place.delete(*ranges)
        reader.step()
    assert [span for cluster, *span in place.losses() if cluster == "c1"] == [[10, 10]]
    now += 600_000
    reader.step()
    assert [span for cluster, *span in place.losses() if cluster == "c1"] == [[10, 10], [10, 13]]


def test_a_folder_that_cannot_be_written_is_read_all_the_same(place: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(folder_reader, "write_reader", refuse)
    reader = place.reader()
    reader.step()
    place.delete((1, 2))
    reader.step()
    assert place.losses() == [("c1", 1, 2), ("c2", 1, 2)]
