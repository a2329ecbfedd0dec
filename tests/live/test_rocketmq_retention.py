"""A consumer of a real RocketMQ broker is paused while files of the commit log are deleted that it has yet to read."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.core_config import core_config
from tests.kit import rocketmq_admin as admin
from tests.kit.rocketmq import RocketMq, rocketmq_49, rocketmq_55
from tests.kit.rocketmq_members import RocketMqMember, queues_of, wait_until_assigned
from tests.live.rocketmq_story import Collected, collecting
from tests.simulation.core_run import rows_of, run_of

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]
GROUP, TOPIC = "overtaken", "deleted-in"
_READ, _WAITING = 3, 20
# Groups are evaluated each second.
CONFIG = core_config(stalled_after_ms=3_000, stalled_first_ms=600_000)


@pytest.mark.slow
@pytest.mark.parametrize("start", [rocketmq_55, rocketmq_49])
def test_messages_of_deleted_files_are_lost_to_a_paused_consumer_until_it_goes_on(
    start: Callable[..., AbstractContextManager[RocketMq]],
    new_rocketmq_member: Callable[..., RocketMqMember],
    tmp_path: Path,
) -> None:
    with (
        # Five of these messages fill a file.
        start(tmp_path, {"mappedFileSizeCommitLog": "262144"}) as cluster,
        collecting(cluster, tmp_path / "events", include_groups=(GROUP,)) as collected,
    ):
        cluster.create_topic(TOPIC, 1)
        broker = cluster.broker
        settings = {"persist_interval_ms": 500}
        member = new_rocketmq_member(cluster, GROUP, [TOPIC], instance="slow", settings=settings)
        wait_until_assigned([member], queues_of(TOPIC, 1))
        _put(broker.address, _READ - 1)
        cluster.wait_until(lambda: _committed(broker.address) == _READ - 1, "it has read the first")
        collected.poll()
        member.suspend()
        # The broker holds a pull of before, and answers it.
        _put(broker.address, 1)
        cluster.wait_until(lambda: _committed(broker.address) == _READ, "it has read one more")
        _put(broker.address, _WAITING)
        collected.poll()
        broker.stop()
        # As retention deletes: whole files, the oldest first.
        for file in sorted((tmp_path / "broker-a/store/commitlog").iterdir())[:2]:
            file.unlink()
        broker.start()
        cluster.wait_until(lambda: bool(cluster.member_ids(GROUP)), "the member is back")
        begins = admin.start_of_queue(broker.address, TOPIC, 0)
        assert _READ < begins < _READ + _WAITING
        assert _committed(broker.address) == _READ
        _poll_for(collected, 9)
        lost_until = time.time() * 1_000
        member.resume()
        cluster.wait_until(lambda: _committed(broker.address) == _READ + _WAITING, "it has read the rest")
        _poll_for(collected, 3)
    (lost,) = [
        row for row in rows_of(run_of(collected.lines(), CONFIG).changes)["findings"] if row["kind"] == "messages_lost"
    ]
    said = re.search(r"([\d,]+) messages were deleted.*from offset (\d+) on; its log begins at (\d+)", lost["message"])
    assert said is not None
    assert [int(text) for text in said.groups()] == [begins - _READ, _READ, begins]
    assert [(queue["topic"], queue["broker"], queue["queue_id"]) for queue in lost["queues"]] == queues_of(TOPIC, 1)
    assert [named["member_id"] for named in lost["members"]] == ["127.0.0.1@slow"]
    assert "no commit is before the start of its log any more" in lost["message"]
    assert lost["opened_at"] < lost_until < lost["closed_at"]


def _put(address: str, number: int) -> None:
    for _ in range(number):
        admin.put_message(address, TOPIC, 0, b"x" * 50_000)


def _committed(address: str) -> int:
    return admin.committed_offset(address, GROUP, TOPIC, 0)


def _poll_for(collected: Collected, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        collected.poll()
        time.sleep(0.3)
