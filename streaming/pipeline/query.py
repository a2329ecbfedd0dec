"""Shell: the one streaming query: sources, combine, state, sink, in this order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from streaming.allocation.plugins import installed_user_strategies
from streaming.pipeline.combine import PACKET_SCHEMA, combine
from udfs.stateful import DECIDED_SCHEMA, STATE_SCHEMA, shard_function

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from udfs.ingest.combiner import FollowedCluster
    from udfs.model.config import CoreConfig
    from udfs.stateful import StateHandle

Sink = Callable[["DataFrame", int], None]


def packets(sources: Sequence[DataFrame], rules: CoreConfig, *, followed: FollowedCluster | None = None) -> DataFrame:
    """Return what travels to the shards: (cluster, shard, payload), a few rows for each task."""
    from pyspark.sql import functions

    raw = reduce(lambda left, right: left.unionByName(right), sources)
    # Within a streaming query this is the batch's own timestamp, the same when the batch is done again.
    stamped = raw.withColumn("batch_ms", functions.unix_millis(functions.current_timestamp()))
    return stamped.mapInArrow(combine(rules, followed=followed), PACKET_SCHEMA)


def decisions(packed: DataFrame, rules: CoreConfig, *, checkpoint: Path | None = None) -> DataFrame:
    """Return what the shards decide: (kind, cluster, body).

    Args:
        checkpoint: The checkpoint's folder, for errors.
    """
    advance = shard_function(rules, checkpoint=str(checkpoint or ""))

    def advance_shard(
        key: tuple[str, int], frames: Iterable[pd.DataFrame], state: StateHandle
    ) -> Iterator[pd.DataFrame]:
        # The workers are processes of their own: each finds users' strategies once.
        installed_user_strategies()
        return advance(key, frames, state)

    # Here too, so that the job's own log names the ones that are not loaded.
    installed_user_strategies()
    return packed.groupBy("cluster", "shard").applyInPandasWithState(
        advance_shard, DECIDED_SCHEMA, STATE_SCHEMA, "append", "NoTimeout"
    )


def start_query(
    decided: DataFrame, sink: Sink, *, checkpoint: Path, once: bool, trigger_interval_ms: int
) -> StreamingQuery:
    """Start the query, or go on where the checkpoint stopped."""
    writer = decided.writeStream.outputMode("append").option("checkpointLocation", str(checkpoint)).foreachBatch(sink)
    if once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{trigger_interval_ms} milliseconds").start()
