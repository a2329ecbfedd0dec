"""Command: spans of time among the options."""

from __future__ import annotations

import typer


def span_ms(text: str | None, option: str) -> int | None:
    """Answer the span in ms; None when the option was not given.

    Raises:
        typer.BadParameter: It is no span.
    """
    from streaming.settings import duration_ms

    if text is None:
        return None
    try:
        return duration_ms(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error
