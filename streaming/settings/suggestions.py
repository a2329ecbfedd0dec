"""Shell: suggestions for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

_MOST = 3
# Similarity is computed for each name; among more names, only those that contain the text are suggested.
_MOST_COMPARED = 20_000
# With fewer common letters a suggestion would be a guess.
_SIMILARITY = 0.7


def closest(text: str, names: Iterable[str]) -> list[str]:
    """Return the names that a text was probably meant to be, the likeliest first; at most three.

    Example:
        >>> closest("AVG", ["rocketmq.AVG", "rocketmq.AVG_BY_CIRCLE", "metaq.default"])
        ['rocketmq.AVG']
        >>> closest("security.protcol", ["security.protocol", "sasl.mechanism"]), closest("x", ["security.protocol"])
        (['security.protocol'], [])
    """
    wanted = text.casefold()
    by_key: dict[str, str] = {}
    for name in sorted(names):
        by_key.setdefault(name.casefold(), name)
    same = [name for key, name in by_key.items() if wanted in (key, key.rpartition(".")[2])]
    if same or not wanted:
        return same[:_MOST]
    if len(by_key) > _MOST_COMPARED:
        return [name for key, name in by_key.items() if wanted in key][:_MOST]
    similar = difflib.get_close_matches(wanted, by_key, n=_MOST, cutoff=_SIMILARITY)
    # A text is more often part of the intended name than an anagram of it.
    containing = [key for key in by_key if len(wanted) > 2 and wanted in key]
    return [by_key[key] for key in dict.fromkeys([*similar, *containing])][:_MOST]


def did_you_mean(text: str, names: Collection[str]) -> str:
    """Return the end of a sentence that suggests names in place of an unknown one; empty if none is close.

    Example:
        >>> did_you_mean("orderz", ["orders", "payments"]), did_you_mean("x", ["orders"])
        ('; did you mean orders?', '')
    """
    found = closest(text, names)
    return f"; did you mean {' or '.join(found)}?" if found else ""


def one_of(text: str, names: Collection[str]) -> str:
    """Return why a text is none of a few names: the valid names, and which was probably meant.

    Example:
        >>> one_of("fialed", ["completed", "failed"])
        "'fialed' is not one of completed, failed; did you mean failed?"
    """
    return f"{text[:50]!r} is not one of {', '.join(names)}{did_you_mean(text, names)}"
