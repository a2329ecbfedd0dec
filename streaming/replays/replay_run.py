"""Shell: a replay of many groups, from its row in ``replays`` to its sums; killed at any time, it can be continued.

The groups are cut into pieces, in the order of their names. A piece is one commit of ``replay_groups``, whose mark is
the number of the piece, so that a repeated one adds nothing. The tables are read at the versions that the row in
``replays`` names, so what is continued later is what was begun.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import msgspec

from streaming.machine.clock import now_ms
from streaming.replays.group_frames import GroupFrames, GroupRange
from streaming.replays.replay_request import ReplayRequest
from streaming.settings.locations import Location
from streaming.tables.arrow_rows import from_arrow, to_arrow
from streaming.tables.engine import Engine
from streaming.tables.errors import NotFoundError
from streaming.tables.journal_entries import RowFilter
from streaming.tables.replay_tables import REPLAY_GROUPS, REPLAYS
from streaming.tables.schema import Row
from streaming.tables.writer import Edit, Mark
from udfs.model.config import CoreConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A piece ends with this many groups, or as soon as they have this many rebalances: so much is repeated after a kill.
_GROUPS_A_PIECE: Final = 256
_REBALANCES_A_PIECE: Final = 20_000
# Tables keep old versions for a day at least; what was begun earlier is begun again.
_CONTINUED_FOR_MS: Final = 86_400_000
_BEGUN, _FINISHED = 1, 2
_PACKAGE: Final = "rebalance-monitor"
_COMPARED: Final = ("rebalances", "queues_moved", "queues_stopped")
_SUMMED: Final = (*_COMPARED, "queue_pause_ms", "repeated_messages", "gone_rebalances")


class ReplayRun:
    """Replays groups.

    Args:
        root: The tables that are read. into: Where ``replays`` and ``replay_groups`` are. engine: Writes these.
        report: Called with the number of groups that are done, and of all.
    """

    def __init__(
        self,
        spark: SparkSession,
        root: Location,
        into: Location,
        engine: Engine,
        config: CoreConfig,
        report: Callable[[int, int], None] = lambda _done, _all: None,
    ) -> None:
        self._spark = spark
        self._root = root
        self._config = config
        self._report = report
        self._replays, self._groups = (engine.table(into, table) for table in (REPLAYS, REPLAY_GROUPS))

    def run(self, request: ReplayRequest) -> Row:
        """Begin a replay or continue an unfinished one of the same request; return its finished row of ``replays``.

        Raises:
            NotFoundError: The tables know no such groups.
            TableError: A table cannot be written.
        """
        begun, frames = self._begun(request)
        if begun["finished_at"] is not None:
            return begun
        # Each replay leaves a mark in both tables' logs, of some sixty bytes.
        app_id = f"replay-{begun['replay_id']}"
        asked = request.asked._replace(since_ms=begun["covers_from"], until_ms=begun["covers_to"])
        of_replay = {name: begun[name] for name in ("replay_id", "started_at")}
        pieces = list(_pieces(_known(frames, request)))
        whole, done, reached = sum(len(piece.group_ids) for piece in pieces), 0, self._groups.mark(app_id) or 0
        for number, piece in enumerate(pieces, start=1):
            if number > reached:
                self._report(done, whole)
                self._groups.append(frames.replayed(piece, asked, self._config, of_replay), Mark(app_id, number))
            done += len(piece.group_ids)
        self._report(done, whole)
        return self._finish(begun, app_id)

    def _begun(self, request: ReplayRequest) -> tuple[Row, GroupFrames]:
        """Return the row of a replay that is under way now, and the tables that it reads."""
        newest, asked = GroupFrames(self._spark, self._root), request.asked
        meant = [asked.policies, asked.all_strategies, request.as_written, request.cluster, request.group_ids]
        of_code = [msgspec.json.encode(self._config).decode(), version(_PACKAGE)]
        hashed = _hash([*meant, *of_code, newest.identities])
        self._replays.refresh()
        found = from_arrow(REPLAYS, self._replays.read(RowFilter({"request": [hashed]})))
        unfinished = [
            row for row in found if row["finished_at"] is None and row["started_at"] > now_ms() - _CONTINUED_FOR_MS
        ]
        if unfinished:
            row = max(unfinished, key=lambda row: (row["started_at"], row["replay_id"]))
            return row, GroupFrames(self._spark, self._root, json.loads(row["table_versions"]))
        replay_id = _hash([hashed, asked.since_ms, asked.until_ms, sorted(newest.versions.items())])
        done = [row for row in found if row["replay_id"] == replay_id]
        if done:
            return done[0], newest
        _known(newest, request)  # a request that can never be met leaves no row
        row = dict.fromkeys(REPLAYS.names) | {
            "replay_id": replay_id,
            "cluster": request.cluster,
            "request": hashed,
            "groups_asked": list(request.group_ids),
            "policies": list(asked.policies),
            "all_strategies": asked.all_strategies,
            "covers_from": asked.since_ms,
            "covers_to": asked.until_ms,
            "tables_location": str(self._root),
            "table_versions": json.dumps(newest.versions),
            "code_version": version(_PACKAGE),
            "started_at": now_ms(),
        }
        if not self._replays.append(to_arrow(REPLAYS, [row]), Mark(f"replay-{replay_id}", _BEGUN)):
            row = self._row(replay_id)
        return row, newest

    def _finish(self, begun: Row, app_id: str) -> Row:
        self._groups.refresh()
        rows = from_arrow(REPLAY_GROUPS, self._groups.read(RowFilter({"replay_id": [begun["replay_id"]]})))
        finished = begun | {
            "finished_at": now_ms(),
            "groups": len({(row["cluster"], row["group_id"]) for row in rows}),
            "sums": sums_of(rows),
        }
        before, after = (to_arrow(REPLAYS, [row]) for row in (begun, finished))
        if self._replays.merge(lambda: Edit(before, after), Mark(app_id, _FINISHED)):
            return finished
        return self._row(begun["replay_id"])  # another process of the same request was faster

    def _row(self, replay_id: str) -> Row:
        (row,) = from_arrow(REPLAYS, self._replays.read(RowFilter({"replay_id": [replay_id]})))
        return row


def sums_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return what rows of ``replay_groups`` add up to for each policy, first what was recorded."""
    by_policy: dict[str | None, list[Row]] = {}
    for row in rows:
        by_policy.setdefault(row["policy"], []).append(row)
    recorded = {(row["cluster"], row["group_id"]): row for row in by_policy.get(None, ())}
    sums = []
    for policy, of_policy in sorted(by_policy.items(), key=lambda item: (item[0] is not None, item[0] or "")):
        known = [row for row in of_policy if row["rebalances"] is not None]
        same = [recorded[row["cluster"], row["group_id"]] for row in known]
        added: dict[str, Any] = {name: _sum(known, name) for name in _SUMMED}
        # A policy that could not decide every generation of a group is compared with nothing.
        is_part = any(row["queues_stopped"] is None for row in known)
        added |= {f"recorded_{name}": None if is_part else _sum(same, name) for name in _COMPARED}
        partly = {
            f"{short}_unknown": sum(row[name] is None or f"{name}:" in (row["unknown"] or "") for row in known)
            for short, name in (("queue_pause", "queue_pause_ms"), ("repeated", "repeated_messages"))
        }
        groups = {"groups": len(of_policy), "groups_unknown": len(of_policy) - len(known)}
        sums.append({"policy": policy, **groups, **added, **partly})
    return sums


