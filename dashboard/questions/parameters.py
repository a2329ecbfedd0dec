"""Dashboard: parameters of questions, parsed from an address. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from dashboard.questions.catalog import NUMBERS, TIMES, Question
from streaming.terminal.time_input import parse_time

LONGEST_NUMBER = 20


def given_in(question: Question, texts: Mapping[str, str], now_ms: int) -> dict[str, object]:
    """Return parameters as ``Question.values`` takes them; an empty text means not given.

    Args:
        now_ms: The time that texts such as ``15m`` are relative to.

    Raises:
        ValueError: A parameter is unknown, or is not a time or number.
    """
    return {name: _value(name, text, now_ms) for name, text in texts.items() if text and _is_taken(question, name)}


def bounded(question: Question, given: Mapping[str, object], max_rows: int) -> dict[str, object]:
    """Return parameters with a limit that no answer of the server exceeds.

    Raises:
        ValueError: See ``Question.values``.
    """
    limit = question.values(given)["limit"]
    return {**given, "limit": min(int(limit), max_rows)}


def _is_taken(question: Question, name: str) -> bool:
    if name not in question.parameters:
        raise ValueError(f"{question.name} takes {', '.join(question.parameters)}, not {name[:50]!r}")
    return True


def _value(name: str, text: str, now_ms: int) -> object:
    if name in TIMES:
        return parse_time(text, now_ms)
    if name in NUMBERS:
        if len(text) > LONGEST_NUMBER or not text.isascii() or not text.removeprefix("-").isdecimal():
            raise ValueError(f"{name}: {text[:50]!r} is not a number")
        return int(text)
    return text
