"""How far the running query has read a topic: by plans of running batches, and by ends of finished ones."""

from __future__ import annotations

import json
from pathlib import Path

from streaming.pipeline.query_position import QueryPosition


def plan(query: Path, batch: int, *offsets: dict[str, dict[str, int]] | None) -> None:
    (query / "offsets").mkdir(exist_ok=True)
    lines = ["-" if offset is None else json.dumps(offset) for offset in offsets]
    (query / "offsets" / str(batch)).write_text("\n".join(["v1", "{}", *lines]))


def test_planned_offsets_count_once_their_batch_has_begun(tmp_path: Path) -> None:
    position = QueryPosition(tmp_path, "t")
    plan(tmp_path, 0, None, {"t": {"0": 5, "1": 7}})
    assert position.offsets() == {}
    position.began(0)
    assert position.offsets() == {0: 5, 1: 7}
    plan(tmp_path, 1, {"other": {"0": 9}}, {"t": {"0": 8, "1": 7}})
    assert position.offsets() == {0: 5, 1: 7}
    position.began(1)
    assert position.offsets() == {0: 8, 1: 7}


def test_the_end_of_a_batch_takes_nothing_back_from_the_next_one(tmp_path: Path) -> None:
    position = QueryPosition(tmp_path, "t")
    plan(tmp_path, 4, {"t": {"0": 8}})
    position.began(4)
    assert position.offsets() == {0: 8}
    position.ended(3, '{"t": {"0": 5}}')
    assert position.offsets() == {0: 8}
    position.ended(4, {"t": {"0": 8}})
    position.ended(5, '{"t": {"0": 9}}')  # only a transaction marker came
    position.ended(5, "4")  # of another source
    assert position.offsets() == {0: 9}


def test_the_end_shows_what_a_plan_that_cannot_be_read_did_not(tmp_path: Path) -> None:
    position = QueryPosition(tmp_path, "t")
    position.began(0)
    plan(tmp_path, 1)
    assert position.offsets() == {}
    (tmp_path / "offsets" / "1").write_text("v1")
    position.began(1)
    assert position.offsets() == {}
    position.ended(1, '{"t": {"0": 3}}')
    assert position.offsets() == {0: 3}
