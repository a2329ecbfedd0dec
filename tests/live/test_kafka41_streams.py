"""A Kafka Streams application (classic protocol) on a real Kafka 4.1 broker: instances join, and one is killed."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.kit.brokers import Broker
from tests.kit.java_members import wait_until
from tests.kit.members import Member
from tests.kit.streams_members import start_streams_member
from tests.kit.topics import create_topic
from tests.live.collecting import collecting, run_of_folder
from tests.simulation.core_run import rows_of
from udfs.model.journal import FindingOpened

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]

_APPLICATION, _TOPIC, _PARTITIONS = "streams-classic", "streams-classic.orders", 6


def test_each_generation_of_an_application_is_explained(kafka41: Broker, tmp_path: Path) -> None:
    create_topic(kafka41, _TOPIC, _PARTITIONS)
    members: dict[str, Member] = {}
    try:
        with collecting(kafka41, tmp_path / "events"):
            for number in range(3):
                name = f"instance-{number}"
                members[name] = start_streams_member(
                    kafka41, _APPLICATION, _TOPIC, client_id=name, folder=tmp_path / name
                )
                _wait_until_divided(members.values())
            members.pop("instance-1").kill()
            # Until the coordinator gives it up, its partitions are still its own.
            _wait_until_divided(members.values())
            owned = {partition: name for name, member in members.items() for partition in member.owned}
    finally:
        for member in members.values():
            member.kill()
    run = run_of_folder(tmp_path / "events")
    rows = [row for row in run.rebalances if row.group_id == _APPLICATION]
    assert [row.generation for row in rows] == list(range(1, len(rows) + 1))
    for row in rows:
        shown = (row.generation, row.triggers)
        assert (row.strategy, row.agrees, row.agrees_reason) == ("kafka.stream", None, "custom_strategy"), shown
        kinds = {cause.kind for cause in row.triggers}
        assert kinds <= {"group_created", "member_joined", "member_gone", "cooperative_follow_up"}, shown
    causes = [cause for row in rows for cause in row.triggers if cause.member_id is not None]
    named = [(cause.kind, _instance(cause.member_id or "")) for cause in causes]
    joined = [("member_joined", f"instance-{number}") for number in range(3)]
    assert named == [*joined, ("member_gone", "instance-1")]
    # The generation after a cooperative one assigns what that one revoked, and belongs to the same rebalance.
    for before, row in itertools.pairwise(rows):
        if {cause.kind for cause in row.triggers} == {"cooperative_follow_up"}:
            assert row.logical_id == before.logical_id
    bodies = [change.body for change in run.changes if change.group_id == _APPLICATION]
    opened = [body for body in bodies if isinstance(body, FindingOpened)]
    assert not [finding for finding in opened if finding.finding in ("unassigned_queues", "expected_differs")]
    spans = [row for row in rows_of(run.changes)["assignments"] if row["group_id"] == _APPLICATION]
    held = {
        (row["topic"], row["queue_id"]): _instance(row["member_id"])
        for row in spans
        if row["valid_to"] is None and row["origin"] == "reported"
    }
    assert held == owned


def _wait_until_divided(members: Collection[Member]) -> None:
    def are_divided() -> bool:
        held = sorted(partition for member in members for partition in member.owned)
        return held == [(_TOPIC, number) for number in range(_PARTITIONS)] and all(member.owned for member in members)

    wait_until(list(members), are_divided)


def _instance(member_id: str) -> str:
    """Return the client id with which an instance started; a thread's number and a UUID are behind it."""
    return member_id.split("-StreamThread-")[0]
