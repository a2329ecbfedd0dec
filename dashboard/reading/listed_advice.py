"""Dashboard: which change of configuration would have saved each group most: from the newest run over all groups."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

import msgspec
import pyarrow as pa

from dashboard.reading.questions import Reading
from streaming.tables.arrow_rows import from_arrow, to_arrow
from streaming.tables.columns import COUNT, LONG, TEXT, TIME, Column, Row, Table
from streaming.tables.replay_tables import REPLAY_GROUPS, REPLAYS
from streaming.tables.shared_columns import CLUSTER, GROUP, SYSTEM
from streaming.views.reader import Between

# So many groups are in memory at once. A row has up to a thousand ids, which no list shows.
_GROUPS_A_PIECE: Final = 1_000
_JUDGED: Final = tuple(name for name in REPLAY_GROUPS.names if name != "gone_rebalance_ids")
# Whether there is advice for a group, there is none, or it is not known.
RESULTS: Final = ("advice", "none", "unknown")
ADVICE: Final = Table(
    "advice",
    "One row per group: the policy that would have saved it most, from the newest run of `advise --all`",
    (
        CLUSTER,
        SYSTEM,
        GROUP,
        Column("result", TEXT, "Whether there is advice: advice, none or unknown"),
        Column("policy", TEXT, "Policy that would have saved most; null = there is no advice"),
        Column("saved_pause_ms", LONG, "Queue-pause that it would have saved, an estimate; null = unknown"),
        Column("saved_repeated_messages", LONG, "Messages that would not have been read twice, an estimate"),
        Column("saved_percent", LONG, "Share of the queues that stood still, and would not have"),
        Column("sure", TEXT, "How sure that is: good, fair or weak"),
        Column("policies", COUNT, "Policies that would have saved enough"),
        Column("costs", TEXT, "What it costs, as sentences"),
        Column("settings", TEXT, "Keys that set it for the clients of the group, with their sources"),
        Column("rebalances", COUNT, "Rebalances that were recorded in the time of the run"),
        Column("queues_moved", LONG, "Queues that moved in them"),
        Column("queue_pause_ms", LONG, "Their queue-pause, as far as it was measured"),
        Column("covers_from", TIME, "First recorded rebalance that counts"),
        Column("covers_to", TIME, "Last recorded rebalance that counts"),
        Column("replay_id", TEXT, "The run, in the table replays"),
        Column("started_at", TIME, "When the run was begun"),
        Column("unknown", TEXT, "Why nothing is known, or too little"),
    ),
    key=("cluster", "group_id"),
)


def advice_runs(reading: Reading) -> list[Row]:
    """Return the rows of ``replays`` that advice is taken from, newest first: one for all clusters, or for each."""
    from streaming.history.advice import is_for_advice

    found: list[Row] = []
    runs = [row for row in reading.tables.rows(REPLAYS.name) if is_for_advice(row)]
    for run in sorted(runs, key=lambda row: (row["started_at"], row["replay_id"]), reverse=True):
        if run["cluster"] not in {other["cluster"] for other in found}:
            found.append(run)
        if run["cluster"] is None:
            break
    return found


def newest_run_of(reading: Reading, cluster: str, group: str) -> tuple[Row, list[Row]] | None:
    """Return the newest run that has a group, with its rows of ``replay_groups``; None if none has it."""
    where = {"cluster": cluster, "group_id": group}
    for run in advice_runs(reading):
        if rows := reading.tables.rows(REPLAY_GROUPS.name, where=where | {"replay_id": run["replay_id"]}):
            return run, rows
    return None


def advice_table(reading: Reading) -> pa.Table:
    """Return the rows of ``ADVICE``; none if no run was written."""
    rows = advice_rows(reading)
    # Building an array from Python imports pandas.
    return to_arrow(ADVICE, rows) if rows else pa.Table.from_batches([], ADVICE.schema)


def advice_rows(reading: Reading) -> list[Row]:
    """Return the rows of ``ADVICE`` as dicts, judged once for each run: 10,000 groups in four seconds."""

    def compute() -> bytes:
        return msgspec.json.encode([*_rows(reading)])

    found: list[Row] = msgspec.json.decode(reading.kept(("advice",), (REPLAYS.name, REPLAY_GROUPS.name), compute))
    return found


def _rows(reading: Reading) -> Iterator[Row]:
    from streaming.history.advice import advice_by_group

    for run, rows in _pieces(reading):
        for found in advice_by_group(rows):
            recorded = found.recorded
            row = {name: recorded.get(name) for name in ADVICE.names} | {"unknown": found.unknown}
            row |= {"result": "none" if found.unknown is None else "unknown", "replay_id": run["replay_id"]}
            row |= {"policies": len(found.advice), "policy": None, "settings": None, "started_at": run["started_at"]}
            if found.advice:
                best = found.advice[0]
                row |= {
                    "result": "advice",
                    "policy": best.policy,
                    "saved_pause_ms": best.saved_pause_ms,
                    "saved_repeated_messages": best.saved_repeated,
                    "saved_percent": round(100 * best.saved_share),
                    "sure": best.sure,
                    "costs": "; ".join(best.costs) or None,
                    "settings": "; ".join(best.settings) or None,
                }
            yield row


def _pieces(reading: Reading) -> Iterator[tuple[Row, list[Row]]]:
    """Yield each run that advice is taken from with its rows of some groups, of clusters that no newer run has."""
    seen: set[str] = set()
    for run in advice_runs(reading):
        where = {"replay_id": run["replay_id"]}
        found = reading.tables.read(REPLAY_GROUPS.name, columns=["cluster", "group_id"], where=where)
        rows = reading.sql("select distinct cluster, group_id from found order by all", {"found": found}).to_pylist()
        for cluster, of_cluster in groupby(rows, lambda row: row["cluster"]):
            if cluster in seen:
                continue
            seen.add(cluster)
            names = [row["group_id"] for row in of_cluster]
            for begin in range(0, len(names), _GROUPS_A_PIECE):
                ids = names[begin : begin + _GROUPS_A_PIECE]
                some = where | {"cluster": cluster, "group_id": Between(ids[0], ids[-1])}
                read = reading.tables.read(REPLAY_GROUPS.name, columns=_JUDGED, where=some)
                yield run, from_arrow(REPLAY_GROUPS, read)


def with_advice(reading: Reading, rows: list[Row]) -> list[Row]:
    """Return rows of groups with the advice to each as a short text; null where there is none."""
    from streaming.history.advice_texts import saving_text

    texts = {
        (row["cluster"], row["group_id"]): f"{row['policy']}:"
        f" {saving_text(row['saved_pause_ms'], row['saved_repeated_messages'])}"
        for row in advice_rows(reading)
        if row["policy"] is not None
    }
    return [row | {"advice": texts.get((row["cluster"], row["group_id"]))} for row in rows]
