"""Shell: finds input that was deleted before the job read it, in folders and topics, and reports it as a finding.

Spark stops the query if records are lost (``failOnDataLoss``). Then, and before each start, the loss is reported, and
the query restarts in tolerant mode until it has passed the gap.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from streaming.collectors.event_log.folder_reader import FolderReader
from streaming.machine.logs import logger
from streaming.pipeline.pending_losses import PendingLosses
from streaming.spark.checkpoint import Checkpoint, ControlFolder, Identity
from streaming.stores.places import Place, place_of

if TYPE_CHECKING:
    from streaming.collectors.kafka.topic_reader import TopicReader
    from streaming.settings.model import Settings

_POLL_EVERY_S = 5.0
_log = logger("job")


class PassedOver(Exception):  # noqa: N818 - no error: the query is to start again
    """A tolerant query has passed the gap."""


class LossWatch:
    """Compares the job's positions with deletions.

    Args:
        clusters: Returns the clusters in the checkpoint's state; called only if records are lost.
    """

    def __init__(
        self, settings: Settings, checkpoint: Checkpoint, identity: Identity, clusters: Callable[[], Sequence[str]]
    ) -> None:
        losses = PendingLosses(checkpoint.root / "losses.json", ControlFolder(checkpoint.control))
        self._folder: FolderReader | None = None
        if settings.events.folder:
            sources = [number for number, name in enumerate(identity.sources) if name.startswith(("events:", "files:"))]
            self._folder = FolderReader(
                place_of(settings.events.folder),
                identity.app_id,
                checkpoint=checkpoint.root,
                query=checkpoint.query,
                sources=sources,
                losses=losses,
            )
        self._topics = _topic_readers(settings, checkpoint.query, losses, clusters)
        self._polled_at_s = time.monotonic()
        self._has_failed = False
        self.is_tolerant = False

    def before_start(self) -> bool:
        """Report the losses; return whether the query must skip them instead of failing."""
        if self._folder is not None:
            self._folder.step()
        # A gap without an explanation is skipped as well, or the failure would repeat forever.
        self.is_tolerant = self._is_behind() or self._has_failed
        self._has_failed = False
        return self.is_tolerant

    def step(self, *, progressed: bool) -> PassedOver | None:
        """Update the positions, every few seconds; return why the query must restart, if it must."""
        if time.monotonic() - self._polled_at_s < _POLL_EVERY_S:
            return None
        self._polled_at_s = time.monotonic()
        if self._folder is not None:
            self._folder.step()
        if self.is_tolerant and progressed and not self._is_behind():
            return PassedOver()
        return None

    def after_end(self) -> None:
        """Update the last positions."""
        if self._folder is not None:
            self._folder.step()

    def _is_behind(self) -> bool:
        # All readers are asked, because each reports its own losses.
        behind = [reader.is_behind() for reader in self._topics]
        return any(behind)

    def may_start_again(self, error: BaseException) -> bool:
        """Return whether a query ended because of lost records, or has passed the gap; the next start handles it."""
        if isinstance(error, PassedOver):
            _log.info("the query restarts after the gap, and fails at the next one")
            return True
        from streaming.collectors.kafka.topic_reader import DATA_LOSS

        self._has_failed = not self.is_tolerant and DATA_LOSS in str(error)
        if self._has_failed:
            _log.warning("records were deleted before the query read them; it restarts after the gap")
        return self._has_failed


def _topic_readers(
    settings: Settings, query: Place, losses: PendingLosses, clusters: Callable[[], Sequence[str]]
) -> list[TopicReader]:
    found: list[TopicReader] = []
    events, followed = settings.kafka_events, set(settings.followed().values())
    if events.topic:
        from streaming.collectors.kafka.options import KafkaOptions
        from streaming.collectors.kafka.topic_reader import TopicReader

        options = KafkaOptions(
            events.bootstrap_servers or settings.kafka.bootstrap_servers, events.topic, events.plain_options()
        )

        def carried() -> list[str]:
            """Return the clusters whose events the topic may carry, without those of a collector in this process."""
            names = list(clusters())
            return [cluster for cluster in names if cluster not in followed] or names

        found.append(TopicReader(events.topic, options, query, losses, carried))
    if settings.kafka.bootstrap_servers:
        from streaming.collectors.kafka.factory import options_of
        from streaming.collectors.kafka.topic_reader import TopicReader
        from udfs.kafka.consumer_offsets import OFFSETS_TOPIC

        found.append(
            TopicReader(OFFSETS_TOPIC, options_of(settings.kafka), query, losses, lambda: [settings.kafka.cluster])
        )
    return found
