"""Heartbeats of many members, to measure with."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from streaming.simulator.load_fleet import LoadFleet, write_load
from tests.core_config import core_config
from udfs.ingest.parser import parse
from udfs.model.rejection import Rejection


def test_every_member_joins_once_and_has_a_heartbeat_in_each_round(tmp_path: Path) -> None:
    written = write_load(tmp_path, groups=30, members=301, rounds=2)
    events = [json.loads(text) for path in sorted(tmp_path.iterdir()) for text in path.read_bytes().splitlines()]
    joined = Counter((event["group"], event["member_id"]) for event in events if event["type"] == "member_joined")
    beats = Counter((event["group"], event["member_id"]) for event in events if event["type"] == "heartbeat")
    assert written["events"] == len(events) == 1_000 + 301 * 3
    assert len(joined) == 301
    assert set(joined.values()) == {1}
    assert beats == dict.fromkeys(joined, 2)
    assert len({group for group, _ in joined}) == 30


def test_pieces_of_a_round_are_the_round() -> None:
    fleet = LoadFleet(groups=7, members=50)
    assert b"".join(fleet.heartbeat_files(5, 10, 31, 4)) == fleet.heartbeats(5, 10, 31)


def test_its_lines_are_events_of_the_contract() -> None:
    fleet = LoadFleet(groups=3, members=4)
    now = 1_767_225_600_000
    text = fleet.topics(now) + fleet.joins(now) + fleet.heartbeats(now)
    assert not [
        text_line for text_line in text.splitlines() if isinstance(parse(text_line, now, core_config()), Rejection)
    ]
