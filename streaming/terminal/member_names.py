"""Shell: ids of members, shortened for people: clients give their members random ids. No I/O."""

from __future__ import annotations

import re

# The random part is a UUID, as the whole id or its end; some clients use a part of one.
_HEX = r"[0-9a-f]{8}(?:-[0-9a-f]{4,12}){1,4}"
_UUID = re.compile(_HEX)
_UUID_END = re.compile(rf"[-_]{_HEX}$")
# Java's Uuid and librdkafka write 16 random bytes like this, for members of Kafka's newer protocols.
_BASE64_UUID = re.compile(r"[A-Za-z0-9_-]{22}")
_SHOWN = 8


def client_of(member_id: str, client_id: str | None = None) -> str:
    """Return the part of a member that stays when it comes back: its id without a random part, else its client id.

    Args:
        client_id: From its description; None if unknown.

    Example:
        >>> client_of("orders-1-7d4fbd2e-8f0e-4a52-9d4b-0f6c6d2e8a11"), client_of("nGq0YGz5S2K8mVf1l2Qq7g", "orders-1")
        ('orders-1', 'orders-1')
        >>> client_of("10.6.1.243@12345#99", "10.6.1.243@12345#99"), client_of("7d4fbd2e-8f0e-4a52-9d4b-0f6c6d2e8a11")
        ('10.6.1.243@12345#99', '7d4fbd2e')
    """
    if _UUID.fullmatch(member_id):
        return client_id or member_id[:_SHOWN]
    if client_id and _BASE64_UUID.fullmatch(member_id):
        return client_id
    return _UUID_END.sub("", member_id)


def is_opaque(member_id: str) -> bool:
    """Return whether an id may be merely random."""
    return bool(_UUID.fullmatch(member_id) or _BASE64_UUID.fullmatch(member_id))


def brief_id(member_id: str) -> str:
    """Return a prefix of a member's id that is rarely another's: its name and a part of its UUID.

    Example:
        >>> brief_id("orders-1-7d4fbd2e-8f0e-4a52-9d4b-0f6c6d2e8a11"), brief_id("10.6.1.243@12345#99")
        ('orders-1-7d4fbd2e', '10.6.1.243@12345#99')
    """
    found = _UUID_END.search(member_id) or _UUID.fullmatch(member_id)
    if found is None:
        return member_id
    begin = found.start() + (not found[0][0].isalnum())
    return member_id[: begin + _SHOWN]
