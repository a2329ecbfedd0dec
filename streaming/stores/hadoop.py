"""Shell: settings for Spark's file systems to access stores, from the variables that delta-rs reads itself.

Secrets are not written into Spark's settings, which a command line shows: Hadoop reads them from the environment. Only
if Java is already running, under spark-submit, are variables that its environment lacks written there, because no
command line follows.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from streaming.settings.locations import STORES, Location, location_of

# Options are those of Hadoop 3.5; for the variables see https://docs.rs/object_store, "from_env".
_S3A = "spark.hadoop.fs.s3a."
_AZURE = "spark.hadoop.fs.azure."
_GCS = "spark.hadoop.fs.gs."
# S3A reads these itself where Java knows them.
_S3_KEYS = {
    "AWS_ACCESS_KEY_ID": "access.key",
    "AWS_SECRET_ACCESS_KEY": "secret.key",
    "AWS_SESSION_TOKEN": "session.token",
}
_SDK = "software.amazon.awssdk.auth.credentials"
_AZURE_IDENTITY = ("AZURE_CLIENT_ID", "AZURE_STORAGE_CLIENT_ID")
# A machine of Azure gets the tokens of its own identity here.
_AZURE_MACHINE = ("IDENTITY_ENDPOINT", "AZURE_MSI_ENDPOINT", "AZURE_MSI_RESOURCE_ID", "AZURE_OBJECT_ID")
_STORE = re.compile(rf"(?:{'|'.join(STORES)}|s3a)://[^/,]")
_TRUE = frozenset({"1", "true", "yes", "on", "y"})
_ACCOUNT_KEY = "account.key"
# Spark's pages and logs redact these: its own default, and the keys of Azure.
_SECRET = "(?i)secret|password|token|access[.]?key|account[.]key"


class _Variables:
    """The variables of stores, and how Hadoop gets their values.

    Args:
        unknown_to_java: Variables that Hadoop cannot read itself.
    """

    def __init__(self, env: Mapping[str, str], unknown_to_java: Container[str]) -> None:
        self._env = env
        self._unknown = unknown_to_java

    def get(self, *names: str) -> str:
        """Return the value of the first of them that has one; empty if none has."""
        name = self.first(*names)
        return "" if name is None else self._env[name]

    def first(self, *names: str) -> str | None:
        """Return the first of them that has a value."""
        return next((name for name in names if self._env.get(name)), None)

    def is_set(self, name: str) -> bool:
        """Return whether a switch is on."""
        return self.get(name).lower() in _TRUE

    def option(self, name: str) -> str:
        """Return a value as an option of Hadoop: a reference to the variable if Java knows it."""
        return self._env[name] if name in self._unknown else f"${{env.{name}}}"

    def lacks(self, name: str) -> bool:
        """Return whether Hadoop would not find a variable."""
        return name in self._unknown


def schemes_of(locations: Iterable[Location]) -> set[str]:
    """Return the schemes of the stores among some locations."""
    return {location.partition(":")[0] for location in locations if isinstance(location, str) and location}


def stores_in(conf: Mapping[str, str]) -> list[Location]:
    """Return the locations on stores in Spark's settings, such as the warehouse of a catalog.

    Example:
        >>> stores_in({"spark.sql.warehouse.dir": "s3a://lake/warehouse", "spark.executor.memory": "4g"})
        ['s3://lake/warehouse']
    """
    found: list[Location] = []
    for value in conf.values():
        if _STORE.match(value):
            with contextlib.suppress(ValueError):  # a list of jars, or another value that only Hadoop accepts
                found.append(location_of(value))
    return found


def hadoop_conf(
    locations: Iterable[Location], env: Mapping[str, str], unknown_to_java: Container[str] = frozenset()
) -> dict[str, str]:
    """Return the Spark settings by which Hadoop uses the same stores as delta-rs, with the same permissions.

    Args:
        env: The variables. unknown_to_java: Names of those that are not in the environment of Spark's JVM.
    """
    uris = sorted({location for location in locations if isinstance(location, str) and location})
    conf: dict[str, str] = {}
    for uri in uris:
        made = {"s3": _s3a, "abfss": _abfs, "gs": _gcs}.get(uri.partition(":")[0])
        if made is not None:
            conf.update(made(uri, _Variables(env, unknown_to_java)))
    if any(_ACCOUNT_KEY in name and not value.startswith("${") for name, value in conf.items()):
        conf["spark.redaction.regex"] = _SECRET
    return conf


def scheme_conf(locations: Iterable[Location]) -> dict[str, str]:
    """Return the Spark settings that make ``s3://`` the same as ``s3a://``, as in a catalog that others also fill."""
    implementation = "org.apache.hadoop.fs.s3a.S3AFileSystem"
    return {"spark.hadoop.fs.s3.impl": implementation} if "s3" in schemes_of(locations) else {}


