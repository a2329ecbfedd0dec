"""States and exports of the release before are read, upgraded and continued."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.udfs.shard.shard_script import FAR, Cluster, beat, clock
from tests.udfs.shard.state_samples import COUNTED, KINDS, REPORTED, RULES, described, sample, snapshot
from udfs.group import coordinator as group_logic
from udfs.ingest.parser import parse
from udfs.model.errors import StateVersionError
from udfs.model.journal import Change, MemberOpened, Rejected
from udfs.model.rejection import Rejection
from udfs.shard.state_format import STATE_VERSION, unpack_state

# Made by commit a863199 of the batches in `state_samples`: each kind's state, and the first events of its export.
FORMER: dict[str, Any] = json.loads((Path(__file__).parent / "states_of_version_2.json").read_text())["states"]


def former(kind: str) -> Cluster:
    cluster = Cluster(group_logic, RULES)
    cluster.states[0] = base64.b64decode(FORMER[kind]["state"])
    return cluster


def go_on(cluster: Cluster) -> list[Any]:
    rows = cluster.batch(*COUNTED[2:40], *REPORTED[1:3], clock(12_000))  # all of it again
    rows += cluster.batch(beat("m1", 13_000, "g"), described("late-comer", 13_500, "group-7"), clock(20_000))
    rows += cluster.batch(snapshot(21_000, "live", 7, ("a",)), clock(60_000))
    return [*rows, *cluster.batch(clock(200_000))]


def without_numbers(rows: list[Any]) -> list[Any]:
    """Return rows without the numbers of changes: the release before wrote a change for each span."""
    return [msgspec.structs.replace(row, number=0) if isinstance(row, Change) else row for row in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_of_the_release_before_goes_on_as_one_of_this_release(kind: str) -> None:
    before, now = former(kind), sample(kind)
    assert without_numbers(go_on(before)) == without_numbers(go_on(now))
    assert before.states[0] is not None
    assert before.states[0][0] == STATE_VERSION
    header, _ = unpack_state(before.states[0])
    assert header.batches > 4


def test_ids_that_the_release_before_remembered_are_repeats_still() -> None:
    cluster = former("counted")
    assert [row for row in cluster.batch(*COUNTED[2:], clock(12_000)) if not isinstance(row, Rejected)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_export_of_the_release_before_is_taken_in(kind: str) -> None:
    events = [parse(line.encode(), FAR, RULES) for line in FORMER[kind]["export"]]
    assert not any(isinstance(event, Rejection) for event in events)
    cluster = Cluster(group_logic, RULES)
    assert cluster.batch(*(event for event in events if not isinstance(event, Rejection))) == []
    # Whoever was restored does not join a second time.
    restored = {getattr(event, "group", None) for event in events}
    opened = [row for row in go_on(cluster) if isinstance(row, Change) and isinstance(row.body, MemberOpened)]
    assert {row.body.member_id for row in opened if row.group_id in restored} <= {"late-comer"}


def test_a_newer_export_says_which_version_it_needs() -> None:
    line = json.loads(FORMER["counted"]["export"][0])
    line["restored_cluster"] = base64.b64encode(bytes([0x91, STATE_VERSION + 1])).decode()
    event = parse(json.dumps(line).encode(), FAR, RULES)
    assert not isinstance(event, Rejection)
    [row] = Cluster(group_logic, RULES).batch(event)
    assert isinstance(row, Rejected)
    assert f"encoding {STATE_VERSION + 1}" in row.detail


def test_the_error_names_checkpoint_cluster_shard_and_remedy() -> None:
    from tests.udfs.test_stateful import frame, group_state
    from udfs.stateful import shard_function

    state = sample("counted").states[0]
    assert state is not None
    function = shard_function(RULES, checkpoint="/var/lib/monitor/check point")
    with pytest.raises(StateVersionError) as refused:
        list(function(("c", 3), [frame()], group_state(state[:-1])))
    said = str(refused.value)
    for part in ("checkpoint /var/lib/monitor/check point,", "cluster 'c'", "shard 3", "damaged", "state rollback"):
        assert part in said
    assert "--checkpoint '/var/lib/monitor/check point'" in said
    assert "\n" not in said
