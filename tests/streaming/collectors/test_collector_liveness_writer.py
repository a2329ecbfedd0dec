"""`collect` into a folder leaves a sign of life beside its events, and how it ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.collectors.collector import CollectorStatus
from streaming.commands import collect as module
from streaming.commands.output_logs import OutputLogs
from streaming.machine.stop_request import StopRequest
from streaming.settings.model import load
from streaming.tables.liveness import read_collectors


class FakeCollector:
    """A collector of a cluster that does not answer; its command is to end after the first report."""

    def __init__(self, stop: StopRequest) -> None:
        self._stop = stop

    def start(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""

    def observe_once(self) -> bool:
        """Return that there was an answer."""
        return True

    def status(self) -> CollectorStatus:
        """Report that nobody answers."""
        self._stop.request()
        return CollectorStatus(cluster="c1", state="away", detail="no route")


@pytest.mark.parametrize(("once", "state"), [(False, "stopped"), (True, "finished")])
def test_a_collector_leaves_its_state_and_what_it_knows_of_its_cluster(
    once: bool, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Followed:
        def alone(self, _settings: object, _logs: object, stop: StopRequest) -> FakeCollector:
            return FakeCollector(stop)

    monkeypatch.setattr(module, "FOLLOWED", {"kafka": Followed()})
    overrides = {"kafka.bootstrap_servers": "127.0.0.1:1", "kafka.cluster": "c1"}
    settings = load(overrides=overrides, env={})
    logs = OutputLogs(settings, "kafka", tmp_path, None, tmp_path)

    assert module._collect(settings, "kafka", logs, StopRequest(), once=once) == 0

    [left] = read_collectors(tmp_path)
    assert (left.cluster, left.state, left.problem) == ("c1", state, "the cluster does not answer (no route)")
    assert [path.name for path in (tmp_path / "_collectors").iterdir()] == ["kafka-c1.json"]
