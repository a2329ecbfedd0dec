"""Shell: the jars that the Spark session needs beside those inside pyspark."""

import sys
from collections.abc import Callable
from pathlib import Path

from streaming.settings.conf_files import conf_file
from streaming.setup import ivy
from streaming.setup.errors import SetupError


def spark_jars(report: Callable[[str], None] = ivy.progress) -> list[Path]:
    """Return the jars of `conf/ivy.xml`, for `spark.jars`; fetch them if this machine has none yet.

    Args:
        report: gets the lines of progress while fetching.

    Raises:
        SetupError: They are not available; the message has the remedy.
    """
    return ivy.fetch(conf_file("ivy.xml"), conf_file("jars.sha256"), report)


def main() -> int:
    """Fetch missing jars and print their folder: the last step of `make setup`."""
    try:
        jars = spark_jars()
    except SetupError as error:
        ivy.progress(f"error: {error}")
        return 2
    ivy.progress(f"{len(jars)} Spark jars are in {jars[0].parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
