"""Every example on the page for authors of collectors is valid, and of the type that the page names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from tests.core_config import core_config
from udfs.ingest.parser import parse
from udfs.model.annotations import ContractEvent
from udfs.model.rejection import Rejection

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text(encoding="utf-8")
NOW = 1_772_334_720_000
BLOCKS = re.findall(r"^```([^\n]+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
EVENTS = [text for kind, block in BLOCKS if kind == "json" for text in block.splitlines()]
REJECTED = [(kind.split()[1], block.strip()) for kind, block in BLOCKS if kind.startswith("rejected ")]
TYPES = {cls.__struct_config__.tag: cls for cls in get_args(ContractEvent)}


@pytest.mark.parametrize("text", EVENTS)
def test_an_example_is_an_event(text: str) -> None:
    event = parse(text.encode(), NOW + 60_000, core_config())
    assert not isinstance(event, Rejection), event


def test_every_type_has_an_example() -> None:
    content = [json.loads(text) for text in EVENTS]
    assert {(event.get("data") or event)["type"] for event in content} == set(TYPES)


@pytest.mark.parametrize(("reason", "text"), REJECTED)
def test_a_bad_example_is_rejected_for_the_documented_reason(reason: str, text: str) -> None:
    outcome = parse(text.encode(), NOW, core_config())
    assert isinstance(outcome, Rejection)
    assert outcome.reason == reason


def test_the_two_notations_of_one_time_are_the_same_time() -> None:
    first, second = EVENTS[:2]
    parsed = [parse(text.encode(), NOW + 60_000, core_config()) for text in (first, second)]
    assert parsed[0].event_time == parsed[1].event_time  # type: ignore[union-attr]


def test_the_table_of_types_names_every_needed_field() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|(.*?)\|[^|]*\|$", PAGE, re.MULTILINE))
    common = {"schema_version", "event_time", "system", "cluster"}
    for name, cls in TYPES.items():
        needed = {field.name for field in msgspec.structs.fields(cls) if field.required} - common
        assert needed <= set(re.findall(r"\*\*`(\w+)", rows[name])), name


def test_the_collector_on_the_page_writes_events_in_closed_files(tmp_path: Path) -> None:
    (source,) = [block for kind, block in BLOCKS if kind == "python"]
    names: dict[str, Any] = {}
    exec(compile(source, "events.md", "exec"), names)
    collect: Callable[..., None] = names["collect"]
    collect(str(tmp_path), rounds=1)
    (written,) = tmp_path.iterdir()
    assert written.suffix == ".jsonl"
    outcomes = [parse(text, NOW + 10**12, core_config()) for text in written.read_bytes().splitlines()]
    assert [type(event).__name__ for event in outcomes] == ["TopicQueues", "GroupSnapshot", "Clock"]
