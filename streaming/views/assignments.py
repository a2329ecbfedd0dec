"""Shell: the current owners of queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streaming.tables.schema import Row
from streaming.views.reader import Reader

# Such a queue has no single owner: its topic is shared by message.
SHARED_BY_MESSAGE = -1


def current_spans(reader: Reader, where: Mapping[str, Any]) -> list[Row]:
    """Return the currently open spans, in the order of their table."""
    return reader.rows("assignments", where=where, keep=lambda rows: rows["valid_to"].is_null())
