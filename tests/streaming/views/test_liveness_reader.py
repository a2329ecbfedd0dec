"""Liveness as it is read: what cannot be read just now counts as it was, and grows old."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.tables.liveness import liveness_place, write_liveness
from streaming.views import liveness_reader
from streaming.views.freshness import Now
from streaming.views.liveness_reader import LivenessReader, read_freshness
from streaming.views.unwritten_findings import unwritten_rows
from tests.streaming.tables.journals import T0
from tests.streaming.tables.signs import known, sign

LIVE = known("c1", known_until=T0 - 1_000, age_ms=500, is_live=True)


def test_liveness_is_read_from_next_to_the_tables(tmp_path: Path) -> None:
    assert read_freshness(tmp_path).of("c1").reason == "no job has left its liveness beside these tables"
    place = liveness_place(tmp_path, "app")
    place.parent.mkdir()
    write_liveness(place, sign(known("c1")))
    assert read_freshness(tmp_path).of("c1").state == "recording"
    (tmp_path / "_liveness" / "torn.json").write_text("{")
    found = read_freshness(tmp_path)
    assert (found.of("c1").state, "torn.json cannot be read" in found.of("c2").reason) == ("recording", True)


def test_a_store_that_fails_makes_unknown_what_it_can_no_longer_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = liveness_place(tmp_path, "app")
    place.parent.mkdir()
    write_liveness(place, sign(LIVE, state="running"))
    reader = LivenessReader(tmp_path)
    assert reader.read(Now(T0, 0, "this-boot")).of("c1").state == "known"

    def refuse(_: object) -> object:
        raise OSError(5, "the store is away")

    monkeypatch.setattr(liveness_reader, "read_liveness", refuse)
    soon, later = (reader.read(Now(T0 + after_ms, 0, "this-boot")) for after_ms in (29_500, 29_501))
    assert (soon.of("c1").state, soon.jobs[0].is_alive, unwritten_rows(soon, [], {})) == ("known", True, [])
    assert soon.problem == soon.unread == "liveness cannot be read: the store is away"
    assert later.of("c1").text == f"blind since 2025-12-31T23:59:59Z: {later.unread}"
    # Nobody knows that the job is gone.
    assert unwritten_rows(later, [], {}) == []
    assert LivenessReader(tmp_path).read().of("c1").reason == later.unread


def test_one_failure_of_a_store_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([OSError(5, "the store is away"), ([sign(known("c1"))], "")])

    def read(_: object) -> object:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(liveness_reader, "read_liveness", read)
    monkeypatch.setattr(liveness_reader, "_AGAIN_AFTER_S", 0)
    found = read_freshness(tmp_path)
    assert (found.of("c1").state, found.problem) == ("recording", "")
