"""The whole job beside a real Kafka 4.1 broker that speaks TLS and asks who one is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.collectors.kafka.coordinator_releases import CoordinatorReleases, Place, api_versions, tls_of
from streaming.collectors.kafka.options import KafkaOptions
from streaming.collectors.kafka.permissions import check_rights, offsets_partitions
from streaming.setup.errors import SetupError
from tests.job.commands import ManyRuns
from tests.kit.brokers import Broker, kafka_41
from tests.kit.certificates import make_certificates
from tests.kit.members import Member, wait_until_assigned
from tests.kit.rights import allow
from tests.kit.topics import create_topic
from tests.live.job import running_job
from tests.live.story import partitions
from udfs.kafka.consumer_offsets import EVERY_GROUP
from udfs.strategies.kafka.coordinator_release import COORDINATOR, TODAY

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(1200)]


def test_a_cluster_with_tls_and_a_login_is_followed_and_no_secret_is_shown(
    new_member: Callable[..., Member], runs: ManyRuns, tmp_path: Path
) -> None:
    certificates = make_certificates(tmp_path / "certificates")
    users = {"monitor": "a-password-that-nobody-says"}
    with kafka_41(tmp_path / "broker", users=users, certificates=certificates) as broker:
        offsets_partitions(_options(broker, "admin"))
        for operation, kind, name in (
            ("READ", "TOPIC", "__consumer_offsets"),
            ("DESCRIBE", "GROUP", "*"),
            ("DESCRIBE", "TOPIC", "*"),
        ):
            allow(broker, "monitor", operation, kind, name)
        _refuses_untrusted_clients(broker, tmp_path)
        _reports_the_coordinators_release(broker, _options(broker, "monitor"))
        untrusting = _options(broker, "monitor", make_certificates(tmp_path / "strangers").client_settings())
        with pytest.raises(OSError, match=r"(?i)certificate"):
            api_versions(_place(broker), tls_of(untrusting.librdkafka()))
        create_topic(broker, "orders", 3)
        with running_job(runs, broker, tmp_path / "job", user="monitor") as job:
            member = new_member(broker, "billing", ["orders"], client_id="a")
            wait_until_assigned([member], partitions("orders", 3))
            job.wait_for_generation("billing", 1)
            assert job.stop() == 0
        assert job.agrees(job.generations("billing")[1])
        assert users["monitor"] not in job.stderr()
        assert not [file for file in (tmp_path / "job").rglob("*") if _holds(file, users["monitor"])]


def test_without_the_right_to_read_records_auto_follows_groups_by_admin_calls(
    new_member: Callable[..., Member], runs: ManyRuns, tmp_path: Path
) -> None:
    with kafka_41(tmp_path / "broker", users={"monitor": "of-the-monitor"}) as broker:
        offsets_partitions(_options(broker, "admin"))
        for kind in ("GROUP", "TOPIC"):
            allow(broker, "monitor", "DESCRIBE", kind, "*")
        _reports_the_coordinators_release(broker, _options(broker, "monitor"))
        create_topic(broker, "orders", 3)
        more = ("--kafka-source", "auto")
        with running_job(runs, broker, tmp_path / "job", user="monitor", more=more) as job:
            first = new_member(broker, "billing", ["orders"], client_id="a")
            wait_until_assigned([first], partitions("orders", 3))
            job.wait_for_generation("billing", 1)
            second = new_member(broker, "billing", ["orders"], client_id="b")
            generation = wait_until_assigned([first, second], partitions("orders", 3))
            assert generation is not None
            job.wait_for_generation("billing", generation)
            assert job.stop() == 0
        rows = job.generations("billing")
        assert {row["observed_by"] for row in rows.values()} == {"polls"}
        assert all(map(job.agrees, rows.values()))
        assert '"source": "admin"' in job.stderr()
        assert "Read on topic __consumer_offsets" in job.stderr()


class OneGroup:
    """A cluster with one group of the new protocol, and one broker that coordinates it."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def new_protocol_groups(self) -> list[str]:
        return ["g"]

    def coordinators(self) -> list[Place | None]:
        return [self._place]


def _reports_the_coordinators_release(broker: Broker, options: KafkaOptions) -> None:
    """A broker says which requests it takes before anybody logs in, inside TLS where it speaks that."""
    [event] = CoordinatorReleases(options, EVERY_GROUP).diff(OneGroup(_place(broker)), 0)
    assert event.strategy_settings == {COORDINATOR: TODAY}


def _place(broker: Broker) -> Place:
    host, _, port = broker.bootstrap.rpartition(":")
    return host, int(port)


def _refuses_untrusted_clients(broker: Broker, folder: Path) -> None:
    """Check that the error names the problem if an untrusted authority signed the broker's certificate."""
    others = make_certificates(folder / "others")
    with pytest.raises(SetupError, match=r"(?i)certificate"):
        check_rights(_options(broker, "monitor", others.client_settings()))


def _options(broker: Broker, user: str, changed: dict[str, str] | None = None) -> KafkaOptions:
    properties = {key: value for key, value in broker.java_settings(user).items() if key != "bootstrap.servers"}
    return KafkaOptions(broker.bootstrap, "c", properties | (changed or {}))


def _holds(file: Path, text: str) -> bool:
    return file.is_file() and text.encode() in file.read_bytes()
