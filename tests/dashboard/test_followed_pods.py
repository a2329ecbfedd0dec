"""A collector of pods that is refused, or killed, is on the page, in the metrics, in alerts and in `check`."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from streaming.alerts.findings_reader import FindingsReader
from streaming.machine import clock
from streaming.settings.model import Dashboard
from streaming.tables.materializer import Materializer
from tests.core_config import core_config
from tests.kit.kubernetes_server import TOKEN, KubernetesServer, kubernetes_server
from tests.streaming.alerts.planted import widespread
from tests.streaming.collectors.kubernetes.objects import pod
from tests.streaming.collectors.kubernetes.test_collector import Follower
from tests.streaming.tables.test_materializer import write
from tests.streaming.views.story import run, write_story
from udfs.ingest.parser import parse
from udfs.model.annotations import Annotation, annotation_change


class Scene:
    """A server, a collector, tables, and a page that is open; time passes in steps."""

    def __init__(self, root: Path, server: KubernetesServer, client: TestClient) -> None:
        self.root, self.server, self.client = root, server, client
        self.follower = Follower(server, root)
        self.alerts = FindingsReader(root / "tables", widespread(), lambda: clock.now_ms())
        self._batch = 100

    def collect(self) -> None:
        """Let the collector list and write, and the job and the server follow."""
        self.follower.collector.observe_once()
        lines = [
            line for file in sorted(self.follower.folder.glob("*.jsonl")) for line in file.read_bytes().splitlines()
        ]
        read = [parse(line, clock.now_ms(), core_config()) for line in lines]
        self._batch += 1
        write(
            self.root / "tables",
            [annotation_change(each) for each in read if isinstance(each, Annotation)],
            self._batch,
        )
        Materializer(self.root / "tables", 0).run()

    def shown(self) -> tuple[list[str], str, list[str], str]:
        """Return the samples of the metrics, the page, what alerts would send, and what `check` says."""
        self.client.app._app.state.reading.tables.refresh()  # type: ignore[attr-defined]
        metrics = [
            line for line in self.client.get("/metrics").text.splitlines() if "platform" in line and line[0] != "#"
        ]
        found = self.alerts.read(set()).current.values()
        sent = [row["message"] for row in found if row["kind"] == "pods_unknown"]
        return metrics, self.client.get("/").text, sent, run(self.root / "tables", "check").stdout


def test_a_collector_that_is_refused_or_killed_is_named_everywhere(
    tmp_path: Path, settings: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, ahead = clock.now_ms, [0]
    for place in ("machine.clock", "collectors.kubernetes.collector"):
        monkeypatch.setattr(f"streaming.{place}.now_ms", lambda: real() + ahead[0])
    monkeypatch.setattr("dashboard.reading.snapshots.now_ms", lambda: real() + ahead[0])
    write_story(tmp_path / "tables")
    with kubernetes_server() as server, TestClient(create_app(tmp_path / "tables", settings)) as client:
        scene = Scene(tmp_path, server, client)
        metrics, page, sent, checked = scene.shown()
        assert (metrics, sent) == ([], [])
        server.put("pods", pod("a", "10.0.0.7", 10))
        scene.collect()
        metrics, page, sent, checked = scene.shown()
        assert metrics == ['rebalance_monitor_platform_known{platform="k"} 1.0']
        assert "kubernetes cluster k" not in page + checked
        server.token, ahead[0] = "another", 100_000
        scene.collect()
        metrics, page, sent, checked = scene.shown()
        assert metrics[0] == 'rebalance_monitor_platform_known{platform="k"} 0.0'
        assert metrics[1].startswith("rebalance_monitor_platform_blind_since_timestamp_seconds")
        assert "The pods of kubernetes cluster k are not known since" in page
        assert "not accepted (401)" in page
        assert "not accepted (401)" in checked
        [message] = sent
        assert message.startswith("The pods of kubernetes cluster k are not known since 20")
        assert '"pods_unknown"' in client.get("/api/v1/findings").text
        assert 'kind="pods_unknown",severity="warning"} 1.0' in client.get("/metrics").text
        # It is killed: no table changes any more, and time alone shows it.
        server.token = TOKEN
        scene.collect()
        assert scene.shown()[0] == ['rebalance_monitor_platform_known{platform="k"} 1.0']
        ahead[0] += 100_000
        metrics, page, sent, checked = scene.shown()
        assert metrics[0] == 'rebalance_monitor_platform_known{platform="k"} 0.0'
        assert all("its collector has written nothing since" in text for text in (page, checked, *sent))
        assert len(sent) == 1
