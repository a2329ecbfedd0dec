"""A real server of the S3 protocol (S3Proxy 4.1.0) on a loopback port, its buckets in a folder."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streaming.stores.hadoop import hadoop_conf
from tests.kit.jars import class_path
from tests.kit.processes import JavaServer, free_port, listens

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_START_TIMEOUT_S = 120
_KEY, _SECRET = "test-key", "test-secret"
BUCKET = "lake"


class S3Server:
    """One server with one bucket; a second put under one name with `If-None-Match: *` is answered with 412.

    Attributes:
        options: What a client of it has in its environment.
        uri: its bucket.
    """

    def __init__(self, folder: Path, *, is_read_only: bool = False) -> None:
        self._buckets = buckets = folder / "buckets"
        (buckets / BUCKET).mkdir(parents=True)
        self._port = free_port()
        self.uri = f"s3://{BUCKET}"
        self.options = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
        }
        settings = {
            "s3proxy.endpoint": f"http://127.0.0.1:{self._port}",
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.identity": _KEY,
            "s3proxy.credential": _SECRET,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.identity": "unused",
            "jclouds.credential": "unused",
            "jclouds.filesystem.basedir": str(buckets),
            "s3proxy.read-only-blobstore": str(is_read_only).lower(),
        }
        written = folder / "s3proxy.conf"
        written.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        main = ["org.gaul.s3proxy.Main", "--properties", str(written)]
        options = ["-Xms32m", "-Xmx256m", "-DLOG_LEVEL=warn"]
        self._server = JavaServer("s3proxy", folder, class_path("s3proxy-4.1.0", "Guarded"), options, main)

    def folder(self, monkeypatch: pytest.MonkeyPatch) -> str:
        """Put the options into the environment, and return the URI of a folder that nobody uses yet."""
        for name, value in self.options.items():
            monkeypatch.setenv(name, value)
        return f"{self.uri}/{uuid.uuid4().hex}"

    def connect(self, spark: SparkSession) -> None:
        """Let a session that runs already read and write it; the job's own finds the same in its environment."""
        conf = spark.sparkContext._jsc.hadoopConfiguration()
        for name, value in hadoop_conf([self.uri], self.options).items():
            conf.set(name.removeprefix("spark.hadoop."), value)
        conf.set("fs.s3a.access.key", _KEY)
        conf.set("fs.s3a.secret.key", _SECRET)

    def files(self, uri: str) -> list[Path]:
        """Return what a folder holds."""
        return [file for file in (self._buckets / uri.removeprefix("s3://")).rglob("*") if file.is_file()]

    def start(self) -> None:
        """Start it."""
        self._server.start(lambda: listens(self._port), _START_TIMEOUT_S)

    def stop(self) -> None:
        """End it."""
        self._server.kill()

    def freeze(self) -> None:
        """Stop its clock (SIGSTOP): connections stay open and nothing answers."""
        self._server.freeze()

    def thaw(self) -> None:
        """Let it go on."""
        self._server.thaw()


@contextlib.contextmanager
def running_s3(folder: Path, *, is_read_only: bool = False) -> Iterator[S3Server]:
    """Run one until the block is left."""
    server = S3Server(folder, is_read_only=is_read_only)
    try:
        server.start()
        yield server
    finally:
        server.stop()
