"""One job that follows a RocketMQ and a MetaQ cluster at once, and collectors whose folder another job reads."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.job.commands import ManyRuns
from tests.kit.brokers import Broker
from tests.kit.members import Member
from tests.kit.metaq import MetaqCluster
from tests.kit.metaq_members import MetaqMember, partitions_of, wait_until_shared
from tests.kit.rocketmq import RocketMq
from tests.kit.rocketmq_members import RocketMqMember, queues_of, wait_until_assigned
from tests.kit.topics import create_topic
from tests.live.job import SELDOM
from tests.live.tables import membership, owners, rows_of

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]
_TOPIC = "both-orders"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "monitor.toml"
    path.write_text(f"{SELDOM}\n[rocketmq]\nrunning_info_share = 1.0\n")
    return path


def test_two_clusters_are_followed_by_one_job_which_continues_after_a_stop(
    rocketmq55: RocketMq,
    metaq: MetaqCluster,
    new_rocketmq_member: Callable[..., RocketMqMember],
    new_metaq_member: Callable[..., MetaqMember],
    runs: ManyRuns,
    config: Path,
    tmp_path: Path,
) -> None:
    rocketmq55.create_topic(_TOPIC, 5)
    first = new_rocketmq_member(rocketmq55, "both", [_TOPIC], instance="a")
    wait_until_assigned([first], queues_of(_TOPIC, 5))
    old = new_metaq_member(metaq, "both", ["kit-orders"], consumer_id="a")
    wait_until_shared([old], partitions_of("kit-orders", 12))

    tables = tmp_path / "tables"
    arguments: list[str | Path] = ["run", "--tables", tables, "--checkpoint", tmp_path / "checkpoint"]
    arguments += ["--rocketmq", rocketmq55.address, "--cluster", "rocketmq=new", "--config", config]
    arguments += ["--metaq", f"{metaq.zookeeper.address}{metaq.root}", "--cluster", "metaq=old"]
    running = runs.start(arguments)
    running.wait_until(lambda: len(owners(tables, "new", "both", _TOPIC, "reported")) == 1, "what RocketMQ says")
    running.wait_until(lambda: len(owners(tables, "old", "both", "kit-orders", "reported")) == 1, "MetaQ says")
    assert membership(tables, "new", "both") == membership(tables, "old", "both") == ["group_created"]
    running.signal(signal.SIGTERM)
    ended = running.wait()
    assert ended.exit_code == 0, ended.stderr[-3000:]
    second = new_rocketmq_member(rocketmq55, "both", [_TOPIC], instance="b")
    wait_until_assigned([first, second], queues_of(_TOPIC, 5))
    running = runs.start(arguments)
    running.wait_until(lambda: len(owners(tables, "new", "both", _TOPIC, "reported")) == 2, "who joined meanwhile")
    running.wait_until(lambda: len(owners(tables, "new", "both", _TOPIC, "computed")) == 2, "and what is due to it")
    held = {
        member.client_id: {(broker, number) for _, broker, number in member.held(_TOPIC)} for member in (first, second)
    }
    assert owners(tables, "new", "both", _TOPIC, "computed") == held
    running.wait_until(lambda: owners(tables, "new", "both", _TOPIC, "reported") == held, "what both hold")
    running.signal(signal.SIGINT)
    assert running.wait().exit_code == 0
    assert membership(tables, "new", "both") == ["group_created", "member_joined"]
    assert membership(tables, "old", "both") == ["group_created"]
    assert "Traceback" not in ended.stderr


def test_a_folder_that_a_collector_wrote_is_read_like_the_cluster_itself(
    rocketmq55: RocketMq,
    new_rocketmq_member: Callable[..., RocketMqMember],
    runs: ManyRuns,
    config: Path,
    tmp_path: Path,
) -> None:
    rocketmq55.create_topic("replayed", 4)
    member = new_rocketmq_member(rocketmq55, "replayed", ["replayed"], instance="a")
    wait_until_assigned([member], queues_of("replayed", 4))
    where = ["--rocketmq", rocketmq55.address, "--cluster", "c", "--include-group", "replayed", "--config", config]
    out, tables = tmp_path / "events", tmp_path / "tables"
    folders = ["--events", out, "--tables", tables, "--checkpoint", tmp_path / "checkpoint", "--config", config]
    for arguments in (["collect", *where, "--out", out, "--once"], ["run", *folders, "--once", "--flush"]):
        ended = runs.run(arguments)
        assert ended.exit_code == 0, ended.stderr[-3000:]
    assert membership(tables, "c", "replayed") == ["group_created"]
    everything = {member.client_id or "": {("broker-a", number) for number in range(4)}}
    assert owners(tables, "c", "replayed", "replayed", "computed") == everything
    assert owners(tables, "c", "replayed", "replayed", "reported") == everything
    assert rows_of(tables, "rejected_events") == []


def test_one_complete_poll_of_a_cluster_of_each_system(
    kafka41: Broker,
    rocketmq55: RocketMq,
    metaq: MetaqCluster,
    new_member: Callable[..., Member],
    new_rocketmq_member: Callable[..., RocketMqMember],
    new_metaq_member: Callable[..., MetaqMember],
    runs: ManyRuns,
    config: Path,
    tmp_path: Path,
) -> None:
    create_topic(kafka41, "looked-at", 3)
    of_kafka = new_member(kafka41, "looked", ["looked-at"], client_id="a")
    of_kafka.wait_until(lambda: len(of_kafka.owned) == 3)
    rocketmq55.create_topic("looked-at", 4)
    of_rocketmq = new_rocketmq_member(rocketmq55, "looked", ["looked-at"], instance="a")
    wait_until_assigned([of_rocketmq], queues_of("looked-at", 4))
    of_metaq = new_metaq_member(metaq, "looked", ["kit-orders"], consumer_id="a")
    wait_until_shared([of_metaq], partitions_of("kit-orders", 12))

    tables = tmp_path / "tables"
    arguments: list[str | Path] = ["run", "--tables", tables, "--checkpoint", tmp_path / "checkpoint", "--once"]
    arguments += ["--flush", "--include-group", "looked", "--config", config]
    arguments += ["--kafka", kafka41.bootstrap, "--cluster", "kafka=k"]
    arguments += ["--rocketmq", rocketmq55.address, "--cluster", "rocketmq=r"]
    arguments += ["--metaq", f"{metaq.zookeeper.address}{metaq.root}", "--cluster", "metaq=m"]
    ended = runs.run(arguments)
    assert ended.exit_code == 0, ended.stderr[-3000:]
    for cluster, topic, queues in (("k", "looked-at", 3), ("r", "looked-at", 4), ("m", "kit-orders", 12)):
        assert membership(tables, cluster, "looked") == ["group_created"], cluster
        (computed,) = owners(tables, cluster, "looked", topic, "computed").values()
        (reported,) = owners(tables, cluster, "looked", topic, "reported").values()
        assert computed == reported, cluster
        assert len(computed) == queues, cluster
