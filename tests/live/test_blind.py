"""A broker or a job goes away: nothing says OK any more, each says why while it lasts, and it is over afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.tables.schema import TABLES
from streaming.views.reader import Reader
from tests.kit.brokers import Broker, kafka_41
from tests.live.blindness import CLUSTER, WAYS, Watched, watched

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]

# The same rule, sooner: the job's sign each second, blind after eight.
SOON = {
    "REBALANCE_MONITOR_JOB__LIVENESS_INTERVAL_MS": "1000",
    "REBALANCE_MONITOR_TIME__SOURCE_SILENT_AFTER_MS": "8000",
    "REBALANCE_MONITOR_KAFKA__POLL_INTERVAL_MS": "1000",
    "REBALANCE_MONITOR_JOB__MATERIALIZE_INTERVAL_MS": "1000",
}
BROKER_WAYS = {way.name: way for way in WAYS if way.name.startswith("broker")}
JOB_WAYS = {way.name: way for way in WAYS if way.name.startswith("job")}


def open_silences(one: Watched) -> list[str]:
    assert "findings" in TABLES
    rows = Reader(one.tables).rows("findings", where={"kind": "source_silent"})
    return [row["message"] for row in rows if row["closed_at"] is None]


def test_each_way_in_which_knowledge_ends_is_reported_while_it_lasts(tmp_path: Path) -> None:
    (tmp_path / "broker").mkdir()
    with kafka_41(tmp_path / "broker") as broker, watched(tmp_path / "job", ["--kafka", broker.bootstrap], SOON) as one:
        for name in ("broker killed", "broker hangs (SIGSTOP)"):
            _source_away(one, broker, name)
        _job_away(one, broker)


def _source_away(one: Watched, broker: Broker, name: str) -> None:
    way = BROKER_WAYS[name]
    assert way.recover is not None
    way.end(one, broker)
    said = one.wait_until_blind()
    assert said.exit_code == 3
    assert f"{CLUSTER} blind since" in said.line
    one.wait_for(lambda: open_silences(one) != [], "the table of findings has the outage while it lasts")
    one.wait_for(lambda: "does not answer" in one.said().line, "the reason is named")
    assert one.said().alerts == ["source_silent"]
    way.recover(one, broker)
    one.wait_until_known()
    one.wait_for(lambda: open_silences(one) == [], "the outage is over")
    rows = Reader(one.tables).rows("findings", where={"kind": "source_silent"})
    assert len({row["finding_id"] for row in rows}) == len(rows)


def _job_away(one: Watched, broker: Broker) -> None:
    hangs = JOB_WAYS["job hangs (SIGSTOP)"]
    assert hangs.recover is not None
    hangs.end(one, broker)
    said = one.wait_until_blind()
    assert (said.exit_code, said.state, said.alerts) == (3, "unknown", ["job_silent"])
    assert "is stopped by a signal" in said.line
    hangs.recover(one, broker)
    one.wait_until_known()
    JOB_WAYS["job stopped (Ctrl-C)"].end(one, broker)
    said = one.wait_until_blind()
    assert (said.exit_code, said.alerts) == (3, ["job_stopped"])
    assert "the job was stopped at" in said.line
