"""Shell: why no group is listed, and what to do next."""

from __future__ import annotations

from streaming.terminal.format import count
from streaming.views.group_sources import group_sources
from streaming.views.reader import Reader


def nothing_to_list(reader: Reader, cluster: str | None = None) -> str:
    """Return why no group is listed: none fits, or none is known yet, of which clusters.

    Args:
        cluster: Only its groups were to be listed.
    """
    if number := reader.read("groups", columns=["cluster"], where={"cluster": cluster}).num_rows:
        return f"none of {count(number, 'group')} fits these filters"
    return f"no group yet: {connected_text(reader)}"


def connected_text(reader: Reader) -> str:
    """Return which clusters are followed although no group of theirs is known, and what to do next."""
    clusters = connected_clusters(reader)
    if not clusters:
        return "no cluster has been read; start `run` with --kafka, --rocketmq, --metaq or --events"
    return (
        f"{', '.join(clusters)} {'is' if len(clusters) == 1 else 'are'} followed, and no group was observed there;"
        " groups appear once a consumer joins or commits, unless --include-group or --exclude-group leave them out"
    )


def connected_clusters(reader: Reader) -> list[str]:
    """Return the clusters that sources follow, whether or not they have groups; sorted."""
    found = set(group_sources(reader))
    for table in ("topics", "findings"):
        found.update(reader.read(table, columns=["cluster"])["cluster"].unique().to_pylist())
    return sorted(name for name in found if name)
