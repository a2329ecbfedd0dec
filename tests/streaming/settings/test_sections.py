"""What all sections share: which values are refused, and which options are never shown."""

from __future__ import annotations

from pathlib import Path

import pydantic
import pytest

from streaming.settings.sections import (
    CENTURY_MS,
    INT_MAX,
    Address,
    ClientOptions,
    Folder,
    KafkaAddress,
    Section,
    SomeCount,
    SomeSpan,
    Span,
)


class Example(Section):
    span: Span = 1
    some_span: SomeSpan = 1
    some_count: SomeCount = 1
    folder: Folder = Path("x")
    address: Address = ""
    kafka: KafkaAddress = ""
    plain: int = 0


@pytest.mark.parametrize(
    "given",
    [
        {"span": 0},
        {"span": CENTURY_MS},
        {"some_count": INT_MAX},
        {"folder": "."},
        {"address": "a;b:1"},
        {"kafka": "SSL://a:1"},
    ],
)
def test_values_up_to_their_limits_are_taken(given: dict[str, object]) -> None:
    Example(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [
        {"span": -1},
        {"span": CENTURY_MS + 1},
        {"some_span": 0},
        {"some_count": 0},
        {"some_count": INT_MAX + 1},
        {"folder": ""},
        {"folder": "a\0b"},
        {"address": "a b"},
        {"kafka": "a"},
        {"plain": True},
        {"unknown": 1},
    ],
)
def test_values_without_a_meaning_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(pydantic.ValidationError):
        Example(**given)  # type: ignore[arg-type]


def test_options_of_clients_are_texts_and_likely_secrets_are_not_shown() -> None:
    given = {
        "sasl.jaas.config": "hush",
        "ssl.key": "hush",
        "my.Token": "hush",
        "acks": 1,
        "enable.x": True,
        "a.keys": "k",
    }
    options = ClientOptions(options=given)  # type: ignore[arg-type]
    assert options.plain_options() == {**given, "acks": "1", "enable.x": "true"}
    shown = options.shown_options()
    assert [name for name in given if shown[name] == "**********"] == ["sasl.jaas.config", "ssl.key", "my.Token"]
    assert "hush" not in repr(options)
    with pytest.raises(pydantic.ValidationError):
        ClientOptions(options={"a": ["b"]})  # type: ignore[dict-item]
