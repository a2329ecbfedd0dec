"""The core's settings for tests: users' defaults, with the values that a test sets."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from streaming.settings.model import load
from udfs.model.config import CoreConfig


@functools.cache
def _defaults() -> CoreConfig:
    # Recorded histories were written with gaps of up to a minute.
    return load(overrides={"time.source_silent_after_ms": 60_000}).core_config()


def core_config(**changed: Any) -> CoreConfig:
    """Return the settings of ``conf/default.toml`` with these values, and one shard: each costs time in every batch."""
    return msgspec.structs.replace(_defaults(), **{"shards": 1, **changed})
