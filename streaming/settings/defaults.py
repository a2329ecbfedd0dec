"""Shell: single defaults of conf/default.toml, for commands that need no settings and should start fast."""

from __future__ import annotations

import functools
import tomllib
from typing import Any

from streaming.settings.conf_files import conf_file


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
