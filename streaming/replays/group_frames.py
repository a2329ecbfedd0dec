"""Shell: everything that the tables have of some groups, group by group, on the executors of Spark.

A table is read at the version that it had when the replay began. The rows of a group travel to one task as structs, one
column for each table, and are decided again there: neither rows nor events come to the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from streaming.allocation.plugins import installed_user_strategies
from streaming.history.group_rows import NEEDED
from streaming.history.replay_figures import Asked, GivenRows, replay_figures
from streaming.settings.locations import Location
from streaming.tables.arrow_rows import as_schema, from_arrow, to_arrow
from streaming.tables.delta_spark_table import spark_name, uri_of
from streaming.tables.replay_tables import REPLAY_GROUPS
from streaming.tables.retention import dropped_before
from streaming.tables.schema import GROUPS, TABLES, Row
from streaming.tables.spark_sql import sql_type
from udfs.model.config import CoreConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READ: Final = (GROUPS.name, *NEEDED)
_KEY: Final = ("cluster", "group_id")
# A task decides about this many groups again, one after the other.
_GROUPS_A_TASK: Final = 8
# Every topic that a session names, now or earlier.
_SUBSCRIBED: Final = (
    "array_union(coalesce(subscriptions, array()),"
    " flatten(transform(coalesce(earlier, array()), former -> coalesce(former.subscriptions, array()))))"
)
# Releases up to 0.2.0 had no earlier descriptions.
_SUBSCRIBED_NOW: Final = "coalesce(subscriptions, array())"


class GroupRange(NamedTuple):
    """Groups of one cluster whose rows are read together: their tables are in the order of their names.

    Attributes:
        group_ids: In order.
    """

    cluster: str
    group_ids: tuple[str, ...]


class GroupFrames:
    """The tables of one job, at fixed versions.

    Args:
        versions: Those that the replay began with; None for the newest ones.
    """

    def __init__(self, spark: SparkSession, root: Location, versions: Mapping[str, int] | None = None) -> None:
        self._spark = spark
        self._root = root
        logs = {name: DeltaTable(uri_of(spark, root, name)) for name in READ}
        self.versions = dict(versions or {name: log.version() for name, log in logs.items()})
        self.identities = [str(log.metadata().id) for log in logs.values()]
        self._frames: dict[str, DataFrame] = {}
        self._dropped = {name: dropped_before(logs[name].metadata().configuration) for name in NEEDED}

    def groups(self, cluster: str | None, group_ids: Sequence[str]) -> list[tuple[str, str, int]]:
        """Return the groups that the tables know, in order, with how many rebalances each has.

        Args:
            cluster: None for all. group_ids: Empty for all.
        """
        from pyspark.sql import functions

        single, none = (functions.lit(number).alias("rebalances") for number in (1, 0))
        named = self._frame("rebalances").select(*_KEY, single).unionByName(self._frame("groups").select(*_KEY, none))
        if cluster is not None:
            named = named.where(functions.col("cluster") == cluster)
        if group_ids:
            named = named.where(functions.col("group_id").isin(*group_ids))
        counted = named.groupBy(*_KEY).agg(functions.sum("rebalances").alias("rebalances")).collect()
        return sorted((row["cluster"], row["group_id"], row["rebalances"]) for row in counted)

    def replayed(self, piece: GroupRange, asked: Asked, config: CoreConfig, of_replay: Row) -> pa.Table:
        """Return the rows of ``replay_groups`` of a piece; ``of_replay`` has what is the same in all rows."""
        together = self._rows_of(piece)
        tasks = -(-len(piece.group_ids) // _GROUPS_A_TASK)
        columns = ", ".join(f"`{column.name}` {sql_type(column.type)}" for column in REPLAY_GROUPS.columns)
        dropped = self._dropped

        # Spark chooses by the types of this function how it is called; they do not reach through a partial one.
        def decide(shipped: pa.Table) -> pa.Table:
            return decided_again(asked, config, dropped, of_replay, shipped)

        found = together.repartition(tasks, *_KEY).groupBy(*_KEY).applyInArrow(decide, columns).toArrow()
        order = [("cluster", "ascending"), ("group_id", "ascending"), ("policy", "ascending")]
        return as_schema(found, REPLAY_GROUPS.schema).sort_by(order)

    def _rows_of(self, piece: GroupRange) -> DataFrame:
        """Return each row of a piece's groups as a struct in the column of its table."""
        from pyspark.sql import functions

        own = {name: self._of(piece, name) for name in READ if name != "topics"}
        members, topics = own["members"], self._frame("topics").where(functions.col("cluster") == piece.cluster)
        subscribed = functions.expr(_SUBSCRIBED if "earlier" in members.columns else _SUBSCRIBED_NOW)
        wanted = members.select(*_KEY, functions.explode(subscribed).alias("topic")).distinct()
        frames = [frame.select(*_KEY, functions.struct(*frame.columns).alias(name)) for name, frame in own.items()]
        of_topics = functions.struct(*(topics[name] for name in topics.columns)).alias("topics")
        frames.append(wanted.join(topics, ["cluster", "topic"]).select(*_KEY, of_topics))
        return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)

    def _of(self, piece: GroupRange, name: str) -> DataFrame:
        from pyspark.sql import functions

        group_id = functions.col("group_id")
        # The bounds skip files: a piece is a range of groups, by which files are clustered.
        return self._frame(name).where(
            (functions.col("cluster") == piece.cluster)
            & group_id.between(piece.group_ids[0], piece.group_ids[-1])
            & group_id.isin(*piece.group_ids)
        )

    def _frame(self, name: str) -> DataFrame:
        if name not in self._frames:
            # Spark reads the log of a table for each such query, so all pieces share one.
            found = self._spark.sql(f"SELECT * FROM {spark_name(self._root, name)} VERSION AS OF {self.versions[name]}")
            # A column that a user has added is no part of a history.
            self._frames[name] = found.select(*(column for column in TABLES[name].names if column in found.columns))
        return self._frames[name]


def decided_again(
    asked: Asked, config: CoreConfig, dropped: Mapping[str, Mapping[str, int]], of_replay: Row, shipped: pa.Table
) -> pa.Table:
    """Return the rows of one group; runs in a Python worker."""
    # Each worker is its own process and finds users' strategies once.
    installed_user_strategies()
    rows = {name: from_arrow(TABLES[name], _unpacked(shipped, name)) for name in READ}
    cluster, group_id = (shipped[name][0].as_py() for name in _KEY)
    system = next((row["system"] for row in rows["groups"]), None)
    figures = replay_figures(GivenRows(rows, dropped), cluster, group_id, asked, config, system)
    return to_arrow(REPLAY_GROUPS, [row | of_replay for row in figures])


def _unpacked(shipped: pa.Table, name: str) -> pa.Table:
    structs = shipped[name].filter(pc.is_valid(shipped[name])).combine_chunks()
    return as_schema(pa.Table.from_struct_array(structs), TABLES[name].schema)
