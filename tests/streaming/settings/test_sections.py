"""What all sections share: types of values, and options of clients."""

from __future__ import annotations

import pydantic
import pytest

from streaming.settings.model import load
from streaming.settings.sections import Section, Span


class Spans(Section):
    """A section of one span."""

    wait_ms: Span


@pytest.mark.parametrize(
    "wrong", [{"wait_ms": True}, {"wait_ms": -1}, {"wait_ms": 2**62}, {"wait": 1, "wait_ms": 1}, {}]
)
def test_a_section_takes_what_it_names_and_nothing_else(wrong: dict[str, object]) -> None:
    with pytest.raises(pydantic.ValidationError):
        Spans(**wrong)
    assert Spans(wait_ms=3).wait_ms == 3


def test_client_options_keep_their_dots_and_hide_their_secrets() -> None:
    kafka = load(
        overrides={
            "kafka.options.sasl.jaas.config": "user and password",
            "kafka.options.security.protocol": "SASL_SSL",
            "kafka.options.enable.ssl": True,
        }
    ).kafka
    assert kafka.plain_options()["sasl.jaas.config"] == "user and password"
    assert kafka.plain_options()["enable.ssl"] == "true"
    assert "user and password" not in repr(kafka)
