"""Shell: the jars that the Spark session needs in addition to those inside pyspark."""

import sys
from collections.abc import Iterable
from pathlib import Path

from streaming.settings.conf_files import conf_path
from streaming.setup import ivy
from streaming.setup.errors import SetupError

# The monitor fetches the jars of these schemes itself.
_LISTED = {"s3"}


def spark_jars(*, is_summed: bool = False) -> list[Path]:
    """Return the jars of `conf/ivy.xml`, for `spark.jars`; fetch them if this machine has none yet.

    Args:
        is_summed: Compare the sums of jars that this machine has, too.

    Raises:
        SetupError: They are not available; the message has the remedy.
    """
    return _listed("ivy.xml", "jars.sha256", is_summed)


def store_jars(schemes: Iterable[str], *, is_summed: bool = False) -> list[Path]:
    """Return the jars with which Hadoop reads and writes stores; those of `conf/ivy-SCHEME.xml`.

    Args:
        schemes: Schemes of URIs. HDFS needs no further jars; those of other stores are named by their users.
        is_summed: As of `spark_jars`.

    Raises:
        SetupError: They are not available; the message has the remedy.
    """
    listed = [_listed(f"ivy-{scheme}.xml", f"jars-{scheme}.sha256", is_summed) for scheme in _LISTED & set(schemes)]
    return [jar for jars in listed for jar in jars]


def _listed(ivy_name: str, sums_name: str, is_summed: bool) -> list[Path]:
    with conf_path(ivy_name) as ivy_file, conf_path(sums_name) as sums_file:
        return ivy.fetch(ivy_file, sums_file, is_summed=is_summed)


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
