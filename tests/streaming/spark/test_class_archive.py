"""The archive of the classes that Spark's JVM loads: it is used where it is there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streaming.settings.model import load
from streaming.spark.class_archive import archive_file, archive_options
from streaming.spark.session import session_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_java_is_given_the_archive_only_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert archive_options() == ()
    archive_file().touch()
    conf = session_conf(load(None, {"spark.master": "local[2]"}))
    assert f"-XX:SharedArchiveFile={tmp_path}" in conf["spark.driver.extraJavaOptions"]


@pytest.mark.spark
def test_a_session_reads_its_classes_from_the_archive_that_the_set_up_made(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm is not None
    mapped = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/maps").read_text()
    assert str(archive_file().resolve()) in mapped
