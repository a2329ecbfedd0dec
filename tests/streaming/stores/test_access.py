"""Whether a store may be used as it must be: in one line, with the remedy, before Spark starts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streaming.settings.errors import SettingsError
from streaming.stores.access import access_error, require_stores
from tests.kit.s3 import running_s3

if TYPE_CHECKING:
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
