"""Shell: `pack`: the files that spark-submit needs."""

from __future__ import annotations

import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from streaming.commands.options import path_option

ARCHIVE, ENTRY, JARS = "rebalance-monitor.zip", "rebalance_monitor.py", "jars"
_ENTRY_LINES = "from streaming.commands import main\n\nmain()\n"


class Store(StrEnum):
    """Stores whose jars can be packed."""

    S3 = "s3"


def pack(
    *,
    out: Annotated[Path, path_option("Folder to write to.")],
    store: Annotated[Store | None, typer.Option(metavar="s3", help="Pack the jars of this store, too.")] = None,
) -> None:
    """Write the files for spark-submit: the code as a zip, an entry file, Spark's jars.

    Installed custom strategies are in the zip. The dependencies of the wheel are not: executors need them installed or
    as a packed environment.
    """
    from streaming.setup.jars import spark_jars, store_jars
    from streaming.spark.code_archive import write_code_archive

    (out / JARS).mkdir(parents=True, exist_ok=True)
    write_code_archive(out).replace(out / ARCHIVE)
    (out / ENTRY).write_text(_ENTRY_LINES)
    for jar in [*spark_jars(), *store_jars([store.value] if store else [])]:
        shutil.copyfile(jar, out / JARS / jar.name)
    sys.stderr.write(
        f"spark-submit --master MASTER --conf spark.log.level=WARN --py-files {out / ARCHIVE} \\\n"
        f'  --jars "$(echo {out / JARS}/*.jar | tr " " ,)" {out / ENTRY} run …\n'
    )
