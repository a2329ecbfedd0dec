"""Each way in which knowledge ends, played with a limit of eight seconds instead of thirty."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from tests.live.blind_reader import Reader, Said
from tests.live.blind_scenes import SCENES, Scene, Way

_LIMIT_S = 8
# The same rule, sooner: the job's liveness each second, blind after eight.
SOON = {
    "REBALANCE_MONITOR_JOB__LIVENESS_INTERVAL_MS": "1000",
    "REBALANCE_MONITOR_TIME__SOURCE_SILENT_AFTER_MS": str(1_000 * _LIMIT_S),
    "REBALANCE_MONITOR_KAFKA__POLL_INTERVAL_MS": "1000",
    "REBALANCE_MONITOR_ROCKETMQ__POLL_INTERVAL_MS": "1000",
    "REBALANCE_MONITOR_METAQ__POLL_INTERVAL_MS": "1000",
    "REBALANCE_MONITOR_JOB__MATERIALIZE_INTERVAL_MS": "1000",
    "REBALANCE_MONITOR_ALERTS__GROUP_WAIT_MS": "1000",
    "REBALANCE_MONITOR_ALERTS__POLL_INTERVAL_MS": "1000",
}
# Users' settings allow fifteen seconds beyond the limit; on a busy machine the readers may need as long again to
# answer.
_LATEST_S = _LIMIT_S + 15 + 15


def play(scene: Scene, way: Way, *, says: str, alerts: str = "") -> Said:
    """Play one way: nothing says that all is well for long; why is said, and alerted; and then it is over.

    The cluster is known to the scene's own reader before, and after.

    Args:
        says: What `check` says sooner or later. alerts: The kind that is alerted; empty: any, or none.

    Returns:
        What was said when all of that was so.
    """
    watched = scene.watched
    if way.reader is not None:
        watched.wait_until_known(way.reader)
    began = time.monotonic()
    way.end()
    if way.stays_known:
        # With so short a limit it may be blind for a moment, until the clients have found the brokers that are left.
        time.sleep(_LIMIT_S)
        known = watched.wait_for(
            lambda said: said.silent == [] and says in said.notice, f"{way.name}: {says}", way.reader
        )
        way.recover()
        watched.wait_until_known(way.reader)
        return known
    blind = watched.wait_for(
        lambda said: said.ok == [], "nothing says that all is well", way.reader, first=Reader.seems_blind
    )
    took_s = time.monotonic() - began
    assert took_s < _LATEST_S, f"{way.name}: {took_s:.0f} s"

    def is_reported(said: Said) -> bool:
        assert said.ok == [], (way.name, said)
        return says in said.line and (not alerts or alerts in said.alerts)

    def is_alerted(reader: Reader) -> bool:
        assert reader.seems_blind(), way.name
        return not alerts or reader.has_alerted(alerts)

    reported = blind
    if not is_reported(blind):
        reported = watched.wait_for(is_reported, f"{way.name}: {says}", way.reader, first=is_alerted)
    # With so short a limit a finding may be open for a moment longer, of a cluster that is partly known again.
    assert reported.exit_code in (2, 3)
    way.recover()
    watched.wait_until_known(way.reader)
    return reported


def play_scene(name: str, folder: Path, reported: Mapping[str, tuple[str, str]]) -> None:
    """Play ways of a scene; each has what `check` says, and what is alerted. `make blindness` plays all of them."""
    with SCENES[name](folder, SOON) as scene:
        ways = {way.name: way for way in scene.ways}
        for name_of_way, (says, alerts) in reported.items():
            play(scene, ways[name_of_way], says=says, alerts=alerts)
