"""Rebalances by client, whatever its member ids were."""

from __future__ import annotations

from pathlib import Path

from streaming.views.client_rebalances import HOUR_MS, caused_by
from streaming.views.reader import Reader
from tests.streaming.tables.journals import Journal
from tests.streaming.views.story import json_of, rebalance, run, store
from udfs.model.journal import GroupChanged, TriggerKind


def caused(
    name: str, at: int, member: str | None, client: str | None, kind: TriggerKind = "member_joined"
) -> dict[str, object]:
    row = rebalance(name, at, kind, member)
    row["triggers"][0]["client"] = client  # type: ignore[index]
    return row


def write(root: Path) -> None:
    found = [
        caused("r1", 0, "b-0", "b@h", "group_created"),
        caused("r2", 1_000, "b-1", "b@h"),
        caused("r3", HOUR_MS, "b-2", "b@h"),
        caused("r4", HOUR_MS + 500, None, None, "queue_count_changed"),
        caused("r5", HOUR_MS + 900, "b-3", "b@h"),
        caused("r6", HOUR_MS + 950, "c-1", "c@h"),
    ]
    store(root, found, [Journal().change(0, GroupChanged(system="kafka", state="stable"), group="orders")])


def test_a_clients_rebalances_are_counted_over_its_member_ids(tmp_path: Path) -> None:
    write(tmp_path)
    rows = Reader(tmp_path).read("rebalances")
    assert caused_by(rows, {"b@h", "c@h"}) == {"b@h": {"r2", "r3", "r5"}, "c@h": {"r6"}}
    assert caused_by(rows, {"nobody"}) == {}


def test_explain_reports_how_many_the_client_caused_in_the_hour_before(tmp_path: Path) -> None:
    write(tmp_path)
    (report,) = json_of(tmp_path, "explain", "r5")
    cause = report["causes"][0]  # type: ignore[index]
    assert cause["client"] == "b@h"
    assert cause["recent_text"] == "the same client caused 3 of the 4 rebalances within the hour up to it"
    assert cause["recent_text"] in run(tmp_path, "explain", "r5").stdout
    # One that caused no other is not worth a sentence.
    (report,) = json_of(tmp_path, "explain", "r6")
    assert report["causes"][0]["recent_text"] is None  # type: ignore[index]
