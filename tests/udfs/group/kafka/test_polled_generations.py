"""Groups that admin calls show: a coordinator assigns, and the monitor counts what changed between two polls."""

from __future__ import annotations

from udfs.group.kafka.polled_generations import is_polled
from udfs.model.events import GroupSnapshot


def test_a_restored_snapshot_and_a_poll_of_clients_are_none_of_these() -> None:
    common = {"schema_version": 1, "event_time": 0, "system": "kafka", "cluster": "c", "group": "g"}
    assert is_polled(GroupSnapshot(**common, generation_source="counted"))
    assert not is_polled(GroupSnapshot(**common))
    assert not is_polled(GroupSnapshot(**common, generation_source="counted", restored=True))
