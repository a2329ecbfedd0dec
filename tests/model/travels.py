"""The law of cuts for whole histories, by ingest, packets, state and exports: the same rows whichever way they go."""

from __future__ import annotations

import copy
import random
from dataclasses import replace

import msgspec

from tests.model.check import Batches, one_batch, single_events, some_batches, story
from tests.model.conditions import Conditions
from tests.model.core_tables import run_core
from tests.model.disturbances import History, delay_many
from tests.model.first_knowledge import add_first_knowledge
from tests.model.histories import FEATURES, history
from udfs.model.journal import Rejected

# An event ahead of all others is dated by its batch; one that is late is delayed here.
_FEATURES = frozenset(FEATURES) - {"ahead", "late"}
Way = tuple[Batches, Conditions]


def travelling_history(seed: int) -> History:
    """Return the history of a seed with first knowledge of every kind; of every second one some events come late."""
    made = history(seed, _FEATURES)
    chance = random.Random(seed + 1_000_003)
    add_first_knowledge(chance, made)
    if seed % 2:
        made.features |= {"late"}
        delay_many(chance, made)
    return made


def ways(made: History) -> list[Way]:
    """Return the ways in which a history goes that must not show: cuts, shard counts, exports in between.

    What comes late depends on the cut, and on nothing else: such a history is cut in one way only.
    """
    chance = random.Random(made.seed + 17)
    moves = tuple(chance.choice((1, 2, 3, 5)) for _ in range(4))
    # One batch for each event takes long.
    some, single = some_batches(made), single_events(made) if made.seed % 16 < 2 else some_batches(made, 12)
    if "late" in made.features:
        return [
            (single, made.how),
            (single, replace(made.how, shards=3)),
            (single, replace(made.how, shards=2, moves=moves)),
        ]
    return [
        (one_batch(made), made.how),
        (some, replace(made.how, shards=2)),
        (single, replace(made.how, shards=3)),
        (some, replace(made.how, shards=2, moves=moves)),
    ]


def rows(way: Way) -> list[bytes]:
    """Return all rows that are decided on a way as a bag, without what may differ."""
    run = run_core(*way)
    plain = []
    for row in (*run.rebalances, *run.changes, *run.rejected, *run.progress):
        row = copy.copy(row)
        if hasattr(row, "detected_at"):
            row.detected_at = 0
        if isinstance(row, Rejected):
            row.seen_at, row.source, row.position = 0, "", ""
        plain.append(msgspec.json.encode(row, order="deterministic"))
    return sorted(plain)


def first_difference(made: History) -> str | None:
    """Return the smallest part of a history whose rows depend on its way, with these rows; None: no part."""
    first, *others = ways(made)
    expected = rows(first)
    for other in others:
        if rows(other) != expected:
            return _shown(*_smallest(first, other))
    return None


def _smallest(first: Way, second: Way) -> tuple[Way, Way]:
    """Return what is left of two ways of one history when no event can be taken without the difference being lost."""
    kept = {id(event) for batch in first[0] for event in batch}

    def part(way: Way, kept: set[int]) -> Way:
        batches = [[event for event in batch if id(event) in kept] for batch in way[0]]
        return [batch for batch in batches if batch], way[1]

    changed = True
    while changed:
        changed = False
        for index in sorted(kept):
            less = kept - {index}
            if less and rows(part(first, less)) != rows(part(second, less)):
                kept, changed = less, True
    return part(first, kept), part(second, kept)


def _shown(first: Way, second: Way) -> str:
    lines = [str(first[1]), story(first[0]), str(second[1]), story(second[0])]
    before, after = rows(first), rows(second)
    lines += [f"  only there: {row.decode()}" for row in before if row not in after]
    lines += [f"  only here:  {row.decode()}" for row in after if row not in before]
    return "\n".join(lines)
