"""Shell: the jars that the Spark session needs beside those inside pyspark."""

import sys
from collections.abc import Callable
from pathlib import Path

from streaming import ivy
from streaming.conf_folder import conf_file
from streaming.setup_error import SetupError


def spark_jars(tell: Callable[[str], None] = ivy.say) -> list[Path]:
    """Return the jars of `conf/ivy.xml`, for `spark.jars`; fetch them if this machine has none yet.

    Args:
        tell: takes the lines of progress while fetching.

    Raises:
        SetupError: they cannot be had; the message says the way out.
    """
    return ivy.fetch(conf_file("ivy.xml"), conf_file("jars.sha256"), tell)


def main() -> int:
    """Fetch what is missing and say where it is: the last step of `make setup`."""
    try:
        jars = spark_jars()
    except SetupError as error:
        ivy.say(f"error: {error}")
        return 2
    ivy.say(f"{len(jars)} Spark jars are in {jars[0].parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