def _sum(rows: Sequence[Row], name: str) -> int | None:
    numbers = [row[name] for row in rows if row[name] is not None]
    return sum(numbers) if numbers else None


def _known(frames: GroupFrames, request: ReplayRequest) -> list[tuple[str, str, int]]:
    """Return the groups of a request.

    Raises:
        NotFoundError: The tables do not know one of them, or any.
    """
    found = frames.groups(request.cluster, request.group_ids)
    where = "" if request.cluster is None else f" in cluster {request.cluster}"
    if missing := sorted(set(request.group_ids) - {group_id for _, group_id, _ in found}):
        raise NotFoundError(f"there is no group {missing[0]}{where}")
    if not found:
        raise NotFoundError(f"the tables know no groups{where}")
    return found


def _pieces(groups: Sequence[tuple[str, str, int]]) -> Iterator[GroupRange]:
    """Cut groups in order into pieces, each of one cluster."""
    taken: list[str] = []
    rebalances = 0
    for place, (cluster, group_id, number) in enumerate(groups):
        taken.append(group_id)
        rebalances += number
        is_last = place + 1 == len(groups) or groups[place + 1][0] != cluster
        if is_last or len(taken) == _GROUPS_A_PIECE or rebalances >= _REBALANCES_A_PIECE:
            yield GroupRange(cluster, tuple(taken))
            taken, rebalances = [], 0


def _hash(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
