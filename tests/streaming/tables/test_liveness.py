"""The files that jobs leave beside their tables: one for each checkpoint, replaced and not added."""

from __future__ import annotations

from pathlib import Path

from streaming.stores.places import Place
from streaming.tables.liveness import FOLDER, VERSION, liveness_place, read_liveness, write_liveness
from tests.streaming.tables.signs import known, sign


def test_the_last_written_content_is_read(either_place: Place) -> None:
    root = either_place if isinstance(either_place, Path) else str(either_place)
    assert read_liveness(root) == ([], "")
    jobs = [sign(known("c1", is_live=True), app_id=app_id) for app_id in ("b", "a")]
    for job in jobs:
        place = liveness_place(root, job.app_id)
        place.parent.mkdir(parents=True, exist_ok=True)
        for state in ("starting", "running"):
            job.state = state  # type: ignore[assignment]
            write_liveness(place, job)
    assert read_liveness(root) == (jobs[::-1], "")
    assert sorted(file.name for file in (either_place / FOLDER).glob("*.json")) == ["a.json", "b.json"]


def test_a_file_that_cannot_be_read_is_named_and_hides_no_other(tmp_path: Path) -> None:
    place = liveness_place(tmp_path, "a")
    place.parent.mkdir()
    write_liveness(place, sign())
    (tmp_path / FOLDER / "torn.json").write_bytes(b'{"app_id"')
    jobs, problem = read_liveness(tmp_path)
    assert ([job.app_id for job in jobs], "torn.json cannot be read" in problem) == (["app"], True)


def test_one_of_a_newer_version_is_not_guessed_at(tmp_path: Path) -> None:
    place = liveness_place(tmp_path, "a")
    place.parent.mkdir()
    write_liveness(place, sign(version=VERSION + 1))
    jobs, problem = read_liveness(tmp_path)
    assert (jobs, "a.json is of a newer version of the monitor" in problem) == ([], True)
