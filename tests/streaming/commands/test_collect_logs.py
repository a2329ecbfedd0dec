"""What a collector of brokers' logs leaves beside its events."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from streaming.commands.collect import _collect
from streaming.commands.output_logs import OutputLogs
from streaming.machine.stop_request import StopRequest
from streaming.settings.model import load
from streaming.tables.liveness import CollectorLiveness


@pytest.mark.parametrize("is_there", [False, True])
def test_logs_that_are_missing_are_a_part_that_is_not_known(tmp_path: Path, is_there: bool) -> None:
    if is_there:
        (tmp_path / "server.log").touch()
    pattern = str(tmp_path / "server.log*")
    settings = load(None, {"kafka.cluster": "c", "kafka.logs": [pattern]}, env={})
    assert (
        _collect(settings, "kafka", OutputLogs(settings, "kafka", tmp_path, None, tmp_path), StopRequest(), once=True)
        == 0
    )
    (file,) = (tmp_path / "_collectors").glob("*.json")
    left = msgspec.json.decode(file.read_bytes(), type=CollectorLiveness)
    missing = "" if is_there else f"no file matches {pattern}: causes of departures are inferred"
    assert (left.cluster, left.problem, left.partial) == ("c", "", missing)
