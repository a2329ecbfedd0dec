"""The JSON Schema says what parsing does, as far as a schema can."""

from __future__ import annotations

import json
import math
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings

from streaming.settings.conf_files import conf_file
from streaming.setup.event_schema import EVENT_SCHEMA_FILE, schema_text
from tests.core_config import core_config
from tests.udfs.event_lines import NOW, VALID
from tests.udfs.ingest.test_parser import BAD_INPUTS, HOSTILE
from udfs.ingest.parser import parse
from udfs.model.json_schema import event_schema
from udfs.model.rejection import Rejection

VALIDATOR = jsonschema.Draft202012Validator(event_schema())
RULES = core_config()

# What only a parser can say: bytes that are no JSON have no schema; these depend on more than one value.
BEYOND_A_SCHEMA = {
    "event_time_ahead_of_clock": "depends on the batch",
    "event_time_unparsable": "calendar days",
    "joined_at_unparsable": "calendar days",
    "to_before_from": "two fields",
    "event_time_before_2000": "as text",
    "event_time_after_2100": "as text",
    "joined_at_before_2000": "as text",
    "held_since_unparsable": "calendar days",
    "queue_count_differs": "two fields",
    "duplicate_queue": "equal in some fields",
    "duplicate_member": "equal in some fields",
    "duplicate_key": "gone once it is parsed",
    "too_deep": "depth",
    "out_of_range_strategy_settings": "depth",
    "empty_member_id": "as a key of assignments",
    "control_character_in_assignments": "as a key of assignments",
    "control_character_in_broker": "names of brokers are free text",
    "not_utf8": "in the text of an unknown field",
    "oversized_event": "bytes",
}


def _has_float_for_a_whole_number(content: Any) -> bool:
    """Return whether there is a 1.0 anywhere: an integer to JSON Schema, none to the parser."""
    if isinstance(content, dict):
        return any(map(_has_float_for_a_whole_number, content.values()))
    if isinstance(content, list):
        return any(map(_has_float_for_a_whole_number, content))
    return isinstance(content, float) and (not math.isfinite(content) or content == int(content))


def test_the_file_is_what_the_code_generates() -> None:
    assert conf_file(EVENT_SCHEMA_FILE).read_text(encoding="utf-8") == schema_text()


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(event_schema())


@pytest.mark.parametrize("name", VALID)
def test_every_event_of_the_contract_is_valid(name: str) -> None:
    VALIDATOR.validate(VALID[name])
    VALIDATOR.validate({**VALID[name], "event_time": "2026-11-21T08:12:00.5+01:00", "unheard_of": {"any": "thing"}})


def test_the_schema_rejects_what_a_schema_can_express() -> None:
    checked = 0
    for raw, reason in BAD_INPUTS:
        if (reason in BEYOND_A_SCHEMA and reason != "empty_member_id") or reason.startswith("cloudevent_"):
            continue
        try:
            content = json.loads(raw)
        except (ValueError, RecursionError):
            continue
        if _has_float_for_a_whole_number(content) or reason == "lone_surrogate":
            continue
        if isinstance(content, dict) and ("specversion" in content or "" in (content.get("assignments") or {})):
            continue
        checked += 1
        assert not VALIDATOR.is_valid(content), (raw[:200], reason)
    assert checked > 60


@settings(max_examples=500)
@given(HOSTILE)
def test_schema_and_parser_agree_on_hostile_lines(raw: bytes) -> None:
    outcome = parse(raw, NOW, RULES)
    try:
        content = json.loads(raw.removeprefix(b"\xef\xbb\xbf").decode())
    except (ValueError, RecursionError):
        return
    if (isinstance(content, dict) and "specversion" in content) or _has_float_for_a_whole_number(content):
        return
    if isinstance(outcome, Rejection):
        is_expected = outcome.reason in BEYOND_A_SCHEMA or outcome.reason in ("lone_surrogate", "number_out_of_range")
        assert is_expected or not VALIDATOR.is_valid(content), outcome
    else:
        VALIDATOR.validate(content)
