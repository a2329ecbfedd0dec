"""Core: what in the assignors of Kafka's group coordinator depends on the broker's release. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

# The setting that names the release of the coordinator that assigned, such as 4.0.0; without it, it is today's.
COORDINATOR: Final = "coordinator"
# Releases of which each is the first whose uniform assignor gives other targets than the one before; today's first.
# Those of 4.0.1 to 4.4.0 are the same, and those of 3.8 and 3.9, where the protocol is a preview.
TODAY: Final = "4.0.1"
RELEASES: Final = (TODAY, "4.0.0", "3.9")
_VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})(?:\.([0-9]{1,9}))?")
_KEEPS_EXTRAS_SINCE = (4, 0, 1)
_ASSIGNS_IN_ROUNDS_SINCE = (4, 0, 0)


def keeps_extras(settings: Mapping[str, object]) -> bool:
    """Return whether a member that holds one more than others keeps it, though a member before it holds one less."""
    return _version(settings) >= _KEEPS_EXTRAS_SINCE


def assigns_in_rounds(settings: Mapping[str, object]) -> bool:
    """Return whether different subscriptions are assigned topic by topic, in rounds."""
    return _version(settings) >= _ASSIGNS_IN_ROUNDS_SINCE


def release_of(version: str) -> str:
    """Return the one of ``RELEASES`` that assigns as a version of Kafka does.

    Example:
        >>> release_of("4.4.0"), release_of("4.0.0"), release_of("3.8.1")
        ('4.0.1', '4.0.0', '3.9')
    """
    settings = {COORDINATOR: version}
    if keeps_extras(settings):
        return TODAY
    return RELEASES[1] if assigns_in_rounds(settings) else RELEASES[2]


def _version(settings: Mapping[str, object]) -> tuple[int, int, int]:
    found = _VERSION.match(str(settings.get(COORDINATOR) or TODAY)) or _VERSION.match(TODAY)
    assert found is not None
    return int(found[1]), int(found[2]), int(found[3] or 0)
