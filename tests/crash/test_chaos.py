"""Everything around a group comes and goes at random, the monitor too, and no rebalance is invented or lost."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.crash.chaos_clusters import GROUP, Queue, chaos_cluster
from tests.crash.chaos_run import Chaos
from tests.crash.chaos_script import script
from tests.crash.chaos_truth import Row
from tests.job.commands import ManyRuns
from tests.job.table_bags import repeated_keys, rows_of

# CHAOS_SEED=7 makes other choices; CHAOS_MINUTES=30 lengthens the long run.
SEED = int(os.environ.get("CHAOS_SEED", "1"))
# Long enough for each thing to be away once.
_SHORT_S = 24.0
_LONG_S = 60.0 * float(os.environ.get("CHAOS_MINUTES", "10"))


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.parametrize(
    "length_s",
    [
        pytest.param(_SHORT_S, marks=pytest.mark.timeout(1_200), id="short"),
        pytest.param(_LONG_S, marks=[pytest.mark.slow, pytest.mark.timeout(7_200)], id="long"),
    ],
)
@pytest.mark.parametrize("system", ["rocketmq", pytest.param("metaq", marks=pytest.mark.slow)])
def test_no_rebalance_is_invented_or_lost(
    system: str, length_s: float, runs: ManyRuns, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chaos_cluster(system, tmp_path / "cluster") as cluster:
        chaos = Chaos(cluster, tmp_path / "monitor")
        try:
            things = ("collector", "job", *cluster.things)
            orders = script(SEED, length_s, things)
            assert {order.target for order in orders} >= {*things}, "not all of them go away"
            chaos.run(orders)
            held = chaos.wait_until_reported()
            chaos.stop()
        finally:
            chaos.close()
    drained = chaos.drain(runs)
    assert drained.exit_code == 0, drained.stderr[-3_000:]
    tables = chaos.place / "tables"
    truth = chaos.truth()
    rebalances = [row for row in rows_of(tables, "rebalances").to_pylist() if row["group_id"] == GROUP]
    with capsys.disabled():
        done = Counter(f"{order.target if order.target[0] != 'm' else 'member'} {order.what}" for order in orders)
        sys.stdout.write(
            f"\n{system}, seed {SEED}: {dict(sorted(done.items()))}; {len(truth.clocks)} rounds, "
            f"{len(truth.owed())} of {len(truth.lives)} members owed, {len(rebalances)} rebalances\n"
        )
    (chaos.place / "truth.txt").write_text(f"{truth}\n{dict(chaos.away)}\n")
    contradictions = truth.contradictions(rebalances)
    assert not contradictions, "\n".join(contradictions)
    assert repeated_keys(tables) == []
    assert rows_of(tables, "rejected_events").to_pylist() == []
    now = [
        row for row in rows_of(tables, "assignments").to_pylist() if row["group_id"] == GROUP and not row["valid_to"]
    ]
    assert {origin: _held(now, origin) for origin in ("computed", "reported")} == {"computed": held, "reported": held}
    for stderr in (chaos.output("collector"), chaos.output("job"), drained.stderr):
        assert _uncaught(stderr) == []


def _held(spans: list[Row], origin: str) -> dict[str, list[Queue]]:
    found: dict[str, list[Queue]] = {}
    for span in spans:
        if span["origin"] == origin and not span["topic"].startswith("%"):
            found.setdefault(span["member_id"], []).append((span["topic"], span["broker"], span["queue_id"]))
    return {member: sorted(queues) for member, queues in found.items()}


def _uncaught(stderr: str) -> list[str]:
    """Return the lines of unexpected exceptions; what is logged below an error was expected."""
    signs = ("Traceback", "Exception in thread", "never retrieved", "Unhandled")
    return [line for line in stderr.splitlines() if any(sign in line for sign in signs) and not _is_expected(line)]


def _is_expected(line: str) -> bool:
    try:
        return bool(json.loads(line)["level"] in ("debug", "info", "warning"))
    except ValueError:
        return False
