"""Where something is kept: what is no place is refused, never made into a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.settings.locations import absolute, hand_on, location_of


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("tables", Path("tables")),
        (Path("/lake/tables"), Path("/lake/tables")),
        ("a:b", Path("a:b")),
        ("file:///lake/tables", Path("/lake/tables")),
        ("s3://lake/tables/", "s3://lake/tables"),
        ("s3a://lake/tables", "s3://lake/tables"),
        ("abfss://box@account.dfs.core.windows.net/t", "abfss://box@account.dfs.core.windows.net/t"),
        ("gs://lake", "gs://lake"),
        ("hdfs://name:8020/lake", "hdfs://name:8020/lake"),
    ],
)
def test_paths_and_uris_are_distinguished(text: str | Path, location: Path | str) -> None:
    assert location_of(text) == location


@pytest.mark.parametrize("text", ["", " ", "a\0b", "ftp://host/t", "s3://", "s3:///", "http://host/t", "://x"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a folder|has the scheme|names no bucket"):
        location_of(text)


def test_a_folder_does_not_depend_on_where_a_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute(Path("tables")) == tmp_path / "tables"
    assert absolute("s3://lake/tables") == "s3://lake/tables"


def test_variables_that_are_set_have_precedence_over_options() -> None:
    env = {"AWS_REGION": "eu-west-1"}
    hand_on({"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": "http://127.0.0.1"}, env)
    assert env == {"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL": "http://127.0.0.1"}
