"""CloudEvents envelopes: taken off, or named where they are not whole."""

import base64
from typing import Any

import pytest

from tests.core_config import core_config
from tests.udfs.event_lines import NOW, VALID, envelope, line
from udfs.ingest.cloudevents import ENVELOPE_VIOLATIONS, Envelope, unwrap
from udfs.ingest.parser import parse
from udfs.model.events import Clock

RULES = core_config()
DATA = line(VALID["clock"])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"specversion": "1.1"},
        {"data": DATA.decode()},
        {"data": ..., "data_base64": base64.b64encode(DATA).decode()},
        {"data": None, "data_base64": base64.b64encode(DATA).decode()},
        {"unheard_of": {"any": "thing"}},
    ],
)
def test_the_data_of_an_envelope_are_the_event_and_source_and_id_its_own_id(changes: dict[str, Any]) -> None:
    assert unwrap(line(envelope(**changes))) == Envelope(data=DATA, event_id="/collectors/a 17")


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'"1.0"', DATA, b'{"specversion":"1.0"', b'{"specversion":"\xff"}']
)
def test_input_without_an_envelope_version_is_no_envelope(text: bytes) -> None:
    assert unwrap(text) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        *(({"specversion": version}, "unknown_specversion") for version in ("0.3", "10.0", "", 1, None)),
        *(({"id": value}, "without_id") for value in (..., "", 5, None)),
        *(({"source": value}, "without_source") for value in (..., "", 5, None)),
        *(({"data": value}, "without_data") for value in (..., None)),
        *(({"data": ..., "data_base64": value}, "ill_typed_data_base64") for value in ("%%%", "abc", 5)),
        # The first that is missing is named.
        ({"id": "", "source": "", "data": None}, "without_id"),
    ],
)
def test_an_envelope_that_is_not_whole_has_a_reason(changes: dict[str, Any], reason: str) -> None:
    found = unwrap(line(envelope(**changes)))
    assert found == Envelope(violation=f"cloudevent_{reason}")
    assert found.violation in ENVELOPE_VIOLATIONS


def test_an_envelope_gives_its_source_and_id_as_the_event_id() -> None:
    event = parse(line(envelope(data={**VALID["clock"], "event_id": "inner"})), NOW, RULES)
    assert isinstance(event, Clock)
    assert event.event_id == "/collectors/a 17"