def checkpoint_conf(checkpoint: Location) -> dict[str, str]:
    """Return the Spark settings that make a file of a checkpoint appear whole on its store.

    On S3 a rename is a copy, and replaces nothing, so a put is aborted instead if writing fails.
    """
    if isinstance(checkpoint, Path) or not checkpoint.startswith("s3:"):
        return {}
    manager = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
    return {"spark.sql.streaming.checkpointFileManagerClass": manager}


def _s3a(_uri: str, env: _Variables) -> Iterator[tuple[str, str]]:
    endpoint = env.get("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    region = env.get("AWS_REGION", "AWS_DEFAULT_REGION")
    # The bucket is in the path, as in delta-rs, unless the host name must contain it. Amazon's own host names do.
    by_host = env.is_set("AWS_VIRTUAL_HOSTED_STYLE_REQUEST")
    if endpoint:
        yield f"{_S3A}endpoint", endpoint
        yield f"{_S3A}path.style.access", str(not by_host).lower()
        yield f"{_S3A}connection.ssl.enabled", str(urlsplit(endpoint).scheme != "http").lower()
    if region or endpoint:
        yield f"{_S3A}endpoint.region", region or "us-east-1"
    if env.is_set("AWS_SKIP_SIGNATURE"):
        yield f"{_S3A}aws.credentials.provider", "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    elif env.get("AWS_ACCESS_KEY_ID"):
        for name, option in _S3_KEYS.items():
            if env.lacks(name):
                yield f"{_S3A}{option}", env.option(name)
    elif env.get("AWS_WEB_IDENTITY_TOKEN_FILE"):
        # This is the service account of a pod, which none of S3A's default lists contains.
        yield f"{_S3A}aws.credentials.provider", f"{_SDK}.WebIdentityTokenFileCredentialsProvider"
    # The stream for analytics is not used: checkpoints and lines of events are read whole, from the front.
    yield f"{_S3A}input.stream.type", "classic"


def _abfs(uri: str, env: _Variables) -> Iterator[tuple[str, str]]:
    host = uri.partition("@")[2].partition("/")[0]
    key = env.first("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY")
    token = env.first("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY")
    if key:
        yield f"{_AZURE}account.auth.type.{host}", "SharedKey"
        yield f"{_AZURE}{_ACCOUNT_KEY}.{host}", env.option(key)
    elif token:
        yield f"{_AZURE}account.auth.type.{host}", "SAS"
        yield f"{_AZURE}sas.fixed.token.{host}", env.option(token)
    elif env.first(*_AZURE_IDENTITY, *_AZURE_MACHINE):
        yield f"{_AZURE}account.auth.type.{host}", "OAuth"
        yield from _azure_identity(host, env)


def _azure_identity(host: str, env: _Variables) -> Iterator[tuple[str, str]]:
    identity = env.first(*_AZURE_IDENTITY)
    secret = env.first("AZURE_CLIENT_SECRET", "AZURE_STORAGE_CLIENT_SECRET")
    tenant = env.first("AZURE_TENANT_ID", "AZURE_STORAGE_TENANT_ID")
    if identity and secret and tenant:
        provider = "ClientCredsTokenProvider"
        endpoint = f"https://login.microsoftonline.com/{env.get(tenant)}/oauth2/token"
        yield f"{_AZURE}account.oauth2.client.endpoint.{host}", endpoint
        yield f"{_AZURE}account.oauth2.client.secret.{host}", env.option(secret)
    elif identity and tenant:
        provider = "WorkloadIdentityTokenProvider"
        yield f"{_AZURE}account.oauth2.msi.tenant.{host}", env.option(tenant)
        if env.get("AZURE_FEDERATED_TOKEN_FILE"):
            yield f"{_AZURE}account.oauth2.token.file.{host}", env.option("AZURE_FEDERATED_TOKEN_FILE")
    else:
        provider = "MsiTokenProvider"
    yield f"{_AZURE}account.oauth.provider.type.{host}", f"org.apache.hadoop.fs.azurebfs.oauth2.{provider}"
    if identity:
        yield f"{_AZURE}account.oauth2.client.id.{host}", env.option(identity)


def _gcs(_uri: str, env: _Variables) -> Iterator[tuple[str, str]]:
    yield "spark.hadoop.fs.gs.impl", "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"
    yield "spark.hadoop.fs.AbstractFileSystem.gs.impl", "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS"
    account = env.first("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH")
    if account is None and env.lacks("GOOGLE_APPLICATION_CREDENTIALS"):
        account = "GOOGLE_APPLICATION_CREDENTIALS"  # a key file, too, which the connector cannot find by itself
    if account:
        yield f"{_GCS}auth.type", "SERVICE_ACCOUNT_JSON_KEYFILE"
        yield f"{_GCS}auth.service.account.json.keyfile", env.option(account)
    else:
        yield f"{_GCS}auth.type", "APPLICATION_DEFAULT"
    if env.get("GOOGLE_BASE_URL"):
        yield f"{_GCS}storage.root.url", env.get("GOOGLE_BASE_URL")
