"""What a checkpoint and tables have committed, read from their logs alone, and what that proves about a crash."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from streaming.tables.journal_progress import from_mark

# The order in which one batch commits: Spark's own log, the state, the tables, Spark's own log.
WRITTEN = ("rebalances", "changes", "queue_progress", "rejected_events")
FOLLOWING = ("assignments", "topics", "findings", "group_minutes", "audits", "groups", "members")
KINDS = ("offsets", "state", *WRITTEN, *FOLLOWING, "commits")


class Commit(NamedTuple):
    """One commit.

    Attributes:
        kind: What took it, one of KINDS.
        number: Of the batch; for the tables that follow the journal, its version.
    """

    kind: str
    number: int


class CurrentRows(NamedTuple):
    """Everything committed at one moment.

    Attributes:
        journal: Batch -> version of ``changes`` that it made.
    """

    commits: frozenset[Commit]
    journal: dict[int, int]

    @property
    def batch(self) -> int:
        """Return the newest batch that was planned; -1: none yet."""
        return max((commit.number for commit in self.commits if commit.kind == "offsets"), default=-1)


class Place(NamedTuple):
    """The checkpoint and the tables of one run."""

    root: Path
    shuffle_partitions: int

    @property
    def tables(self) -> Path:
        return self.root / "tables"

    @property
    def query(self) -> Path:
        return self.root / "checkpoint/query"

    def current(self) -> CurrentRows:
        """Read the logs."""
        commits = {Commit("offsets", batch) for batch in _numbers(self.query / "offsets")}
        commits |= {Commit("commits", batch) for batch in _numbers(self.query / "commits")}
        commits |= {Commit("state", batch) for batch in self._batches_in_state()}
        journal = {}
        app_id = self._app_id()
        for kind in WRITTEN:
            for version, marks in self._marks(kind):
                commits |= {Commit(kind, batch) for marked, batch in marks if marked == app_id}
                if kind == "changes":
                    journal |= {batch: version for marked, batch in marks if marked == app_id}
        for kind in FOLLOWING:
            for _, marks in self._marks(kind):
                reached = [from_mark(mark) for marked, mark in marks if marked.endswith("-tables")]
                commits |= {Commit(kind, progress.upto or progress.after) for progress in reached}
        return CurrentRows(frozenset(commits), journal)

    def next_files(self, kind: str, more: int) -> list[Path]:
        """Return the files by which the next commit of a kind, or one that much later, will be seen."""
        if kind in ("offsets", "commits"):
            return [self.query / kind / str(max(_numbers(self.query / kind), default=-1) + 1 + more)]
        if kind == "state":
            version = max(self._batches_in_state(), default=-1) + 2 + more
            return [
                self.query / f"state/0/{partition}/{version}.changelog" for partition in range(self.shuffle_partitions)
            ]
        # The first commit of a table makes it.
        version = max((version for version, _ in self._logged(kind)), default=0) + 1 + more
        return [self.tables / kind / f"_delta_log/{version:020d}.json"]

    def _batches_in_state(self) -> set[int]:
        """Return the batches that every partition of the state has taken in: version 1 is batch 0."""
        folders = [self.query / f"state/0/{partition}" for partition in range(self.shuffle_partitions)]
        partitions = [{int(file.stem) - 1 for file in folder.glob("[0-9]*.changelog")} for folder in folders]
        return set.intersection(*partitions)

    def _app_id(self) -> str | None:
        identity = self.root / "checkpoint/identity.json"
        return str(msgspec.json.decode(identity.read_bytes())["app_id"]) if identity.exists() else None

    def _marks(self, table: str) -> Iterable[tuple[int, list[tuple[str, int]]]]:
        for version, actions in self._logged(table):
            found = [action["txn"] for action in actions if "txn" in action]
            yield version, [(txn["appId"], txn["version"]) for txn in found]

    def _logged(self, table: str) -> Iterable[tuple[int, list[dict[str, dict]]]]:
        for file in sorted((self.tables / table / "_delta_log").glob("[0-9]*.json")):
            yield int(file.stem), [json.loads(line) for line in file.read_text().splitlines()]


def proven(at_the_crash: CurrentRows, in_the_end: CurrentRows) -> set[str]:
    """Return the kinds of commit after which, and before the next, the crash came.

    What comes next after a commit is known in the end: not every batch has something for every table.
    """
    batch = at_the_crash.batch
    order = [*_order(batch, in_the_end), Commit("offsets", batch + 1)]
    present = [commit for commit in order if commit in in_the_end.commits]
    return {
        done.kind
        for done, following in pairwise(present)
        if done in at_the_crash.commits and following not in at_the_crash.commits
    }


def newest_kind(current: CurrentRows) -> str | None:
    """Return the kind of the newest commit, as far as that shows before the end: where batches commit to every table.

    None where a batch was done again, or tables did not follow at once.
    """
    made = [commit in current.commits for commit in _order(current.batch, current)]
    return KINDS[sum(made) - 1] if any(made) and made == sorted(made, reverse=True) else None


def _order(batch: int, current: CurrentRows) -> list[Commit]:
    version = current.journal.get(batch, -1)
    return [
        *(Commit(kind, batch) for kind in ("offsets", "state", *WRITTEN)),
        *(Commit(kind, version) for kind in FOLLOWING),
        Commit("commits", batch),
    ]


def _numbers(folder: Path) -> list[int]:
    return [int(file.name) for file in folder.glob("[0-9]*") if file.name.isdigit()]
