"""Shell: single defaults of conf/default.toml, for commands that need no settings and should start fast."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from typing import Any

import msgspec

from streaming.settings.conf_files import conf_file
from udfs.model.config import CoreConfig

_OF_THE_CORE = ("state", "time", "limits", "strategies", "findings")


@functools.cache
def _defaults() -> dict[str, dict[str, Any]]:
    return tomllib.loads(conf_file("default.toml").read_text(encoding="utf-8"))


def default(section: str, key: str) -> Any:
    """Return the default of one setting.

    Example:
        >>> default("strategies", "vote_tie_order")
        '4.x'
    """
    return _defaults()[section][key]


def default_core_config() -> CoreConfig:
    """Return the settings of the core where none is set."""
    return core_config_of(_defaults())


def core_config_of(sections: Mapping[str, Mapping[str, Any]]) -> CoreConfig:
    """Return the settings that the core's decisions depend on: of all sections, those whose names it knows."""
    values = {name: value for section in _OF_THE_CORE for name, value in sections[section].items()}
    by_system = {
        name: {system.removesuffix("_ms"): span for system, span in sections[section].items()}
        for name, section in (("session_timeouts_ms", "session_timeouts"), ("unread_after_ms", "unread_after"))
    }
    return msgspec.convert(values | by_system, CoreConfig)
