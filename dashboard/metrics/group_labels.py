"""Dashboard: values of labels: untrusted names, made short and plain, and limited in number. No I/O."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from streaming.settings.model import Metrics
from streaming.terminal.escape import printable

# The label of everything without a label of its own.
OTHER = "other"
LONGEST = 120
_DIGITS = 8

Key = tuple[str, str]


def label(text: str | None) -> str:
    """Return a name as the value of a label: printable, at most 120 characters; different names stay different.

    Example:
        >>> label("orders"), label("a\\nb"), label(None)
        ('orders', 'a\\\\nb#59900c43', '')
        >>> len(label("x" * 10_000)), label("other")
        (120, 'other#db0fba7c')
    """
    if text is None:
        return ""
    plain = printable(text)
    if plain == text and len(text) <= LONGEST and text != OTHER and not re.search(r"#[0-9a-f]{8}$", text):
        return text
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGITS // 2).hexdigest()
    return f"{plain[: LONGEST - _DIGITS - 1]}#{digest}"


class GroupLabels:
    """Decides which groups have their own label: those decided first keep it forever, all others are summed.

    So a new group never changes another group's label, which would make a counter fall.

    Args:
        groups: Clusters and groups, in the order in which they were first decided.
        clusters: In that order, with repeats.
    """

    def __init__(self, groups: Iterable[Key], clusters: Iterable[str], settings: Metrics) -> None:
        self._clusters = set(list(dict.fromkeys(clusters))[: settings.max_clusters])
        matching = [re.compile(pattern, re.DOTALL) for pattern in settings.groups]
        self._own: set[Key] = set()
        # Each label is made once, because some families have a row for each queue or rebalance.
        self._labels: dict[tuple[str, str | None], tuple[str, str]] = {}
        for key in groups:
            if len(self._own) >= settings.max_groups:
                break
            if key[0] in self._clusters and any(pattern.fullmatch(key[1]) for pattern in matching):
                self._own.add(key)

    def cluster(self, name: str) -> str:
        """Return the label of a cluster."""
        return label(name) if name in self._clusters else OTHER

    def of(self, cluster: str, group_id: str | None) -> tuple[str, str]:
        """Return the labels of a group; for a cluster's own rows, without a group, the group's label is empty."""
        key = (cluster, group_id)
        found = self._labels.get(key)
        if found is None:
            found = self._labels[key] = self.cluster(cluster), self._group(cluster, group_id)
        return found

    def _group(self, cluster: str, group_id: str | None) -> str:
        if group_id is None:
            return ""
        return label(group_id) if (cluster, group_id) in self._own else OTHER
