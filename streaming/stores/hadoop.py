"""Shell: what Spark's file systems must have of a store, from the variables that delta-rs reads itself.

Secrets are not written into Spark's settings, which a command line shows: Hadoop reads them from the environment.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from streaming.settings.locations import STORES, Location, location_of

# Both of Hadoop 3.5; each variable: https://docs.rs/object_store, "from_env".
_S3A = "spark.hadoop.fs.s3a."
_AZURE = "spark.hadoop.fs.azure."
_GCS = "spark.hadoop.fs.gs."
_STORE = re.compile(rf"(?:{'|'.join(STORES)}|s3a)://[^/,]")
_TRUE = frozenset({"1", "true", "yes", "on", "y"})


def schemes_of(locations: Iterable[Location]) -> set[str]:
    """Return the schemes of the stores among some locations."""
    return {location.partition(":")[0] for location in locations if isinstance(location, str) and location}


def stores_in(conf: Mapping[str, str]) -> list[Location]:
    """Return the places on stores that settings of Spark name, such as the warehouse of a catalogue.

    Example:
        >>> stores_in({"spark.sql.warehouse.dir": "s3a://lake/warehouse", "spark.executor.memory": "4g"})
        ['s3://lake/warehouse']
    """
    found: list[Location] = []
    for value in conf.values():
        if _STORE.match(value):
            with contextlib.suppress(ValueError):  # a list of jars, and what else only Hadoop takes
                found.append(location_of(value))
    return found


def hadoop_conf(locations: Iterable[Location], env: Mapping[str, str]) -> dict[str, str]:
    """Return the Spark settings by which Hadoop uses the same stores as delta-rs, with the same rights."""
    uris = sorted({location for location in locations if isinstance(location, str) and location})
    conf: dict[str, str] = {}
    for uri in uris:
        made = {"s3": _s3a, "abfss": _abfs, "gs": _gcs}.get(uri.partition(":")[0])
        if made is not None:
            conf.update(made(uri, env))
    return conf


def scheme_conf(locations: Iterable[Location]) -> dict[str, str]:
    """Return the Spark settings by which ``s3://`` is ``s3a://``, as in a catalogue that others fill, too."""
    implementation = "org.apache.hadoop.fs.s3a.S3AFileSystem"
    return {"spark.hadoop.fs.s3.impl": implementation} if "s3" in schemes_of(locations) else {}


def checkpoint_conf(checkpoint: Location) -> dict[str, str]:
    """Return the Spark settings by which a file of a checkpoint appears whole on its store.

    On S3 a rename is a copy, and replaces nothing: there a put is given up instead when writing fails.
    """
    if isinstance(checkpoint, Path) or not checkpoint.startswith("s3:"):
        return {}
    manager = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
    return {"spark.sql.streaming.checkpointFileManagerClass": manager}


def _s3a(_uri: str, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    endpoint = env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL") or env.get("AWS_ENDPOINT")
    region = env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION")
    # As delta-rs: the bucket is in the path unless the host name is to have it. Amazon's own host names have it.
    by_host = env.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "").lower() in _TRUE
    if endpoint:
        yield f"{_S3A}endpoint", endpoint
        yield f"{_S3A}path.style.access", str(not by_host).lower()
        yield f"{_S3A}connection.ssl.enabled", str(urlsplit(endpoint).scheme != "http").lower()
    if region or endpoint:
        yield f"{_S3A}endpoint.region", region or "us-east-1"
    if env.get("AWS_SKIP_SIGNATURE", "").lower() in _TRUE:
        yield f"{_S3A}aws.credentials.provider", "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    # Not the stream for analytics: checkpoints and lines of events are read whole, from the front.
    yield f"{_S3A}input.stream.type", "classic"


def _abfs(uri: str, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    host = uri.partition("@")[2].partition("/")[0]
    key = _first(env, "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY")
    token = _first(env, "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY")
    identity = _first(env, "AZURE_CLIENT_ID", "AZURE_STORAGE_CLIENT_ID")
    secret = _first(env, "AZURE_CLIENT_SECRET", "AZURE_STORAGE_CLIENT_SECRET")
    tenant = _first(env, "AZURE_TENANT_ID", "AZURE_STORAGE_TENANT_ID")
    if key:
        yield f"{_AZURE}account.auth.type.{host}", "SharedKey"
        yield f"{_AZURE}account.key.{host}", _from_environment(key)
    elif token:
        yield f"{_AZURE}account.auth.type.{host}", "SAS"
        yield f"{_AZURE}sas.fixed.token.{host}", _from_environment(token)
    elif identity and tenant:
        provider = "ClientCredsTokenProvider" if secret else "WorkloadIdentityTokenProvider"
        yield f"{_AZURE}account.auth.type.{host}", "OAuth"
        yield f"{_AZURE}account.oauth.provider.type.{host}", f"org.apache.hadoop.fs.azurebfs.oauth2.{provider}"
        yield f"{_AZURE}account.oauth2.client.id.{host}", _from_environment(identity)
        if secret:
            endpoint = f"https://login.microsoftonline.com/{env[tenant]}/oauth2/token"
            yield f"{_AZURE}account.oauth2.client.endpoint.{host}", endpoint
            yield f"{_AZURE}account.oauth2.client.secret.{host}", _from_environment(secret)
        else:
            yield f"{_AZURE}account.oauth2.msi.tenant.{host}", _from_environment(tenant)
            if env.get("AZURE_FEDERATED_TOKEN_FILE"):
                yield f"{_AZURE}account.oauth2.token.file.{host}", _from_environment("AZURE_FEDERATED_TOKEN_FILE")


def _gcs(_uri: str, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield "spark.hadoop.fs.gs.impl", "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"
    yield "spark.hadoop.fs.AbstractFileSystem.gs.impl", "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS"
    account = _first(env, "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH")
    if account:
        yield f"{_GCS}auth.type", "SERVICE_ACCOUNT_JSON_KEYFILE"
        yield f"{_GCS}auth.service.account.json.keyfile", _from_environment(account)
    else:
        yield f"{_GCS}auth.type", "APPLICATION_DEFAULT"
    if env.get("GOOGLE_BASE_URL"):
        yield f"{_GCS}storage.root.url", env["GOOGLE_BASE_URL"]


def _first(env: Mapping[str, str], *names: str) -> str | None:
    return next((name for name in names if env.get(name)), None)


def _from_environment(name: str) -> str:
    """Return what Hadoop's settings replace by the value of a variable."""
    return f"${{env.{name}}}"
