"""The core's settings for tests: the defaults of users, with what a test says otherwise."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from streaming.settings.model import load
from udfs.model.config import CoreConfig


@functools.cache
def _defaults() -> CoreConfig:
    return load().core_config()


def core_config(**changed: Any) -> CoreConfig:
    """Return the settings of ``conf/default.toml``, but for these."""
    return msgspec.structs.replace(_defaults(), **changed)
