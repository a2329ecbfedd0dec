"""Fleets with planted faults around consumers that hang, queues that nobody reads, commits, losses and crash loops.

Are they found, with their culprits, and nothing else? Around them are groups that are deployed and scaled, and others
that only look as if something were wrong. `python -m tests.simulation.planted [FLEETS]` prints recall and precision of
each finding, and what healthy groups have; the target is 99 %, and for healthy groups their episodes and nothing else.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.core_config import core_config
from tests.simulation.core_run import CoreRun, rows_of
from tests.simulation.fates import FAULTS, HARMLESS, HEALTHY
from tests.simulation.lived_group import LENGTH, MINUTE, START, STEP, SYSTEMS, Event, LivedGroup

BATCH_MS = MINUTE // 2
KINDS = (
    *("queue_stalled", "member_stalled", "group_stalled", "queues_unread", "commits_went_back", "commits_expired"),
    *("retention_risk", "messages_lost", "flapping"),
)


def fleet(seed: int) -> list[LivedGroup]:
    """Return groups of all systems with all faults, the healthy ones, and some that only look otherwise."""
    chance = random.Random(seed)
    return [
        fate(str(seed), system)
        for system in SYSTEMS
        for fate in (*FAULTS, *HEALTHY, *chance.sample(HARMLESS, 4))
        if system in fate.systems
    ]


def tables_of(groups: Sequence[LivedGroup], batch_ms: int = BATCH_MS) -> dict[str, list[Event]]:
    """Return the tables of groups that live in the clusters of one fleet."""
    batches: dict[int, list[bytes]] = {}
    for event in (event for group in groups for event in group.live()):
        batches.setdefault(event["event_time"] // batch_ms, []).append(json.dumps(event).encode())
    for system in SYSTEMS:
        for at in range(START, START + LENGTH + MINUTE, STEP):
            tick = {"schema_version": 1, "event_time": at, "system": system, "cluster": system, "type": "clock"}
            batches.setdefault(at // batch_ms, []).append(json.dumps(tick).encode())
    run = CoreRun(core_config(shards=2))
    for number in sorted(batches):
        run.batch((number + 1) * batch_ms + 1_000, batches[number])
    return rows_of(run.changes)


class Figures(NamedTuple):
    """Findings of a kind: planted, opened, and right: with its culprit, at its time."""

    planted: int
    opened: int
    right: int


def measured(seeds: Iterable[int]) -> tuple[dict[str, Figures], list[str]]:
    """Return the figures of each kind, and what healthy groups have that they should not, or lack."""
    counts: Counter[tuple[str, str]] = Counter()
    unhealthy: list[str] = []
    for seed in seeds:
        groups = fleet(seed)
        tables = tables_of(groups)
        for group in groups:
            rows = [row for row in tables["findings"] if row["group_id"] == group.name]
            episodes = {row["kind"] for row in tables["episodes"] if row["group_id"] == group.name}
            counts.update(("planted", planted.kind) for planted in group.planted)
            for kind, is_right in group.verdicts([row for row in rows if row["kind"] in KINDS]):
                counts["opened", kind] += 1
                counts["right", kind] += is_right
                if not is_right:
                    sys.stderr.write(f"{group.name}: {kind}\n")
            if group.episodes not in (None, episodes):
                unhealthy.append(f"{group.name}: episodes {sorted(episodes)}")
            if isinstance(group, HEALTHY):
                unhealthy += [f"{group.name}: finding {row['kind']}" for row in rows]
    return {kind: Figures(*(counts[name, kind] for name in Figures._fields)) for kind in KINDS}, unhealthy


def main() -> None:
    """Print recall and precision."""
    found, unhealthy = measured(range(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
    for kind, (planted, opened, right) in found.items():
        shares = f"recall {right / planted:7.2%}  precision {right / max(opened, 1):7.2%}"
        sys.stdout.write(f"{kind:18} {planted:5} planted, {opened:5} opened  {shares}\n")
    sys.stdout.write("\n".join([f"of groups without faults: {len(unhealthy)} wrong", *unhealthy, ""]))


if __name__ == "__main__":
    main()
