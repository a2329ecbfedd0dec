"""Bench: the pasts of 1,000 groups, as recorded and under each strategy, by Spark with one core and with two.

Each group has ten members of RocketMQ that restart one after the other, 64 queues and 40 rebalances. The ratio is to
the same groups decided again in this process, from rows in memory: what reading, sending and writing cost in addition.
`BENCH_GROUPS=1000` sets how many.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from pathlib import Path

from streaming.history.replay_figures import Asked, GivenRows, replay_figures
from streaming.replays.replay_request import ReplayRequest
from streaming.replays.replay_run import ReplayRun
from streaming.settings.model import Settings, load
from streaming.spark.session import end_session, start_session
from streaming.tables.arrow_rows import to_arrow
from streaming.tables.delta_rs_table import DeltaRsTable
from streaming.tables.engine import DeltaRsEngine
from streaming.tables.schema import TABLES, Row
from streaming.tables.writer import Mark
from tests.model.core_tables import run_core
from tests.model.times import T0
from tests.simulation.core_run import rows_of

_MEMBERS, _QUEUES, _RESTARTS = 10, 64, 15
_MINUTE = 60_000
_NEEDED = ("rebalances", "members", "assignments", "topics", "groups")
_ALONE = 50  # so many groups are decided again in this process


def past() -> dict[str, list[Row]]:
    """Return the rows of one group, by table."""
    common = {"schema_version": 1, "system": "rocketmq", "cluster": "bench"}
    queues = [{"broker": "b", "queue_id": number} for number in range(_QUEUES)]
    described = {"group": "g", "subscriptions": ["t"], "strategies": ["AVG"], "session_timeout_ms": 10**9}
    events = [common | {"type": "topic_queues", "event_time": T0, "topic": "t", "queues": queues}]

    def happens(kind: str, minute: int, member: int, **more: object) -> None:
        named = {"type": kind, "event_time": T0 + minute * _MINUTE, "group": "g", "member_id": f"m-{member}"}
        events.append(common | named | more)

    for member in range(_MEMBERS):
        happens("member_joined", member, member, **described)
    for restart in range(_RESTARTS):
        happens("member_left", 20 + 2 * restart, restart % _MEMBERS)
        happens("member_joined", 21 + 2 * restart, restart % _MEMBERS, **described)
    run = run_core([[json.loads(json.dumps(event)) for event in events]])
    return {**rows_of(run.changes), "rebalances": run.rows()}


def write(root: Path, rows: dict[str, list[Row]], groups: int) -> None:
    """Write the tables of this many groups with the same past."""
    for name in _NEEDED:
        copies = [
            row | ({"group_id": f"group-{number:05d}"} if "group_id" in row else {})
            for number in range(1 if name == "topics" else groups)
            for row in rows[name]
        ]
        DeltaRsTable(root, TABLES[name]).append(to_arrow(TABLES[name], copies), Mark("bench", 0))


def _spark_s(settings: Settings, root: Path, into: Path) -> float:
    spark = start_session(settings, "replay bench", more=[root])
    try:
        run = ReplayRun(spark, root, into, DeltaRsEngine(), settings.core_config())
        run.run(ReplayRequest(Asked(), group_ids=("group-00000",)))  # workers are started, and classes loaded
        begin = time.perf_counter()
        run.run(ReplayRequest(Asked(all_strategies=True)))
        return time.perf_counter() - begin
    finally:
        end_session(spark)


def main() -> None:
    """Measure and print."""
    groups = int(os.environ.get("BENCH_GROUPS", "1000"))
    root = Path(tempfile.mkdtemp(prefix="replay-bench-"))
    try:
        rows = past()
        (root / "tables").mkdir()
        write(root / "tables", rows, groups)
        config = load(None, {}).core_config()
        begin = time.perf_counter()
        for _ in range(_ALONE):
            found = replay_figures(
                GivenRows({name: list(rows[name]) for name in _NEEDED}, {}), "bench", "g", Asked((), True), config
            )
        alone = (time.perf_counter() - begin) / _ALONE
        rebalances = len(rows["rebalances"])
        print(f"{groups:,} groups, {rebalances} rebalances and {len(found)} histories each")
        print(f"  in one process: {1 / alone:.1f} groups a second")
        for cores in (1, 2):
            settings = load(None, {"spark.master": f"local[{cores}]"})
            took = _spark_s(settings, root / "tables", root / f"into-{cores}")
            print(f"  Spark, {cores} core(s): {groups / took:.1f} groups a second, ratio {took / (alone * groups):.2f}")
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
