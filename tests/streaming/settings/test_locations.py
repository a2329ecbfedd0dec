"""Locations: a text that is not a place is refused, and never made into a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.settings.locations import absolute, catalog_schema, folder_of, hand_on, location_of, tables_of


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("tables", Path("tables")),
        (Path("/lake/tables"), Path("/lake/tables")),
        ("a:b", Path("a:b")),
        ("./~", Path("./~")),
        ("~backup", Path("~backup")),
        ("file:///lake/tables", Path("/lake/tables")),
        ("file:/lake/tables", Path("/lake/tables")),
        ("file://localhost/lake", Path("/lake")),
        ("S3A://lake/tables", "s3://lake/tables"),
        ("s3://lake/tables/", "s3://lake/tables"),
        ("s3a://lake/tables", "s3://lake/tables"),
        ("abfss://box@account.dfs.core.windows.net/t", "abfss://box@account.dfs.core.windows.net/t"),
        ("gs://lake", "gs://lake"),
        ("hdfs://name:8020/lake", "hdfs://name:8020/lake"),
    ],
)
def test_paths_and_uris_are_distinguished(text: str | Path, location: Path | str) -> None:
    assert location_of(text) == location


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not a folder"),
        (" ", "is not a folder"),
        ("a\0b", "is not a folder"),
        ("ftp://host/t", "has the scheme ftp"),
        ("http://host/t", "has the scheme http"),
        ("s3n://lake/t", "has the scheme s3n"),
        ("dbfs:/t", "has the scheme dbfs"),
        ("://x", "is neither a URI of a known scheme"),
        (" s3://lake/x", "is neither a URI of a known scheme"),
        ('"s3://lake/x"', "is neither a URI of a known scheme"),
        ("s3_a://lake/x", "is neither a URI of a known scheme"),
        ("1s://lake", "is neither a URI of a known scheme"),
        ("catalog:s3://a/b", "is neither a URI of a known scheme"),
        ("s3a:/typo", r"is not a URI: write s3://, or \./s3a:"),
        ("S3:lake", "is not a URI: write s3://"),
        ("gs:/lake/t", "is not a URI: write gs://"),
        ("s3://", "names no bucket"),
        ("s3:///", "names no bucket"),
        ("s3:///lake/t", "names no bucket"),
        ("abfss://account.dfs.core.windows.net/t", "names no container"),
        ("hdfs:///t", "names no name node"),
        ("s3://lake//t", "has a part that is not a name"),
        ("s3://lake/a/../t", "has a part that is not a name"),
        ("s3://lake/t?x=1", "has a part that is not a name"),
        ("file://host/t", "names a host"),
        ("file:t", "is not a URI: write file:///PATH"),
        (r"C:\lake", "is a path of Windows"),
        ("c:/lake", "is a path of Windows"),
        (r"\\host\lake", "is a path of Windows"),
        ("~/lake", "begins with ~"),
        ("~", "begins with ~"),
        ("kafka:host:9092/events", "names a Kafka topic"),
    ],
)
def test_an_invalid_place_is_refused_by_name(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        location_of(text)


@pytest.mark.parametrize("text", ["main.monitor", "spark_catalog.default.monitor", "catalog:main.monitor"])
def test_names_with_dots_are_a_schema_of_a_catalogue(text: str) -> None:
    assert tables_of(text) == f"catalog:{text.removeprefix('catalog:')}"
    assert catalog_schema(absolute(tables_of(text))) == text.removeprefix("catalog:")


@pytest.mark.parametrize("text", ["tables", "./main.monitor", "/lake/main.monitor", ".hidden", "a.b.c.d", "s3://a.b"])
def test_a_folder_or_uri_is_no_schema(text: str) -> None:
    assert tables_of(text) == location_of(text)
    assert catalog_schema(tables_of(text)) == ""


def test_a_folder_that_is_there_is_a_folder_whatever_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.tables").mkdir()
    assert tables_of("my.tables") == Path("my.tables")


def test_a_key_in_a_uri_is_refused_and_not_shown() -> None:
    with pytest.raises(ValueError, match="holds a password or key") as refused:
        location_of("s3://AKIA:hush@lake/t")
    assert "hush" not in str(refused.value)


def test_a_name_of_a_catalogue_becomes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("main.monitor", "main.monitor.tables"):
        with pytest.raises(ValueError, match=rf"for a folder of this name write \./{name}"):
            folder_of(name)
        assert folder_of(f"./{name}") == Path(name)
    assert folder_of("v1.2/c") == Path("v1.2/c")
    (tmp_path / "main.monitor").mkdir()
    assert folder_of("main.monitor") == Path("main.monitor")


def test_a_folder_does_not_depend_on_where_a_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute(Path("tables")) == tmp_path / "tables"
    assert absolute("s3://lake/tables") == "s3://lake/tables"


def test_variables_that_are_set_have_precedence_over_options() -> None:
    env = {"AWS_REGION": "eu-west-1"}
    hand_on({"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": "http://127.0.0.1"}, env)
    assert env == {"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL": "http://127.0.0.1"}
