"""Shell: the parent of Spark's Python workers on one machine, which imports their common modules once.

Spark's own parent process imports nothing. Each worker would take most of a second of a core to start, and a hundred
megabytes that it shares with no other.
"""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Final

from pyspark.daemon import manager

_NEEDED_BY_WORKERS: Final = (
    *("pandas", "pyarrow", "pyspark.worker", "pyspark.sql.pandas.types"),
    *("streaming.pipeline.combine", "udfs.stateful"),
)

if __name__ == "__main__":
    for name in _NEEDED_BY_WORKERS:
        import_module(name)
    gc.freeze()  # otherwise the first collection of each worker would copy all pages with objects
    manager()
