"""Shell: the sources of the query in their order, which is fixed for the life of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from streaming.pipeline.sources import collected_source, control_source, folder_source, topic_source
from streaming.stores.places import place_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streaming.settings.model import Settings
    from streaming.spark.checkpoint import Checkpoint


class Followed(Protocol):
    """A live cluster, as far as the query reads it; ``source_kind`` is its kind in a checkpoint, if not its system."""

    source_kind: str | None

    def source(self, spark: SparkSession, *, max_offsets_per_batch: int, is_tolerant: bool) -> DataFrame | None:
        """Return the raw rows that Spark reads itself; None if the collector reports everything."""


class QuerySource(NamedTuple):
    """One source of the query.

    Attributes:
        names: Its names in a checkpoint.
        read: Returns its raw rows, given a session and whether the read is tolerant: records deleted before they were
            read are skipped, otherwise the query fails. None if it has no rows of its own.
    """

    names: tuple[str, ...]
    read: Callable[[SparkSession, bool], DataFrame | None]


def query_sources(settings: Settings, checkpoint: Checkpoint, followers: Sequence[Followed]) -> Iterator[QuerySource]:
    """Yield the sources of the query in their order.

    Args:
        followers: The followed clusters of the settings, in the order of ``Settings.followed``.
    """
    job, topic, folder = settings.job, settings.kafka_events, settings.events.folder
    most = job.max_offsets_per_batch
    yield QuerySource(("control",), lambda spark, _: control_source(spark, checkpoint.control))
    if folder:
        place = place_of(folder)
        yield QuerySource(  # its lines and its files
            (f"events:{place}", f"files:{place}"),
            lambda spark, _: folder_source(spark, place, max_files_per_batch=job.max_files_per_batch),
        )
    if topic.topic:
        yield QuerySource(
            (f"kafka-events:{topic.topic}",),
            lambda spark, is_tolerant: topic_source(
                spark,
                topic.topic,
                bootstrap_servers=topic.bootstrap_servers or settings.kafka.bootstrap_servers,
                options=topic.plain_options(),
                max_offsets_per_batch=most,
                is_tolerant=is_tolerant,
            ),
        )
    for (system, cluster), follower in zip(settings.followed().items(), followers, strict=True):
        yield QuerySource((f"{follower.source_kind or system}:{cluster}",), _rows_of(follower, most))
    if followers:
        yield QuerySource((), lambda spark, _: collected_source(spark, checkpoint.collected))


def _rows_of(follower: Followed, most: int) -> Callable[[SparkSession, bool], DataFrame | None]:
    return lambda spark, is_tolerant: follower.source(spark, max_offsets_per_batch=most, is_tolerant=is_tolerant)


def names_of(sources: Sequence[QuerySource]) -> list[str]:
    """Return the query's sources in the form stored in a checkpoint."""
    return [name for source in sources for name in source.names]


def rows_of(sources: Sequence[QuerySource], spark: SparkSession, *, is_tolerant: bool) -> list[DataFrame]:
    """Return the raw rows of the sources, in their order."""
    found = (source.read(spark, is_tolerant) for source in sources)
    return [rows for rows in found if rows is not None]
