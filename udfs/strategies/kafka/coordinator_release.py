"""Core: how the assignors of Kafka's group coordinator depend on the broker's release. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

# This setting names the release of the coordinator that assigned, such as 4.0.0; without it the newest is assumed.
COORDINATOR: Final = "coordinator"
# Each release is the first whose uniform assignor gives different targets than its predecessor; the newest comes first.
# Releases 4.0.1 to 4.4.0 are the same. Of the previews of the protocol only that of 3.9 is computed.
TODAY: Final = "4.0.1"
PREVIEW: Final = "3.9"
RELEASES: Final = (TODAY, "4.0.0", PREVIEW)
_VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})(?:\.([0-9]{1,9}))?")
_KEEPS_EXTRAS_SINCE = (4, 0, 1)
_ASSIGNS_IN_ROUNDS_SINCE = (4, 0, 0)


def keeps_extras(settings: Mapping[str, object]) -> bool:
    """Return whether a member with one more than others keeps it, though a member before it has one less."""
    return _version(settings) >= _KEEPS_EXTRAS_SINCE


def assigns_in_rounds(settings: Mapping[str, object]) -> bool:
    """Return whether different subscriptions are assigned topic by topic, in rounds."""
    return _version(settings) >= _ASSIGNS_IN_ROUNDS_SINCE


def is_preview(settings: Mapping[str, object]) -> bool:
    """Return whether the protocol is a preview in this release; 3.7 and 3.8 assign in another way."""
    return not assigns_in_rounds(settings)


def release_of(version: str) -> str:
    """Return the one of ``RELEASES`` that assigns like a given version of Kafka.

    Example:
        >>> release_of("4.4.0"), release_of("4.0.0"), release_of("3.8.1")
        ('4.0.1', '4.0.0', '3.9')
    """
    settings = {COORDINATOR: version}
    if keeps_extras(settings):
        return TODAY
    return RELEASES[1] if assigns_in_rounds(settings) else PREVIEW


def possible_releases(settings: Mapping[str, object], last: str | None) -> list[str]:
    """Return the releases by which a target may have been computed, likeliest first.

    If a release is reported, a broker may have been upgraded since. Otherwise it may be any, first the one that targets
    showed.

    Example:
        >>> possible_releases({"coordinator": "4.0.0"}, None), possible_releases({}, "4.0.0")
        (['4.0.0', '4.0.1'], ['4.0.0', '4.0.1', '3.9'])
    """
    if settings.get(COORDINATOR):
        reported = release_of(str(settings[COORDINATOR]))
        return list(reversed(RELEASES[: RELEASES.index(reported) + 1]))
    return list(dict.fromkeys((last or TODAY, *RELEASES)))


def _version(settings: Mapping[str, object]) -> tuple[int, int, int]:
    found = _VERSION.match(str(settings.get(COORDINATOR) or TODAY)) or _VERSION.match(TODAY)
    assert found is not None
    return int(found[1]), int(found[2]), int(found[3] or 0)
