"""Each corner gives the expected rows; where no event is late, it does so for every cut into batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corners.corner_run import CORNERS, Cut, corner, differences, in_one, in_waves, one_by_one, run_corner

_CUTS: dict[str, Cut] = {"waves": in_waves, "one": in_one, "single": one_by_one}
_ALL = sorted(path.stem for path in Path(CORNERS).glob("*.json"))


@pytest.mark.parametrize("name", _ALL)
@pytest.mark.parametrize("cut", _CUTS)
def test_a_corner_comes_out_as_it_must(name: str, cut: str) -> None:
    history = corner(name)
    if cut not in history.get("cuts", _CUTS):
        cut = "waves"  # late events depend on the batch in which they come

    run = run_corner(history, _CUTS[cut])

    assert differences(run, history["expect"]) == []


def test_a_corner_that_comes_out_otherwise_is_noticed() -> None:
    event = {"t": 0, "type": "member_joined", "group": "g", "member_id": "m", "subscriptions": ["t"]}
    twins = [{**event, "group": "h", "member_id": f"m{number}", "host": "a"} for number in range(2)]
    topic = {"t": 0, "type": "topic_queues", "topic": "t", "queue_count": 1}
    run = run_corner({"events": [event, {"t": 9_000, "type": "clock"}]})
    wrong = {
        "rebalances": [{"group_id": "g", "event_time_ms": 1, "trigger": ["member_joined"], "members_after": 2}],
        "no_rebalances": ["g"],
        "assignments_now": {"g": {"m": [["t", None, 0]]}},
        "owner_at": [["g", "t", 0, 5, "m"]],
        "spans": [{"group_id": "g", "topic": "t", "queue_id": 0, "owners": [["m", 0, None]]}],
        "members": [{"group_id": "g", "member_id": "m", "left_at_ms": 5, "sessions": 2}],
        "findings": [["g", "expected_differs", True]],
        "messages": [["g", "expected_differs", "other"]],
        "audits": [{"group_id": "g", "generation": 1, "verdict": "agrees"}],
        "groups": [{"group_id": "g", "members": 2}],
        "rejected": 1,
        "late": 1,
    }

    for key, expected in wrong.items():
        assert differences(run, {"rejected": 0, key: expected}), key
    assert len(differences(run, {"rebalances": wrong["rebalances"]})) == 3
    idle = run_corner({"events": [topic, *twins, {"t": 9_000, "type": "clock"}]})
    assert differences(idle, {"never": [["h", "idle_members"]]})
