"""The rights that the monitor has, and needs, on a broker that checks rights."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.collectors.kafka import permissions
from streaming.collectors.kafka.options import KafkaOptions
from streaming.collectors.kafka.permissions import check_rights, offsets_partitions, refuse_without, require_topic
from streaming.setup.errors import SetupError
from tests.kit.brokers import Broker, kafka_41
from tests.kit.processes import free_port
from tests.kit.rights import allow, forbid_everything

pytestmark = pytest.mark.broker
_RIGHTS_ARRIVE_S = 60.0


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that lacks a right, or cannot log in, asks until the time is over: here for three seconds, not ten."""
    monkeypatch.setattr(permissions, "_TIMEOUT_S", 3.0)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker whose user `monitor` has only the rights that a test gives it."""
    with kafka_41(tmp_path_factory.mktemp("guarded"), users={"monitor": "of-the-monitor"}) as broker:
        offsets_partitions(_options(broker, "admin"))
        yield broker


def _options(broker: Broker, user: str = "monitor", **changed: str) -> KafkaOptions:
    properties = {key: value for key, value in broker.java_settings(user).items() if key != "bootstrap.servers"}
    return KafkaOptions(
        broker.bootstrap, "c", properties | {key.replace("_", "."): text for key, text in changed.items()}
    )


def _missing(broker: Broker) -> set[tuple[str, str, str, bool]]:
    return {(right.operation, right.resource, right.name, right.needed) for right in check_rights(_options(broker))}


def _give(broker: Broker, *rights: tuple[str, str, str]) -> set[tuple[str, str, str, bool]]:
    """Grant just these rights; return the missing ones once the broker applies the change."""
    forbid_everything(broker, "monitor")
    for operation, kind, name in rights:
        allow(broker, "monitor", operation, kind, name)
    deadline = time.monotonic() + _RIGHTS_ARRIVE_S
    while len(missing := _missing(broker)) != 3 - len(rights) and time.monotonic() < deadline:
        pass
    return missing


ALL = {
    ("Read", "topic", "__consumer_offsets", True),
    ("Describe", "group", "spark-kafka-source", True),
    ("Describe", "topic", "*", False),
}
READ, GROUP, TOPICS = ("READ", "TOPIC", "__consumer_offsets"), ("DESCRIBE", "GROUP", "*"), ("DESCRIBE", "TOPIC", "*")


@pytest.mark.parametrize("without", range(3))
def test_each_missing_right_is_named(guarded: Broker, without: int) -> None:
    rights = [READ, GROUP, TOPICS]
    named = ["__consumer_offsets", "spark-kafka-source", "*"][without]
    del rights[without]
    assert {name for _, _, name, _ in _give(guarded, *rights)} == {named}


def test_without_any_right_all_are_named_with_the_lines_that_give_them(guarded: Broker) -> None:
    assert _give(guarded) == ALL
    with pytest.raises(SetupError) as error:
        refuse_without(check_rights(_options(guarded)), _options(guarded))
    lines = [line.strip() for line in str(error.value).splitlines() if "kafka-acls.sh" in line]
    begin = f"kafka-acls.sh --bootstrap-server {guarded.bootstrap} --add --allow-principal User:monitor"
    assert lines == [
        f"{begin} --operation Read --topic '__consumer_offsets'",
        f"{begin} --operation Describe --group 'spark-kafka-source' --resource-pattern-type prefixed",
        f"{begin} --operation Describe --topic '*'",
    ]


def test_with_all_rights_nothing_is_missing(guarded: Broker) -> None:
    _give(guarded, READ, GROUP, TOPICS)
    assert check_rights(_options(guarded)) == []
    assert offsets_partitions(_options(guarded)) == 1


def test_a_right_that_is_not_required_stops_no_start(guarded: Broker) -> None:
    _give(guarded, READ, GROUP)
    missing = check_rights(_options(guarded))
    assert [right.name for right in missing] == ["*"]
    refuse_without(missing, _options(guarded))


def test_a_wrong_password_is_an_error_and_not_shown(guarded: Broker) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    wrong = _options(guarded, sasl_jaas_config=f'{module} required username="monitor" password="hunter2";')
    with pytest.raises(SetupError, match="rejects monitor") as error:
        check_rights(wrong)
    assert "hunter2" not in str(error.value)


def test_a_broker_that_speaks_no_tls_is_an_error(guarded: Broker) -> None:
    with pytest.raises(SetupError, match=r"SSL|TLS"):
        check_rights(_options(guarded, security_protocol="SASL_SSL"))


def test_an_absent_broker_is_an_error() -> None:
    with pytest.raises(SetupError, match=r"no Kafka broker can be reached: .*refused"):
        check_rights(KafkaOptions(f"127.0.0.1:{free_port()}", "c"))


def test_properties_that_no_client_takes_are_named(each_kafka: Broker) -> None:
    with pytest.raises(SetupError, match=r"security\.protocol") as refused:
        check_rights(KafkaOptions(each_kafka.bootstrap, "c", {"security.protocol": "NONSENSE"}))
    assert "--kafka-option" in refused.value.remedy


def test_a_topic_of_events_is_checked_before_anything_starts(each_kafka: Broker) -> None:
    options = KafkaOptions(each_kafka.bootstrap, "c")
    offsets_partitions(options)
    require_topic(options, "__consumer_offsets")
    with pytest.raises(SetupError, match="the topic nowhere"):
        require_topic(options, "nowhere")
    with pytest.raises(SetupError, match="the topic no name"):
        require_topic(options, "no name")


def test_a_cluster_without_any_group_gets_its_topic_and_needs_no_rights(each_kafka: Broker) -> None:
    options = KafkaOptions(each_kafka.bootstrap, "c")
    assert offsets_partitions(options) == 1
    assert check_rights(options) == []


def test_the_job_names_what_is_missing_and_ends_with_2_before_spark_starts(guarded: Broker, tmp_path: Path) -> None:
    _give(guarded)
    login = guarded.java_settings("monitor")
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("rebalance-monitor")),
            *("run", "--kafka", guarded.bootstrap, "--cluster", "c"),
            *("--tables", str(tmp_path / "tables"), "--checkpoint", str(tmp_path / "checkpoint")),
            *("--kafka-option", f"security.protocol={login['security.protocol']}"),
            *("--kafka-option", f"sasl.mechanism={login['sasl.mechanism']}"),
            *("--kafka-option", f"sasl.jaas.config={login['sasl.jaas.config']}"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert "Read on topic __consumer_offsets" in done.stderr
    assert "Describe on groups that begin with spark-kafka-source" in done.stderr
    assert "of-the-monitor" not in done.stderr
    assert not (tmp_path / "tables").exists()
