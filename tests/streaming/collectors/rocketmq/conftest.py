"""Servers that speak the protocol, a collector beside them, and certificates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.certificates import make_certificates
from tests.kit.rocketmq_script import Script
from tests.kit.rocketmq_server import ScriptedRocketMq
from tests.streaming.collectors.rocketmq.collected import Collected

# The longest wait for something that must come; only a failing test waits this long.
_LONG_MS = 60_000


@pytest.fixture(scope="session")
def tls_of_this_machine(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A server's key with its certificate for 127.0.0.1, and the authority that signed it; both PEM."""
    certificates = make_certificates(tmp_path_factory.mktemp("tls"))
    return certificates.server_pem, certificates.authority


@pytest.fixture
def script() -> Script:
    script = Script(["broker-a", "broker-b"])
    script.add_topic("orders", 4)
    script.add_group("billing", ["orders"], members=3)
    return script


@pytest.fixture
def cluster(script: Script) -> Iterator[ScriptedRocketMq]:
    with ScriptedRocketMq(script) as cluster:
        yield cluster


@pytest.fixture
def collected(cluster: ScriptedRocketMq, tmp_path: Path) -> Iterator[Collected]:
    collected = Collected(cluster, tmp_path, broker_timeout_ms=_LONG_MS, client_timeout_ms=_LONG_MS)
    yield collected
    collected.collector.stop()
