"""Tables of a group of Kafka's new protocol whose members give queues up, and take them over, within the rebalance.

a has orders-0 to 2 and b orders-3 to 5. The epoch of c begins at 40 s: orders-2 passes from a to c between 41.5 s and
42 s, orders-5 from b to c between 46.5 s and 47 s, when the last member has converged.
"""

from __future__ import annotations

from pathlib import Path

from tests.streaming.tables.journals import T0, Journal, assigned, joined, released
from tests.streaming.views.story import rebalance, store
from udfs.model import journal

RECONCILED = "r3"


def reconciled(**more: object) -> dict[str, object]:
    """Return the row of the rebalance."""
    times = {"began_at": T0 + 40_000, "joined_at": T0 + 40_000, "completed_at": T0 + 47_000}
    row = rebalance(RECONCILED, 47_000, "member_joined", "c", queues_moved=2, queues_kept=4, **times)
    return row | {"strategy": "kafka.server.uniform"} | more


def write_reconciled(root: Path) -> None:
    """Write the story's tables."""
    history = Journal()
    happened: list[tuple[int, journal.Body]] = [(0, joined(member, 0, host="h1")) for member in ("a", "b")]
    for queue, owner in enumerate("aaabbb"):
        happened += [(0, assigned(queue, owner, 0, origin="reported")), (0, assigned(queue, owner, 0))]
    happened.append((40_000, joined("c", 40_000, host="h2")))
    for queue, owner, given_up, taken in ((2, "a", 41_500, 42_000), (5, "b", 46_500, 47_000)):
        pause = {"generation": 3, "outage_min_ms": 500, "outage_max_ms": 500}
        happened += [
            (given_up, released(queue, owner, given_up, "reported")),
            (taken, assigned(queue, "c", taken, origin="reported", **pause)),
            (47_000, released(queue, owner, 47_000)),
            (47_000, assigned(queue, "c", 47_000, generation=3)),
        ]
    happened.sort(key=lambda change: change[0])
    store(root, [reconciled()], [history.change(at, body, group="orders") for at, body in happened])
