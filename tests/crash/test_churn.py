"""Members of all kinds come, go and hang at random, brokers die: no generation is lost, none is invented."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
from confluent_kafka.admin import AdminClient

from tests.crash.churn_run import Churn, cheap_kinds
from tests.crash.churn_truth import GroupTruth, Queue, Row, read_truth, spans_at
from tests.job.commands import ManyRuns
from tests.kit.brokers import Broker
from tests.kit.kafka_cluster import three_brokers
from tests.live.collecting import collecting, run_of_folder
from tests.live.job import RunningJob, running_job
from tests.simulation.core_run import rows_of

# CHURN_SEED=7 makes other choices; CHURN_MINUTES=20 changes the length of the long run.
SEED = int(os.environ.get("CHURN_SEED", "1"))
_SHORT_S = 45.0
_BRIEF_S = 12.0
_LONG_S = 60.0 * float(os.environ.get("CHURN_MINUTES", "60"))
_FAR = 1 << 60
_EMPTY_S, _POLL_S = 60.0, 0.3
# Share of results recomputed differently: 2 of 2,017 rows in twenty minutes, one because the leader had older metadata.
_MOST_OTHERWISE, _SHARE_OTHERWISE = 1, 0.002


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.parametrize(
    "length_s",
    [
        # It waits at times for minutes until members share their queues again: too long for every run of the tests.
        pytest.param(_SHORT_S, marks=[pytest.mark.slow, pytest.mark.timeout(1_200)], id="short"),
        pytest.param(_LONG_S, marks=[pytest.mark.slow, pytest.mark.timeout(7_200)], id="long"),
    ],
)
def test_no_generation_is_lost_or_invented(
    length_s: float, runs: ManyRuns, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with three_brokers(tmp_path / "cluster") as cluster:
        churn = Churn(cluster, SEED, length_s)
        names = [kind.name for kind in churn.kinds]
        churn.prepare()
        with running_job(runs, cluster, tmp_path / "job") as job:
            try:
                churn.run()
                held = churn.held()
                truth = read_truth(cluster, names)
                job.wait_for(lambda: _follows(job, truth), "the last generation of each group")
                truth = read_truth(cluster, names)
                assert job.stop() == 0
            finally:
                churn.close()
        rebalances, assignments = job.rows("rebalances"), job.rows("assignments")
    with capsys.disabled():
        sys.stdout.write(figures(churn, truth, rebalances))
    _check(truth, rebalances, assignments, held, tmp_path)
    assert job.rows("rejected_events") == []


@pytest.mark.broker
@pytest.mark.timeout(300)
def test_no_generation_is_lost_or_invented_beside_one_broker(
    kafka41: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    churn = Churn(kafka41, SEED, _BRIEF_S, cheap_kinds("churn"))
    names = [kind.name for kind in churn.kinds]
    churn.prepare()
    live, later = tmp_path / "live", tmp_path / "later"
    with collecting(kafka41, live):
        try:
            churn.run()
        finally:
            churn.close()
        # A member that has not left has expired by then.
        _wait_until_empty(kafka41, names)
    with collecting(kafka41, later):
        pass  # one that starts when all is over finds the same
    truth = read_truth(kafka41, names)
    for folder in (live, later):
        run = run_of_folder(folder)
        rebalances = [msgspec.to_builtins(rebalance) for rebalance in run.rebalances if rebalance.group_id in names]
        with capsys.disabled():
            sys.stdout.write(figures(churn, truth, rebalances))
        _check(truth, rebalances, rows_of(run.changes)["assignments"], {name: {} for name in names}, folder)


def _wait_until_empty(broker: Broker, groups: Sequence[str]) -> None:
    client = AdminClient({**broker.client_settings()})
    deadline = time.monotonic() + _EMPTY_S
    while any(future.result(_EMPTY_S).members for future in client.describe_consumer_groups(list(groups)).values()):
        assert time.monotonic() < deadline
        time.sleep(_POLL_S)


def _check(
    truth: dict[str, GroupTruth],
    rebalances: list[Row],
    assignments: list[Row],
    held: Mapping[str, Mapping[str, list[Queue]]],
    folder: Path,
) -> None:
    """Compare rows with the records, and the last owners with what members hold, by group and name."""
    found = [
        (group, f"{name}: {what}")
        for name, group in truth.items()
        for what in group.contradictions(
            [row for row in rebalances if row["group_id"] == name], _reported(assignments, name)
        )
    ]
    wrong = [what for group, what in found if not group.is_recomputed(what.partition(": ")[2])]
    (folder / "truth.txt").write_text("\n".join(what for _, what in found))
    assert not wrong, "\n".join(wrong)
    assert len(found) <= max(_MOST_OTHERWISE, _SHARE_OTHERWISE * len(rebalances)), "\n".join(what for _, what in found)
    for name, members in held.items():
        names = truth[name].clients | truth[name].instances
        now = spans_at(_reported(assignments, name), _FAR)
        assert {names[member_id]: queues for member_id, queues in now.items()} == {
            member_id: queues for member_id, queues in members.items() if queues
        }, name
        assert spans_at(_of(assignments, name, "computed"), _FAR) == now, name


def _follows(job: RunningJob, truth: dict[str, GroupTruth]) -> bool:
    """Return whether the tables have what members of each group own at last, and its last generation that counts."""
    spans, rows = job.rows("assignments"), job.rows("rebalances")
    for name, group in truth.items():
        if not group.generations:
            continue
        last = group.generations[-1].held if group.is_classic else group.held_at(_FAR)
        mine = [row["generation"] for row in rows if row["group_id"] == name]
        if not mine or spans_at(_reported(spans, name), _FAR) != last:
            return False
        if group.is_classic and max(mine) < group.generations[-1].number:
            return False
    return True


def _reported(assignments: list[Row], group: str) -> list[Row]:
    return _of(assignments, group, "reported")


def _of(assignments: list[Row], group: str, origin: str) -> list[Row]:
    return [row for row in assignments if (row["group_id"], row["origin"]) == (group, origin)]


def figures(churn: Churn, truth: dict[str, GroupTruth], rows: list[Row]) -> str:
    """Return the events of a run and the rows about them, in a few lines."""
    generations = {name: len(group.generations) for name, group in truth.items()}
    causes = Counter(cause["kind"] for row in rows for cause in row["triggers"])
    agrees = Counter(str(row["agrees_reason"] or row["agrees"]) for row in rows)
    unexplained = sum(row["trigger"] == "unexplained" for row in rows)
    ends: Counter[str] = Counter()
    for row in rows:
        group = truth.get(row["group_id"])
        for trigger in row["triggers"]:
            if group is not None and trigger["kind"] in ("member_left", "session_expired", "member_gone"):
                done = churn.ends.get(group.clients.get(trigger["member_id"], ""), [])
                ends[f"{'/'.join(sorted(set(done))) or 'nothing'}: {trigger['kind']}"] += 1
    return (
        f"\nchurn, seed {churn.seed}, {churn.length_s:.0f} s: {dict(sorted(churn.deeds.items()))}\n"
        f"generations by the records: {sum(generations.values())} {generations}; rows: {len(rows)}\n"
        f"causes: {dict(causes.most_common())}; unexplained: {unexplained} of {len(rows)}\n"
        f"recomputed: {dict(agrees.most_common())}\n"
        f"how members ended, and what was reported: {dict(sorted(ends.items()))}\n"
    )
