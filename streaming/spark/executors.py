"""Shell: what executors need from the driver: the monitor's code, and a check that the job can run there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from streaming.setup.errors import SetupError
from streaming.spark.code_archive import write_code_archive
from streaming.spark.root_cause import reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Functions that executors run import these, in addition to the monitor's own code.
NEEDED = ("msgspec", "numpy", "pandas", "pyarrow", "kazoo", "structlog", "udfs.stateful", "streaming.pipeline.combine")
# With this many tasks each of a few executors gets one.
_TASKS = 4
_PROBLEMS = pa.schema([("problem", pa.string())])

_Check = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def prepare_executors(spark: SparkSession, scratch: Path, shared: Sequence[Path] = ()) -> None:
    """Send the code, and run a small job that tries it.

    Args:
        scratch: The folder of the archive while the session lives.

    Raises:
        SetupError: A library is missing there, Python is another version, or a folder differs there.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    spark.addArtifacts(str(write_code_archive(scratch)), pyfile=True)
    check = executor_check(sys.version_info[:2], [str(folder) for folder in shared])
    try:
        rows = spark.range(_TASKS, numPartitions=_TASKS).mapInArrow(check, "problem string").distinct().collect()
    except (PySparkException, Py4JError) as error:
        raise SetupError(f"Executors cannot run the job: {reason(error)}", _REMEDY) from error
    if problems := sorted(row["problem"] for row in rows):
        raise SetupError(f"Executors cannot run the job: {'; '.join(problems)}", _REMEDY)


_REMEDY = (
    "docs/clusters.md says what executors need: Python of the driver's version with the dependencies of the wheel\n"
    "(spark.pyspark.python, PYSPARK_PYTHON or a packed environment), and folders that all machines see."
)


def executor_check(version: tuple[int, int], folders: Sequence[str]) -> _Check:
    """Return a function that finds problems on an executor; it travels by value, as the code may not be there.

    Args:
        version: The version of the driver's Python. folders: The required folders.
    """

    def problems() -> Iterator[str]:
        import importlib
        import platform

        there = f"on {platform.node()}, {sys.executable}"
        if sys.version_info[:2] != version:
            yield f"Python is {platform.python_version()} {there}, that of the driver {version[0]}.{version[1]}"
        for name in NEEDED:
            try:
                importlib.import_module(name)
            except ImportError as error:
                yield f"{name} cannot be imported {there}: {error}"
        missing = [folder for folder in folders if not Path(folder).is_dir()]
        yield from (f"{folder} is a folder of the driver's machine and is not there {there}" for folder in missing)

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield pa.record_batch([pa.array(list(problems()), pa.string())], schema=_PROBLEMS)

    return check
