"""Options of a store for Spark's file systems: names as Hadoop 3.5 documents them, and no secret."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streaming.stores.hadoop import checkpoint_conf, hadoop_conf, scheme_conf, schemes_of, stores_in

S3A, AZURE, GS = "spark.hadoop.fs.s3a.", "spark.hadoop.fs.azure.", "spark.hadoop.fs.gs."
BOX = "abfss://box@account.dfs.core.windows.net/lake"
HOST = "account.dfs.core.windows.net"


def test_places_on_a_disk_need_nothing() -> None:
    assert hadoop_conf([Path("c"), ""], {"AWS_REGION": "eu-west-1"}) == {}
    assert hadoop_conf(["hdfs://name:8020/c"], {}) == {}
    assert schemes_of([Path("s3"), "", "s3://lake/c", "s3://lake/t", "gs://lake"]) == {"s3", "gs"}


def test_only_on_s3_a_rename_is_avoided() -> None:
    assert [bool(checkpoint_conf(place)) for place in (Path("s3:"), "s3://lake/c", "hdfs://name:8020/c")] == [0, 1, 0]


def test_amazon_itself_needs_only_the_region() -> None:
    conf = hadoop_conf(["s3://lake/c"], {"AWS_REGION": "eu-west-1", "AWS_SECRET_ACCESS_KEY": "hush"})
    assert conf == {
        f"{S3A}endpoint.region": "eu-west-1",
        f"{S3A}input.stream.type": "classic",
    }


@pytest.mark.parametrize(
    ("env", "path_style", "tls"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9000"}, "true", "false"),
        ({"AWS_ENDPOINT_URL": "https://minio"}, "true", "true"),
        ({"AWS_ENDPOINT_URL": "https://minio", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "True"}, "false", "true"),
    ],
)
def test_another_server_of_the_protocol(env: dict[str, str], path_style: str, tls: str) -> None:
    conf = hadoop_conf(["s3://lake/c"], env)
    assert conf[f"{S3A}endpoint"] == env["AWS_ENDPOINT_URL"]
    assert conf[f"{S3A}endpoint.region"] == "us-east-1"
    assert (conf[f"{S3A}path.style.access"], conf[f"{S3A}connection.ssl.enabled"]) == (path_style, tls)


def test_a_public_bucket_is_read_without_a_signature() -> None:
    conf = hadoop_conf(["s3://lake/c"], {"AWS_SKIP_SIGNATURE": "true"})
    assert conf[f"{S3A}aws.credentials.provider"] == "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        (
            {"AZURE_STORAGE_ACCOUNT_KEY": "hush"},
            {
                f"{AZURE}account.auth.type.{HOST}": "SharedKey",
                f"{AZURE}account.key.{HOST}": "${env.AZURE_STORAGE_ACCOUNT_KEY}",
            },
        ),
        (
            {"AZURE_STORAGE_SAS_TOKEN": "hush"},
            {
                f"{AZURE}account.auth.type.{HOST}": "SAS",
                f"{AZURE}sas.fixed.token.{HOST}": "${env.AZURE_STORAGE_SAS_TOKEN}",
            },
        ),
        (
            {"AZURE_CLIENT_ID": "me", "AZURE_CLIENT_SECRET": "hush", "AZURE_TENANT_ID": "us"},
            {
                f"{AZURE}account.auth.type.{HOST}": "OAuth",
                f"{AZURE}account.oauth.provider.type.{HOST}": (
                    "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
                ),
                f"{AZURE}account.oauth2.client.id.{HOST}": "${env.AZURE_CLIENT_ID}",
                f"{AZURE}account.oauth2.client.endpoint.{HOST}": ("https://login.microsoftonline.com/us/oauth2/token"),
                f"{AZURE}account.oauth2.client.secret.{HOST}": "${env.AZURE_CLIENT_SECRET}",
            },
        ),
        (
            {"AZURE_CLIENT_ID": "me", "AZURE_TENANT_ID": "us", "AZURE_FEDERATED_TOKEN_FILE": "/token"},
            {
                f"{AZURE}account.auth.type.{HOST}": "OAuth",
                f"{AZURE}account.oauth.provider.type.{HOST}": (
                    "org.apache.hadoop.fs.azurebfs.oauth2.WorkloadIdentityTokenProvider"
                ),
                f"{AZURE}account.oauth2.client.id.{HOST}": "${env.AZURE_CLIENT_ID}",
                f"{AZURE}account.oauth2.msi.tenant.{HOST}": "${env.AZURE_TENANT_ID}",
                f"{AZURE}account.oauth2.token.file.{HOST}": "${env.AZURE_FEDERATED_TOKEN_FILE}",
            },
        ),
        ({}, {}),
    ],
)
def test_azure_by_key_token_or_identity(env: dict[str, str], expected: dict[str, str]) -> None:
    conf = hadoop_conf([BOX], env)
    assert conf == expected
    assert "hush" not in str(conf)


def test_the_service_account_of_a_pod_is_used_by_s3a_too() -> None:
    pod = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "arn:aws:iam::1:role/monitor"}
    provider = hadoop_conf(["s3://lake/c"], pod).get(f"{S3A}aws.credentials.provider")
    assert provider == "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider"
    # Keys have precedence, as for delta-rs.
    assert f"{S3A}aws.credentials.provider" not in hadoop_conf(["s3://lake/c"], pod | {"AWS_ACCESS_KEY_ID": "k"})


@pytest.mark.parametrize("env", [{"AZURE_CLIENT_ID": "me"}, {"IDENTITY_ENDPOINT": "http://127.0.0.1/token"}])
def test_azure_by_the_machines_own_identity(env: dict[str, str]) -> None:
    conf = hadoop_conf([BOX], env)
    provider = "org.apache.hadoop.fs.azurebfs.oauth2.MsiTokenProvider"
    assert conf[f"{AZURE}account.oauth.provider.type.{HOST}"] == provider
    assert (f"{AZURE}account.oauth2.client.id.{HOST}" in conf) == ("AZURE_CLIENT_ID" in env)


def test_variables_unknown_to_java_become_options_that_no_page_shows() -> None:
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "hush", "AWS_REGION": "eu-west-1"}
    assert "hush" not in str(hadoop_conf(["s3://lake/c"], keys))
    of_s3 = hadoop_conf(["s3://lake/c"], keys, keys)
    assert (of_s3[f"{S3A}access.key"], of_s3[f"{S3A}secret.key"]) == ("k", "hush")
    assert f"{S3A}session.token" not in of_s3
    azure = {"AZURE_STORAGE_ACCOUNT_KEY": "hush"}
    of_azure = hadoop_conf([BOX], azure, azure)
    assert of_azure[f"{AZURE}account.key.{HOST}"] == "hush"
    for conf in (of_s3, of_azure):
        hidden = re.compile(conf.get("spark.redaction.regex", "(?i)secret|password|token|access[.]?key"))
        assert all(hidden.search(name) for name, value in conf.items() if value == "hush")
    google = {"GOOGLE_APPLICATION_CREDENTIALS": "/key.json"}
    assert hadoop_conf(["gs://lake/c"], google)[f"{GS}auth.type"] == "APPLICATION_DEFAULT"
    assert hadoop_conf(["gs://lake/c"], google, google)[f"{GS}auth.service.account.json.keyfile"] == "/key.json"


def test_google_by_key_file_or_the_machines_own_account() -> None:
    by_file = hadoop_conf(["gs://lake/c"], {"GOOGLE_SERVICE_ACCOUNT": "/key.json"})
    assert by_file[f"{GS}auth.type"] == "SERVICE_ACCOUNT_JSON_KEYFILE"
    assert by_file[f"{GS}auth.service.account.json.keyfile"] == "${env.GOOGLE_SERVICE_ACCOUNT}"
    by_machine = hadoop_conf(["gs://lake/c"], {"GOOGLE_BASE_URL": "http://127.0.0.1:4443"})
    assert by_machine[f"{GS}auth.type"] == "APPLICATION_DEFAULT"
    assert by_machine[f"{GS}storage.root.url"] == "http://127.0.0.1:4443"


def test_places_that_settings_of_spark_name_are_found() -> None:
    warehouses = {
        "spark.sql.warehouse.dir": "s3a://lake/w",
        "spark.sql.catalog.main.warehouse": "abfss://box@a.example/w",
    }
    others = {
        "spark.submit.pyFiles": "s3a://lake/a.zip,s3a://lake/?b.zip",
        "spark.jars": "/a.jar",
        "spark.master": "spark://s3:7077",
        "x": "s3a://",
        "y": "file:///lake",
    }
    assert stores_in(warehouses | others) == ["s3://lake/w", "abfss://box@a.example/w"]


def test_a_catalogue_may_call_s3a_s3() -> None:
    assert scheme_conf(["s3://lake/w"])["spark.hadoop.fs.s3.impl"].endswith(".S3AFileSystem")
    assert scheme_conf(["gs://lake/w", ""]) == {}
