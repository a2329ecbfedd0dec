"""Command: `setup`: what the job needs beside Python's packages."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from streaming.commands.pack import Store


def setup(
    *,
    store: Annotated[Store | None, typer.Option(metavar="s3", help="Fetch the jars of this store, too.")] = None,
    class_archive: Annotated[
        bool,
        typer.Option(
            "--class-archive", help="Archive the classes of Spark's JVM, too: a minute now, seconds less at each start."
        ),
    ] = False,
) -> None:
    """Fetch the jars that Spark needs, and compare each with its SHA-256; `run` does so too, if they are missing.

    They go to ~/.cache/rebalance-monitor, or to REBALANCE_MONITOR_CACHE, which may then be read-only.
    """
    from streaming.setup.errors import SetupError
    from streaming.setup.jars import spark_jars, store_jars
    from streaming.setup.java import find_java
    from streaming.setup.packages import require_spark
    from streaming.spark.class_archive import archive_file, main

    require_spark()
    java = find_java()
    jars = [*spark_jars(is_summed=True), *store_jars([store.value] if store else [], is_summed=True)]
    sizes = sum(jar.stat().st_size for jar in jars) / 1e6
    for folder in sorted({jar.parent for jar in jars}):
        sys.stdout.write(f"jars: {folder}\n")
    sys.stdout.write(f"{len(jars)} jars, {sizes:.0f} MB, each with its SHA-256; Java {java.version} in {java.home}\n")
    if class_archive:
        main()
        if not archive_file().exists():
            raise SetupError("The classes were not archived.", "See above. The job starts without, only later.")
        sys.stdout.write(f"classes: {archive_file()}\n")
