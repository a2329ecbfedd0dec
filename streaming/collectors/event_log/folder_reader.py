"""Shell: the job as a reader of a folder of events: its progress, and the files that were deleted unread."""

from __future__ import annotations

from collections.abc import Sequence

from streaming.collectors.event_log.readers import (
    DeletedMark,
    ReaderMark,
    file_of,
    number_and_writer,
    read_deleted,
    write_reader,
    writers_that_deleted,
)
from streaming.machine.clock import now_ms
from streaming.machine.logs import logger
from streaming.pipeline.pending_losses import PendingLosses
from streaming.pipeline.query_log import ListedFiles, read_committed
from streaming.stores.places import Place
from streaming.terminal.escape import printable
from udfs.model.losses import Loss

# The mark is renewed even if nothing is read, because a reader that does not renew it is eventually dropped.
_RENEW_EVERY_MS = 600_000
# A job that is always behind keeps losing files; one finding for each writer in ten minutes is enough.
_REPORT_EVERY_MS = 600_000
_NS_PER_MS = 1_000_000
_SHOWN_PATH = 500
_log = logger("events")


class FolderReader:
    """Keeps a mark in the folder of how far its files have been read, and compares it with deletions by writers.

    A file counts as read once all sources of the query that read the folder have finished a batch with it.

    Args:
        reader: The id of the checkpoint. checkpoint: Its folder, for people.
        query: Spark's checkpoint. sources: The numbers of the query's sources that read the folder.
    """

    def __init__(
        self,
        folder: Place,
        reader: str,
        *,
        checkpoint: Place,
        query: Place,
        sources: Sequence[int],
        losses: PendingLosses,
    ) -> None:
        self._folder = folder
        self._name = printable(str(folder))
        self._reader = reader
        self._checkpoint = printable(str(checkpoint))
        self._query = query
        self._listed = [ListedFiles(query, source) for source in sources]
        # Numbers of files that were read, by source and writer, without those whose loss was reported.
        self._numbers: list[dict[str, set[int]]] = [{} for _ in sources]
        self._losses = losses
        self._source = f"events:{self._name}"
        self._mark: ReaderMark | None = None
        self._may_mark = True
        # Each writer maps to the file before which everything was read or reported; None if the folder was never read.
        self._answered = losses.answered(self._source)
        self._kept_ms = 0
        self._reported_ms: dict[str, int] = {}

    def step(self) -> None:
        """Update the lists of read and deleted files; report losses; renew the mark."""
        self._take_read()
        # This comes before the marks of deletions are read, so that writers wait for this reader from now on.
        self._renew(self._answered or {})
        deleted = {writer: read_deleted(self._folder, writer) for writer in writers_that_deleted(self._folder)}
        if self._answered is None:
            # A new reader does not miss files that were deleted before it began.
            first = {writer: max(self._read_of(writer), default=mark.newest) for writer, mark in deleted.items()}
            self._answered = first
            self._losses.report(self._source, first)
        self._answer_for(deleted, self._answered)

    def _take_read(self) -> None:
        committed = read_committed(self._query)
        if committed is None:
            return
        for listed, numbers in zip(self._listed, self._numbers, strict=True):
            for name in listed.advance(committed):
                found = number_and_writer(name)
                if found is not None:
                    numbers.setdefault(found[1], set()).add(found[0])

    def _read_of(self, writer: str) -> set[int]:
        return set.intersection(*(numbers.get(writer, set()) for numbers in self._numbers))

    def _answer_for(self, deleted: dict[str, DeletedMark], answered: dict[str, int]) -> None:
        now = now_ms()
        answers, losses = dict(answered), []
        for writer in sorted({*deleted, *(writer for numbers in self._numbers for writer in numbers)}):
            mark = deleted.get(writer, DeletedMark())
            spans = self._missed(writer, mark, answered.get(writer, 0))
            if spans and now - self._reported_ms.get(writer, -_REPORT_EVERY_MS) < _REPORT_EVERY_MS:
                continue
            if spans:
                self._reported_ms[writer] = now
                losses += [(cluster, self._loss(writer, span, now)) for cluster in mark.clusters for span in spans]
            # A deletion is recorded before the file is deleted, and read after the listing, so losses up to here are
            # complete.
            answers[writer] = max({answers.get(writer, 0), *(last for _, last in spans)} | self._read_of(writer))
        self._answered = answers
        if losses or now - self._kept_ms >= _REPORT_EVERY_MS:
            self._kept_ms = now
            self._losses.report(self._source, answers, losses)
        for numbers in self._numbers:
            for writer, some in numbers.items():
                numbers[writer] = {number for number in some if number > answers.get(writer, 0)}

    def _missed(self, writer: str, deleted: DeletedMark, answered: int) -> list[tuple[int, int]]:
        """Return the spans of files that were deleted unread: after the first number, up to the second."""
        read = self._read_of(writer)
        spans: list[tuple[int, int]] = []
        for first, last in deleted.ranges:
            if last <= answered or file_of(self._folder, writer, last).exists():
                continue
            before = max((number for number in read if number <= last), default=answered)
            if before >= last:
                continue
            if spans and before < spans[-1][1]:
                spans[-1] = (spans[-1][0], last)
            else:
                spans.append((before or first, last))
        return spans

    def _loss(self, writer: str, span: tuple[int, int], now: int) -> Loss:
        since, until = span
        return Loss(
            what=f"Files of the writer {writer} in {self._name[-_SHOWN_PATH:]} were deleted before they were read",
            since_ms=since // _NS_PER_MS,
            until_ms=until // _NS_PER_MS,
            noticed_ms=now,
        )

    def _renew(self, answered: dict[str, int]) -> None:
        """Write the mark if it has changed or grown old."""
        writers = {*answered, *(writer for numbers in self._numbers for writer in numbers)}
        read = {writer: max(self._read_of(writer) | {answered.get(writer, 0)}) for writer in sorted(writers)}
        now = now_ms()
        before = self._mark
        if before is not None and before.read == read and now - before.renewed_ms < _RENEW_EVERY_MS:
            return
        self._mark = ReaderMark(checkpoint=self._checkpoint, renewed_ms=now, read=read)
        try:
            write_reader(self._folder, self._reader, self._mark)
        except OSError as error:
            if self._may_mark:
                detail = "its collector deletes files by their age, read or unread"
                problem = "the reader's position cannot be stored in the folder of events"
                _log.warning(problem, folder=self._name, error=str(error), detail=detail)
            self._may_mark = False
