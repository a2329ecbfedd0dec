"""What being alive costs an idle job: at most 2 % of a core, and one file, on a disk as on a store."""

from __future__ import annotations

import time

from streaming.machine.clock import now_ms
from streaming.pipeline.liveness_writer import LivenessWriter
from streaming.settings.model import load
from streaming.stores.places import Place
from streaming.stores.store_path import StorePath
from streaming.tables.liveness import FOLDER
from udfs.model.journal import ClusterObserved

_MOST_SHARE, _WRITES, _CLUSTERS = 0.02, 40, 1_000


def test_a_write_costs_little_and_leaves_one_file(either_place: Place) -> None:
    every_ms = load().job.liveness_interval_ms
    # No thread writes meanwhile.
    writer = LivenessWriter(every_ms=3_600_000, unknown_after_ms=30_000, live_within_ms=60_000)
    writer.observed(
        ClusterObserved(cluster=f"c{number}", system="kafka", latest_ms=now_ms(), newest_ms=now_ms(), clock_ms=None)
        for number in range(_CLUSTERS)
    )
    writer.start(either_place.uri if isinstance(either_place, StorePath) else either_place, "app")
    began_s = time.process_time()
    for _ in range(_WRITES):
        writer.write()
    share = (time.process_time() - began_s) / (_WRITES * every_ms / 1_000)
    writer.end("stopped")
    assert share < _MOST_SHARE, f"{share:.2%} of a core"
    files = [file.name for file in (either_place / FOLDER).iterdir() if not file.name.startswith(".")]
    assert files == ["app.json"]
