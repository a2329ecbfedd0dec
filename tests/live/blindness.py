"""What the monitor shows while it is blind, for each way to lose knowledge, at several moments.

`python -m tests.live.blindness [SCENE…]` plays each way against real servers, jobs and readers with the settings of
users, and prints the table of `docs/metrics.md`; it exits with 1 if anything said that all was well 45 s after the end
of knowledge. The tests play the same with a shorter `time.source_silent_after_ms`.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.live.blind_reader import CLUSTER, Said
from tests.live.blind_scenes import SCENES, Scene, Way

MOMENTS_S = (10, 30, 45, 60)
# So long after the last knowledge nothing may say that all is well.
LATEST_S = 45


def main(names: Sequence[str]) -> int:
    """Play every way of these scenes, and print what is said as a table."""
    wrong, rows = 0, []
    print("| what happens | after | check | says | metrics | API | page | alerts | load |")  # noqa: T201
    print("|---|---|---|---|---|---|---|---|---|")  # noqa: T201
    for name in names or SCENES:
        with tempfile.TemporaryDirectory() as folder, SCENES[name](Path(folder) / name, {}) as scene:
            for way in scene.ways:
                reported = _play(scene, way)
                rows.append(_row(way, reported))
                if not way.stays_known:
                    wrong += sum(len(said.ok) for moment_s, said in reported.items() if moment_s >= LATEST_S)
    moments = " | ".join(f"{moment_s} s" for moment_s in MOMENTS_S)
    print(f"\n| what happens | {moments} | `check` says |", *rows, sep="\n")  # noqa: T201
    print(f"\n{wrong} that said OK {LATEST_S} s after the last knowledge")  # noqa: T201
    return 1 if wrong else 0


def _play(scene: Scene, way: Way) -> dict[int, Said]:
    """Play one way; return what was said at each moment."""
    watched, reported = scene.watched, {}
    watched.wait_until_known(way.reader)
    began = time.monotonic()
    way.end()
    for moment_s in MOMENTS_S:
        time.sleep(max(0.0, began + moment_s - time.monotonic()))
        reported[moment_s] = (way.reader or watched.reader).said()
        _print(way.name, f"{time.monotonic() - began:.0f} s", reported[moment_s])
    began = time.monotonic()
    way.recover()
    said = watched.wait_until_known(way.reader)
    _print(way.name, f"{time.monotonic() - began:.0f} s after recovery", said)
    return reported


def _row(way: Way, reported: Mapping[int, Said]) -> str:
    """Return a row of the table in the docs."""
    cells = []
    for said in reported.values():
        state = {0: "unknown", 4: "known"}.get(len(said.ok), f"known: {', '.join(said.ok)}")
        cells.append(", ".join([state, *said.alerts]))
    line = said.line.partition(" - ")[2].partition("; ")[0].replace("|", "¦")
    return f"| {' | '.join([way.name, *cells, line])} |"


def _print(name: str, after: str, said: Said) -> None:
    known = "absent" if said.known is None else f"{said.known:g}"
    alive = "absent" if said.alive is None else f"{said.alive:g}"
    cells = [
        *(name, after, f"{said.exit_code} in {said.check_s:.1f} s", said.line.replace("|", "¦")),
        f"source_known {known}, jobs_alive {alive}, groups {said.groups}",
        f"{CLUSTER} {said.state}, groups {', '.join(said.health) or 'none'}",
        f"{said.page}: {said.notice}",
        *(", ".join(said.alerts), f"{os.getloadavg()[0]:.1f}"),
    ]
    print(f"| {' | '.join(cells)} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
