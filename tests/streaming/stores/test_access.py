"""Whether a store may be used as it must be: in one line, with the remedy, before Spark starts."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from streaming.settings.errors import SettingsError
from streaming.stores import access
from streaming.stores.access import access_error, require_stores
from tests.kit.s3 import running_s3

if TYPE_CHECKING:
    from tests.kit.hdfs import HdfsServer
    from tests.kit.s3 import S3Server

pytestmark = pytest.mark.broker


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
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9", r"cannot be reached \(.*check the network and AWS_ENDPOINT_URL"),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(
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


@pytest.mark.parametrize("scheme", ["s3", "hdfs"])
def test_a_server_that_never_answers_is_waited_for_once(
    scheme: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        given = {"AWS_ENDPOINT_URL": f"http://{address}", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
        for name, value in {**given, "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setitem(access._PATIENCE, "timeout", "1s")
        monkeypatch.setattr(access, "_HDFS_ANSWERS_S", 1)
        checked = mock.Mock(wraps=access_error)
        monkeypatch.setattr(access, "access_error", checked)
        root = "s3://lake" if scheme == "s3" else f"hdfs://{address}"
        with pytest.raises(SettingsError) as refused:
            require_stores({"--tables": f"{root}/t", "--checkpoint": f"{root}/c"})
    assert checked.call_count == 1
    assert [mistake.partition(" (")[0] for mistake in refused.value.mistakes] == [
        f"--tables {root}/t: cannot be reached",
        f"--checkpoint {root}/c: cannot be reached",
    ]


@pytest.mark.slow
def test_a_name_node_that_answers_is_not_taken_for_a_silent_one(hdfs: HdfsServer) -> None:
    assert access_error(f"{hdfs.uri}/t") is None


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
