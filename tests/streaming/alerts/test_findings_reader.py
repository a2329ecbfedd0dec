"""Alerts read open findings by the version of their table, and widespread ones by the time."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

import msgspec
import pytest

from streaming.alerts import findings_reader
from streaming.alerts.findings_reader import FindingsReader
from streaming.tables.liveness import liveness_place, write_liveness
from streaming.views import liveness_reader
from streaming.views.widespread import WidespreadKind
from tests.streaming.alerts.planted import widespread
from tests.streaming.tables.journals import T0
from tests.streaming.tables.signs import APP, known, leave_recording_sign, sign
from tests.streaming.views.many_groups import Troubled, names, write_groups

MINUTE = 60_000


def test_it_follows_the_versions_of_the_table(tables: Path) -> None:
    reader = FindingsReader(tables, widespread(), lambda: T0)
    found = reader.read({"f1", "gone"})
    assert (list(found.current), dict(found.closed), found.missing) == (["f1"], {}, {"gone"})
    assert found.widespread == ()
    assert reader.read(set()).current == found.current


def test_widespread_findings_end_with_time_alone(tmp_path: Path) -> None:
    write_groups(tmp_path, 10, Troubled(names(1, 8), until=MINUTE), Troubled(names(9, 9)))
    clock = [0]
    reader = FindingsReader(tmp_path, widespread(), lambda: clock[0])
    found = [reader.read(set()) for clock[0] in (T0 + MINUTE, T0 + MINUTE + widespread().span_ms)]
    assert [list(state.current) for state in found] == [["flapping-1-g9"]] * 2
    assert [state.widespread for state in found] == [(WidespreadKind("c1", "flapping", 9, 10),), ()]


def test_costs_are_those_of_the_rebalances_before_a_finding(tables: Path) -> None:
    reader = FindingsReader(tables, widespread(), lambda: T0)
    (finding,) = reader.read(set()).current.values()
    assert reader.costs([finding])["f1"].rebalances == 3


def test_a_finding_that_no_job_can_write_is_open_while_it_lasts(tmp_path: Path) -> None:
    write_groups(tmp_path, 3)
    place = liveness_place(tmp_path, APP)
    write_liveness(place, sign(known("c1", age_ms=10**9, is_live=True), state="failed", reason="no space left"))
    reader = FindingsReader(tmp_path, widespread(), lambda: T0 + 7)
    (row,) = reader.read(set()).current.values()
    assert (row["kind"], row["cluster"], row["severity"]) == ("job_silent", "c1", "critical")
    assert "the job failed at 2026-01-01T00:00:00Z: no space left" in row["message"]
    leave_recording_sign(tmp_path, ["c1"])
    found = reader.read({row["finding_id"]})
    assert (dict(found.current), found.missing) == ({}, frozenset())
    assert found.closed == {row["finding_id"]: {**row, "closed_at": T0 + 7}}
    # Another process does not know this finding: it reports it as missing, and resolves it as such.
    other = FindingsReader(tmp_path, widespread(), lambda: T0)
    assert other.read({row["finding_id"]}).missing == {row["finding_id"]}


@pytest.mark.parametrize("left", [None, "{", '{"version": 99}'])
def test_clusters_without_liveness_are_a_finding_and_why(tmp_path: Path, left: str | None) -> None:
    write_groups(tmp_path, 3)
    place = liveness_place(tmp_path, APP)
    rmtree(place.parent)
    if left is not None:
        place.parent.mkdir()
        newer = msgspec.json.encode(msgspec.structs.replace(sign(), version=99)).decode()
        place.write_text(newer if "99" in left else left)
    reader = FindingsReader(tmp_path, widespread(), lambda: T0)
    (row,) = reader.read(set()).current.values()
    assert (row["kind"], row["cluster"], row["group_id"], row["severity"]) == ("job_silent", "c1", None, "critical")
    why = {None: "no job has left its liveness beside these tables", "{": "cannot be read"}
    assert why.get(left, "is of a newer version") in row["message"]
    assert row["opened_at"] is not None
    (again,) = FindingsReader(tmp_path, widespread(), lambda: T0).read(set()).current
    assert again == row["finding_id"], "the same for every process"
    leave_recording_sign(tmp_path, ["c1"])
    assert row["finding_id"] in reader.read({row["finding_id"]}).closed


def test_a_cluster_that_appears_is_no_finding_before_the_job_can_have_reported_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_groups(tmp_path, 3)
    clock = [T0]

    def newest(_: object) -> dict[str, int | None]:
        return {"c1": T0} if clock[0] == T0 else {"c1": T0, "c2": None}

    monkeypatch.setattr(findings_reader, "newest_by_cluster", newest)
    reader = FindingsReader(tmp_path, widespread(), lambda: clock[0])
    found = []
    for clock[0] in (T0, T0 + 29_999, T0 + 30_000, T0 + 60_000):
        found.append([row["cluster"] for row in reader.read(set()).current.values()])
    assert found == [[], [], [], ["c2"]]


def test_liveness_that_cannot_be_read_closes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_groups(tmp_path, 3)
    write_liveness(liveness_place(tmp_path, APP), sign(known("c1", age_ms=10**9, is_live=True), state="failed"))
    reader = FindingsReader(tmp_path, widespread(), lambda: T0)
    (found,) = reader.read(set()).current

    def refuse(_: object) -> object:
        raise OSError(5, "the store is away")

    with monkeypatch.context() as patched:
        patched.setattr(liveness_reader, "read_liveness", refuse)
        with pytest.raises(OSError, match="the store is away"):
            reader.read({found})
    assert list(reader.read({found}).current) == [found]


def test_tables_that_cannot_be_read_for_long_are_a_finding() -> None:
    times = iter((T0, T0 + 29_999, T0 + 30_000))
    reader = FindingsReader(Path("absent"), widespread(), lambda: next(times))
    assert [reader.unreadable("the store is away") for _ in range(2)] == [None, None]
    found = reader.unreadable("the store is away")
    assert found is not None
    (row,) = found.current.values()
    assert (row["kind"], row["opened_at"]) == ("tables_unreadable", T0)
    assert row["message"] == "The tables cannot be read since 2026-01-01T00:00:00Z: the store is away."
