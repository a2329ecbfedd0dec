"""Dashboard: the tables, and whether they show the present, as read by one poller; requests open nothing."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Mapping, Sequence
from zlib import crc32

from deltalake import DeltaTable

from dashboard.reading.dependencies import note_reads
from dashboard.reading.opened_tables import OpenedTables
from streaming.machine.clock import now_ms
from streaming.machine.logs import logger
from streaming.settings.locations import Location
from streaming.stores.failure import StoreAwayError, is_passing, one_line
from streaming.tables.location import table_to_read, table_uri
from streaming.tables.replay_tables import EVERY_TABLE
from streaming.tables.schema import Row
from streaming.views.freshness import Freshness
from streaming.views.liveness_reader import LivenessReader
from streaming.views.platforms import PlatformState, followed_rows, platform_states

# A table that was replaced by another one keeps its name, so each handle is reopened this often.
REOPENED_AFTER_POLLS = 60
# If a store has not answered for this long, only the poller waits for it, and no request does.
FAILS_AFTER_S = 5.0
MISSING = -1
_UNREADABLE = "cannot be read; its last snapshot stays"
# Liveness has a version like a table, which changes with the displayed part of it.
LIVENESS = "liveness"

_log = logger("dashboard")


class TableSnapshots(OpenedTables):
    """Reads like ``Reader``, all tables at the versions of the last ``refresh``.

    Several threads may read at once while one refreshes.

    Args:
        must_exist: False if the job that writes them may start later.

    Raises:
        NoTablesError: The folder has no tables.
    """

    is_followed = True

    def __init__(self, root: Location, *, must_exist: bool = True) -> None:
        if must_exist:
            super().__init__(root)
        self.root = root
        self._handles: dict[str, DeltaTable] = {}
        self._versions: Mapping[str, int] = dict.fromkeys((*EVERY_TABLE, LIVENESS), MISSING)
        self._liveness = LivenessReader(root)
        # Why the store does not answer, from the running or the last poll; and when it last answered.
        self._away, self._answered_s = "", time.monotonic()
        self._freshness = Freshness()
        # The annotations that say until when pods are known, and how far they are.
        self._followed: list[Row] = []
        self._platforms: Sequence[PlatformState] = ()
        self._polls = 0
        self._problems: dict[str, str] = {}  # by table, as logged
        self._refreshing = threading.Lock()
        self.refresh()

    @property
    def versions(self) -> Mapping[str, int]:
        """Return the version of each table, and of ``liveness``, at the last refresh; -1 for a missing table."""
        return self._versions

    @property
    def freshness(self) -> Freshness:
        """Return what was known of the present at the last refresh."""
        note_reads([LIVENESS])
        return self._freshness

    @property
    def platforms(self) -> Sequence[PlatformState]:
        """Return how far the pods of each platform were known at the last refresh."""
        note_reads([LIVENESS])
        return self._platforms

    @property
    def has_tables(self) -> bool:
        """Return whether there was any table at the last refresh."""
        return any(self._versions[name] != MISSING for name in EVERY_TABLE)

    @property
    def unreadable(self) -> Sequence[str]:
        """Return the tables of which the last refresh could read nothing newer, or that no longer exist."""
        note_reads([LIVENESS])
        return sorted(self._problems)

    def refresh(self) -> frozenset[str]:
        """Follow the tables to their newest versions; return the names of those that changed."""
        with self._refreshing:
            self._away = self._liveness.read().unread
            if not self._away:
                self._answered_s = time.monotonic()
            found = {name: self._follow(name) for name in EVERY_TABLE}
            # Liveness is read again, because tables may have taken long. It is read before its version: a page of the
            # older version may show more, and is then made again.
            self._freshness = self._liveness.evaluate(unread=self._away)
            self._follow_platforms(found["annotations"])
            found[LIVENESS] = version_of(self._freshness, self._problems, self._platforms)
            changed = frozenset(name for name, version in found.items() if version != self._versions[name])
            self._versions = found
            self._polls += 1
            return changed

    def _follow(self, name: str) -> int:
        if self._away:
            # A store that does not answer delays a poll only once; the known state grows old in the meantime.
            self._note(name, _UNREADABLE, self._away)
            return self._versions[name]
        try:
            version = self._newest(name)
        except Exception as error:  # noqa: BLE001 - a store that fails in any way is polled again
            reason = one_line(error) or type(error).__name__
            self._note(name, _UNREADABLE, reason)
            self._away = reason if is_passing(str(error)) else ""
            _log.debug("a table cannot be read", table=name, exc_info=error)
            return self._versions[name]
        if version != MISSING:
            self._note(name, None)
        elif self._versions[name] != MISSING:
            self._note(name, "is no longer there", f"there is no table at {table_uri(self.root, name)}")
        elif self._problems.get(name) == _UNREADABLE:
            self._note(name, None)
        return version

    def _follow_platforms(self, version: int) -> None:
        """Read until when pods are known, if the table has a new version, and see what that means now."""
        if version != self._versions["annotations"]:
            try:
                self._followed = followed_rows(self)
            except Exception as error:  # noqa: BLE001 - as in ``_follow``; the next version is read again
                _log.debug("the annotations cannot be read", exc_info=error)
        self._platforms = platform_states(self._followed, now_ms())

    def _newest(self, name: str) -> int:
        handle = self._handles.get(name)
        if handle is not None and self._polls % REOPENED_AFTER_POLLS:
            try:
                handle.update_incremental()
                return handle.version()
            except Exception as error:
                if is_passing(str(error)):
                    raise
                # It may be another table now.
                _log.debug("a table could not be followed; it is reopened", table=name, exc_info=error)
        found = table_to_read(self.root, name)
        if found is None:
            self._handles.pop(name, None)
            return MISSING
        self._handles[name] = found
        return found.version()

    def _note(self, name: str, problem: str | None, reason: str = "") -> None:
        """Log when a problem of a table begins, and when it has ended; polls in between log nothing."""
        before = self._problems.pop(name, None)
        if problem is not None:
            self._problems[name] = problem
        if problem is not None and problem != before:
            _log.warning(f"a table {problem}", table=name, reason=reason)
        elif problem is None and before is not None:
            _log.info("a table can be read again", table=name)

    def _table(self, name: str) -> DeltaTable | None:
        note_reads([name])
        if self._away and time.monotonic() - self._answered_s > FAILS_AFTER_S:
            raise StoreAwayError(errno.EIO, self._away, str(self.root))
        found = self._handles.get(name)
        if found is None and name in self._problems:
            # Its rows are unknown, which is not that there are none.
            problem = self._problems[name].partition(";")[0]
            raise FileNotFoundError(errno.ENOENT, f"the table {name} {problem}", table_uri(self.root, name))
        return found


def version_of(freshness: Freshness, unreadable: Mapping[str, str], platforms: Sequence[PlatformState] = ()) -> int:
    """Return a number that changes with the displayed liveness, and with tables that cannot be read.

    The end of knowledge is displayed for a cluster that is not known up to now.
    """
    clusters = [
        (
            cluster.cluster,
            cluster.state,
            cluster.reason,
            cluster.known_until if cluster.state in ("unknown", "recording") else None,
        )
        for cluster in freshness.clusters.values()
    ]
    jobs = sorted((job.app_id, job.is_alive, job.state, job.text, job.note) for job in freshness.jobs)
    pods = [(found.platform, found.text) for found in platforms]
    shown = (clusters, jobs, freshness.problem, sorted(unreadable.items()), pods)
    return crc32(repr(shown).encode("utf-8", "replace"))
