"""Shell: what both writers read of a table's log, with delta-rs: in milliseconds, where Spark would start jobs."""

from __future__ import annotations

from collections.abc import Sequence

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from streaming.tables.writer import LogTruncatedError, Mark, TableWriter


class DeltaLogTable(TableWriter):
    """A writer that holds the log of its table as ``_delta``."""

    _delta: DeltaTable
    _marks_at: int | None = None

    @property
    def version(self) -> int:
        return self._delta.version()

    @property
    def identity(self) -> str:
        return str(self._delta.metadata().id)

    def refresh(self) -> int:
        self._delta.update_incremental()
        return self.version

    def mark(self, app_id: str) -> int | None:
        # delta-rs reads the log for each.
        if self._marks_at != self.version:
            self._marks_at, self._marks = self.version, dict[str, int | None]()
        if app_id not in self._marks:
            self._marks[app_id] = self._delta.transaction_version(app_id)
        return self._marks[app_id]

    def _note(self, mark: Mark, before: int) -> None:
        """Note the mark of a commit that was made from a version; not if others have committed since."""
        if self._marks_at == before == self.version - 1:
            self._marks_at = self.version
            self._marks[mark.app_id] = mark.version

    def _change_feed(self, after: int, upto: int, columns: Sequence[str]) -> object:
        """Return the feed of changes after a version up to another, as a stream of Arrow.

        Raises:
            LogTruncatedError: The log no longer has all of them.
        """
        try:
            return self._delta.load_cdf(starting_version=after + 1, ending_version=upto, columns=list(columns))
        except DeltaError as error:
            if "Invalid table version" not in str(error):
                raise
            raise LogTruncatedError(after) from error
