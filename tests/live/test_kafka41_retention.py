"""A consumer that stands on a real Kafka 4.1 broker, whose log is deleted up to its commit, and beyond it.

When it has left, an administrator resets its commit, and deletes it.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.core_config import core_config
from tests.kit.brokers import Broker
from tests.kit.kafka_tools import change_offsets
from tests.kit.light_members import start_light_member
from tests.kit.topics import create_topic, delete_records, send
from tests.live.collecting import CLUSTER, collecting, run_of_folder
from tests.simulation.core_run import rows_of

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

GROUP, TOPIC = "overtaken", "deleted-in"
_READ, _WAITING, _LOST, _RESET = 1_000, 500, 120, 1_300
_KINDS = ("retention_risk", "messages_lost", "commits_went_back", "commits_expired")
# Standing queues are evaluated three times within this, so each second.
CONFIG = core_config(stalled_after_ms=3_000, stalled_first_ms=60_000)


def test_a_log_that_overtakes_a_standing_consumer_is_a_risk_and_then_a_loss_of_so_many_messages(
    kafka41: Broker, tmp_path: Path
) -> None:
    create_topic(kafka41, TOPIC, 1)
    with ExitStack() as stack:
        stack.enter_context(collecting(kafka41, tmp_path / "events", ends_interval_ms=500))
        member = stack.enter_context(start_light_member(kafka41, GROUP, [TOPIC], {"client.id": "slow"}))
        member.wait_until(lambda: len(member.owned) == 1)
        send(kafka41, TOPIC, [b"read"] * _READ)
        _wait_for_commit(kafka41, _READ)
        member.freeze()
        send(kafka41, TOPIC, [b"waits"] * _WAITING)
        # The log's start approaches the commit, and comes to lie beyond it.
        for start in (_READ - 200, _READ - 100, _READ - 20):
            time.sleep(1.5)
            delete_records(kafka41, TOPIC, start)
        time.sleep(2.5)
        deleted_at = time.time() * 1_000
        delete_records(kafka41, TOPIC, _READ + _LOST)
        time.sleep(9)
        member.thaw()
        _wait_for_commit(kafka41, _READ + _WAITING)
        time.sleep(3)
        member.stop()
        reset_at = time.time() * 1_000
        reset = ["--reset-offsets", "--to-offset", str(_RESET), "--execute"]
        change_offsets(kafka41, GROUP, "--topic", f"{TOPIC}:0", *reset)
        deleted_commit_at = time.time() * 1_000
        change_offsets(kafka41, GROUP, "--topic", TOPIC, "--delete-offsets")
    # The finding that commits expired waits for metadata, which might show that the topic was deleted with them.
    later = {"event_time": round(time.time() * 1_000) + 90_000, "system": "kafka", "cluster": CLUSTER, "type": "clock"}
    (tmp_path / "events" / "z-later.jsonl").write_text(json.dumps({"schema_version": 1, **later}) + "\n")

    found = [row for row in rows_of(run_of_folder(tmp_path / "events", CONFIG).changes)["findings"] if _is_ours(row)]
    risk, lost, back, expired = sorted(found, key=lambda row: row["opened_at"])
    assert (risk["kind"], lost["kind"], back["kind"], expired["kind"]) == _KINDS
    assert risk["opened_at"] < deleted_at < lost["opened_at"]
    assert "the start of the log has passed a commit" in risk["message"]
    assert f"{_LOST} messages were deleted by retention" in lost["message"]
    assert f"from offset {_READ} on; its log begins at {_READ + _LOST}" in lost["message"]
    assert [queue["queue_id"] for queue in lost["queues"]] == [0]
    assert [named["client"].split("@")[0] for named in lost["members"]] == ["slow"]
    assert lost["closed_at"] is not None
    assert reset_at < back["opened_at"] < deleted_commit_at < expired["opened_at"]
    assert f"{TOPIC}-0 from {_READ + _WAITING} to {_RESET}, at most 200 messages" in back["message"]
    assert "The group had no members" in back["message"]
    assert f"{TOPIC}-0 at {_RESET}." in expired["message"]


def _wait_for_commit(broker: Broker, offset: int) -> None:
    reader = Consumer({**broker.client_settings(), "group.id": GROUP})
    deadline = time.monotonic() + 60
    while reader.committed([TopicPartition(TOPIC, 0)], 30)[0].offset < offset:
        assert time.monotonic() < deadline, f"{GROUP} does not commit {offset}"
        time.sleep(0.2)
    reader.close()


def _is_ours(row: dict[str, object]) -> bool:
    return row["group_id"] == GROUP and row["kind"] in _KINDS
