"""Whether a store may be used as it must be: in one line, with the remedy, before Spark starts."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from streaming.settings.errors import SettingsError
from streaming.stores import access
from streaming.stores.access import access_error, require_stores
from streaming.stores.failure import StoreAwayError
from tests.kit.s3 import running_s3
from tests.streaming.stores.test_name_nodes import write_site

if TYPE_CHECKING:
    from tests.kit.hdfs import HdfsServer
    from tests.kit.s3 import S3Server

pytestmark = pytest.mark.broker
_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1"}
# Answers with the status that the bucket's name has. A process of its own: delta-rs holds this one while it waits.
_ANSWERING = """
from http.server import BaseHTTPRequestHandler, HTTPServer


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(int(self.path[2:5]))


server = HTTPServer(("127.0.0.1", 0), Answer)
print(server.server_port, flush=True)
server.serve_forever()
"""


def test_a_store_that_can_be_used_has_no_error_and_keeps_nothing(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = s3.folder(monkeypatch)
    assert access_error(folder) is None
    assert not s3.files(folder)


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("AWS_SECRET_ACCESS_KEY", "hush", r"access is refused \(SignatureDoesNotMatch.*set AWS_ACCESS_KEY_ID"),
        ("AWS_ACCESS_KEY_ID", "nobody", r"access is refused \(.*set AWS_ACCESS_KEY_ID"),
        ("AWS_ACCESS_KEY_ID", None, r"there are no credentials for it: set AWS_ACCESS_KEY_ID"),
        ("AWS_ALLOW_HTTP", None, r"set AWS_ALLOW_HTTP=true"),
        ("AWS_SECRET_ACCESS_KEY", None, r"cannot be used \(.*Missing SecretAccessKey.*set AWS_ACCESS_KEY_ID"),
        ("AWS_ENDPOINT_URL", "127.0.0.1:9", r"the variable AWS_ENDPOINT_URL is '127.0.0.1:9': unset it, or write http"),
        ("AWS_ENDPOINT_URL", "", r"the variable AWS_ENDPOINT_URL is empty: unset it, or write http"),
    ],
)
def test_store_misconfiguration_is_reported_with_a_fix(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch, variable: str, value: str | None, expected: str
) -> None:
    folder = s3.folder(monkeypatch)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    if value is None:
        monkeypatch.delenv(variable)
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY" if "KEY" in variable else variable, raising=False)
    else:
        monkeypatch.setenv(variable, value)
    error = access_error(folder)
    assert error is not None
    assert "\n" not in error
    assert "hush" not in error
    assert re.search(expected, error), error


@pytest.fixture(scope="module")
def answering() -> Iterator[str]:
    """A server of HTTP that answers with the status in the name of the bucket."""
    with subprocess.Popen([sys.executable, "-c", _ANSWERING], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        server.kill()


def _given(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    for name, value in {**_CREDENTIALS, "AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429])
def test_a_server_that_fails_is_away(answering: str, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    _given(monkeypatch, answering)
    with pytest.raises(StoreAwayError, match=rf"^is unavailable \(.*{status} .*\): check the network and AWS_ENDPOINT"):
        access_error(f"s3://b{status}/t")


@pytest.mark.parametrize("status", [400, 403, 404])
def test_a_server_that_refuses_is_not_away(answering: str, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    _given(monkeypatch, answering)
    assert "set AWS_ACCESS_KEY_ID" in str(access_error(f"s3://b{status}/t"))


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9", "http://no-such-host.invalid"])
def test_a_server_that_is_not_there_is_away(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    _given(monkeypatch, endpoint)
    with pytest.raises(StoreAwayError, match=r"^is unavailable \(.*\): check the network and AWS_ENDPOINT_URL$"):
        access_error("s3://lake/t")


def test_tls_where_there_is_none_is_a_mistake(answering: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _given(monkeypatch, answering.replace("http", "https"))
    assert "check http or https in the endpoint" in str(access_error("s3://lake/t"))


@pytest.mark.parametrize("scheme", ["s3", "hdfs"])
def test_a_server_that_never_answers_is_waited_for_once(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        _given(monkeypatch, f"http://{address}")
        monkeypatch.setitem(access.PATIENCE, "timeout", "1s")
        monkeypatch.setattr(access, "_HDFS_ANSWERS_S", 1)
        checked = mock.Mock(wraps=access_error)
        monkeypatch.setattr(access, "access_error", checked)
        root = "s3://lake" if scheme == "s3" else f"hdfs://{address}"
        with pytest.raises(StoreAwayError) as away:
            require_stores({"--tables": f"{root}/t", "--checkpoint": f"{root}/c"})
    assert checked.call_count == 1
    assert str(away.value).startswith(f"{root} (of --tables, --checkpoint) ")
    assert str(away.value).endswith("; the same command works once it is back")


def test_a_store_that_is_away_excuses_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    _given(monkeypatch, "http://127.0.0.1:9")
    with pytest.raises(SettingsError) as refused:
        require_stores({"--tables": "hdfs://nowhere/t", "--checkpoint": "s3://lake/c"})
    tables, checkpoint = refused.value.mistakes
    assert tables.startswith("--tables hdfs://nowhere/t: ")
    assert checkpoint.startswith("s3://lake (of --checkpoint) is unavailable (")


def test_one_name_node_of_a_nameservice_must_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nodes = ("a", "b")
    properties = {"dfs.ha.namenodes.prod": ",".join(nodes)}
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ports = (9, silent.getsockname()[1])
        for node, port in zip(nodes, ports, strict=True):
            properties[f"dfs.namenode.rpc-address.prod.{node}"] = f"127.0.0.1:{port}"
        write_site(tmp_path / "hdfs-site.xml", properties)
        monkeypatch.setattr(access, "_HDFS_ANSWERS_S", 0.2)
        with pytest.raises(StoreAwayError) as away:
            access_error("hdfs://prod/t")
    refused, silent_one = (rf"127\.0\.0\.1:{port}: .*" for port in ports)
    assert re.fullmatch(
        rf"no name node can be reached \({refused}; {silent_one}\): check the network, .*", str(away.value)
    )


@pytest.mark.slow
def test_a_name_node_that_answers_is_not_taken_for_a_silent_one(
    hdfs: HdfsServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert access_error(f"{hdfs.uri}/t") is None
    addresses = {"a": "127.0.0.1:9", "b": hdfs.uri.removeprefix("hdfs://")}
    properties = {f"dfs.namenode.rpc-address.prod.{node}": address for node, address in addresses.items()}
    write_site(tmp_path / "hdfs-site.xml", {"dfs.ha.namenodes.prod": "a,b"} | properties)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert access_error("hdfs://prod/t") is None


@pytest.mark.slow
def test_a_name_node_in_safe_mode_is_away(hdfs: HdfsServer) -> None:
    hdfs.administer("-safemode", "enter")
    try:
        with pytest.raises(StoreAwayError, match=r"^is unavailable \(.*SafeModeException[^\n]*safe mode off"):
            access_error(f"{hdfs.uri}/t")
    finally:
        hdfs.administer("-safemode", "leave")


def test_a_bucket_that_is_not_there_is_named(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    s3.folder(monkeypatch)
    error = access_error("s3://no-such-lake/t")
    assert error is not None
    assert error.startswith("s3://no-such-lake does not exist")
    assert "create it, or correct the name" in error


def test_a_store_that_may_only_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_s3(tmp_path, is_read_only=True) as server:
        folder = server.folder(monkeypatch)
        assert access_error(folder, writes=False) is None
        error = access_error(folder)
    assert error is not None
    assert "may be read but not written" in error
    assert "grant the right to put and delete" in error


def test_folders_of_a_disk_are_checked_too(tmp_path: Path) -> None:
    assert access_error(tmp_path / "new") is None
    assert access_error(tmp_path, writes=False) is None
    assert access_error(tmp_path / "new", writes=False) == "there is no such folder"


def test_every_store_that_cannot_be_used_is_named_by_its_option(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = s3.folder(monkeypatch)
    require_stores({"--tables": folder, "--checkpoint": tmp_path / "not there", "--events": ""})
    with pytest.raises(SettingsError) as refused:
        require_stores({"--tables": "s3://no-lake/t", "--checkpoint": folder, "--events": "s3://no-lake/e"})
    assert [mistake.split(": ")[0] for mistake in refused.value.mistakes] == [
        "--tables s3://no-lake/t",
        "--events s3://no-lake/e",
    ]
