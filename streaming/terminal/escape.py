"""Shell: untrusted names, escaped for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return the text with everything escaped that would move a terminal's cursor, colour it or break its lines.

    Example:
        >>> printable("日本 a\\x1b[2J\\n"), printable("plain")
        ('日本 a\\\\x1b[2J\\\\n', 'plain')
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
