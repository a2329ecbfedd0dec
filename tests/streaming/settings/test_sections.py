"""Types of values and options of clients that all sections share."""

from __future__ import annotations

import pydantic
import pytest

from streaming.settings.errors import SettingsError
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


@pytest.mark.parametrize("name", ["dashboard.token", "alerts.webhook_token"])
@pytest.mark.parametrize(
    "wrong", ["schlüssel-SECRET-0123", "SECRET-0123456789\n", " SECRET-0123456789", "SECRET-0123\ud800"]
)
def test_a_token_that_no_header_can_hold_is_refused_and_not_shown(name: str, wrong: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(overrides={name: wrong})
    (mistake,) = caught.value.mistakes
    assert f"{name}: has characters beyond printable ASCII" in mistake
    assert "SECRET" not in mistake
    load(overrides={name: "all: of !\"'~ these are"})


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
