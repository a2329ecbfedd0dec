"""Shell: a replay of many groups, as it was asked for. No Spark."""

from __future__ import annotations

from typing import NamedTuple

from streaming.history.replay_figures import Asked, refusal
from streaming.tables.errors import NotFoundError


class ReplayRequest(NamedTuple):
    """A replay as it was asked for.

    Attributes:
        as_written: The bounds as written: an unfinished replay is continued by what was written like it.
        cluster: None for all. group_ids: In order; empty for all.
    """

    asked: Asked
    as_written: tuple[str | None, ...] = ()
    cluster: str | None = None
    group_ids: tuple[str, ...] = ()

    def check_policies(self) -> None:
        """Refuse what is no policy of any group.

        Raises:
            NotFoundError: A text is no policy.
        """
        for text in self.asked.policies:
            if (reason := refusal(text)) is not None:
                raise NotFoundError(reason)
