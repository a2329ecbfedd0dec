"""Shell: the one streaming query: sources, combine, state, sink, in this order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError

from streaming.allocation.plugins import installed_user_strategies
from streaming.pipeline.combine import PACKET_SCHEMA, combine
from streaming.stores.places import Place, hadoop_uri
from udfs.model.garbage_collection import exempt_loaded_modules
from udfs.stateful import DECIDED_SCHEMA, STATE_SCHEMA, shard_function

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from udfs.ingest.combiner import FollowedCluster
    from udfs.model.config import CoreConfig
    from udfs.stateful import StateHandle

BatchWriter = Callable[["DataFrame", int], None]


def packets(
    sources: Sequence[DataFrame],
    config: CoreConfig,
    *,
    followed: FollowedCluster | None = None,
    access: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the packets that travel to the shards: (cluster, shard, payload), a few rows for each task.

    Args:
        followed, access: See ``combine``.
    """
    from pyspark.sql import functions

    raw = reduce(lambda left, right: left.unionByName(right), sources)
    # Within a streaming query this is the batch's own timestamp, the same when the batch is repeated.
    stamped = raw.withColumn("batch_ms", functions.unix_millis(functions.current_timestamp()))
    combine_rows = combine(config, followed=followed, access=access)

    def combine_in_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        exempt_loaded_modules()
        return combine_rows(batches)

    return stamped.mapInArrow(combine_in_worker, PACKET_SCHEMA)


def decisions(packed: DataFrame, config: CoreConfig, *, checkpoint: Place | None = None) -> DataFrame:
    """Return the shards' decisions: (kind, cluster, body).

    Args:
        checkpoint: The checkpoint's folder, for errors.
    """
    advance = shard_function(config, checkpoint=str(checkpoint or ""))

    def advance_shard(
        key: tuple[str, int], frames: Iterable[pd.DataFrame], state: StateHandle
    ) -> Iterator[pd.DataFrame]:
        # Each worker is its own process and finds users' strategies once.
        installed_user_strategies()
        exempt_loaded_modules()
        return advance(key, frames, state)

    # They are also loaded here, so that the job's own log names those that are rejected.
    installed_user_strategies()
    return packed.groupBy("cluster", "shard").applyInPandasWithState(
        advance_shard, DECIDED_SCHEMA, STATE_SCHEMA, "append", "NoTimeout"
    )


def start_query(
    decided: DataFrame, sink: BatchWriter, *, checkpoint: Place, once: bool, trigger_interval_ms: int
) -> StreamingQuery:
    """Start the query, or resume it from its checkpoint."""
    place = hadoop_uri(checkpoint)
    writer = decided.writeStream.outputMode("append").option("checkpointLocation", place).foreachBatch(sink)
    if once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{trigger_interval_ms} milliseconds").start()


def stop_query(query: StreamingQuery) -> bool:
    """Stop a query at once.

    Returns: whether its sources are closed: a reader that waits for an unavailable broker cannot be interrupted, and
        ends with the process.

    Raises:
        Py4JJavaError: Spark cannot stop it for another reason.
    """
    try:
        query.stop()
    except Py4JJavaError as error:
        if "java.util.concurrent.TimeoutException" not in str(error):
            raise
        return False
    return True
