"""Shell: the parent of Spark's Python workers on one machine, which imports their common modules once.

Spark's own parent process imports nothing. Each worker would take most of a second of a core to start, and a hundred
megabytes that it shares with no other.
"""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Final

from pyspark.daemon import manager

from streaming.spark.executors import NEEDED

_OF_SPARK: Final = ("pyspark.worker", "pyspark.sql.pandas.types")

if __name__ == "__main__":
    for name in (*NEEDED, *_OF_SPARK):
        import_module(name)
    gc.freeze()  # otherwise the first collection of each worker would copy all pages with objects
    manager()
