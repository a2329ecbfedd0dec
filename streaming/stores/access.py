"""Shell: checks before a slow start whether a store can be used as required, with a one-line error and remedy."""

from __future__ import annotations

import os
import re
import socket
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

from streaming.machine.folder_check import write_error
from streaming.settings.errors import SettingsError
from streaming.settings.locations import Location
from streaming.stores.failure import NO_CREDENTIALS, NO_TLS, StoreAwayError
from streaming.stores.name_nodes import name_nodes
from streaming.stores.store_path import PATIENCE, StorePath

# Readers of a folder of events do not see such a name.
_PROBE = ".probe-"
_IN_SETTINGS = "or the same names under [storage.options]"
_CREDENTIALS = {
    "s3": f"set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, {_IN_SETTINGS}",
    "abfss": f"set AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN, or AZURE_CLIENT_ID and its like, {_IN_SETTINGS}",
    "gs": f"set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT, {_IN_SETTINGS}",
    "hdfs": "check HADOOP_USER_NAME and the rights of the folder",
}
_GIVEN = {
    "s3": (
        *("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
        *("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_SKIP_SIGNATURE"),
    ),
    "abfss": (
        *("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE"),
        "AZURE_SKIP_SIGNATURE",
    ),
    "gs": (
        *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY"),
        "GOOGLE_SKIP_SIGNATURE",
    ),
    "hdfs": ("HADOOP_USER_NAME",),
}
_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"),
    "abfss": ("AZURE_STORAGE_ENDPOINT",),
    "gs": ("GOOGLE_BASE_URL",),
    "hdfs": (),
}
# These hints say what to check when a store is unavailable.
_CHECK = {scheme: f"check the network and {(*names, 'the URI')[0]}" for scheme, names in _ENDPOINTS.items()} | {
    "hdfs": "check the network, and host and port of the name nodes"
}
_HDFS_ANSWERS_S = 10.0


def require_stores(
    writes: Mapping[str, Location], reads: Mapping[str, Location] | None = None, *, mistakes: Iterable[str] = ()
) -> None:
    """Check those locations that are on stores.

    Args:
        writes: By the option that names each; a schema of a catalog, or an empty text, is not a location.
        reads: Locations that are only read.

    Raises:
        SettingsError: A store cannot be used; the text has every mistake.
        StoreAwayError: There is no other mistake, but a store does not answer now.
    """
    found = [*mistakes]
    away: dict[str, str] = {}  # so that a server that does not answer is waited for only once
    waiting: dict[str, list[str]] = {}
    for option, place in (*writes.items(), *(reads or {}).items()):
        if not isinstance(place, str) or not _is_store(place):
            continue
        root = StorePath(place).root
        waiting.setdefault(root, []).append(option)
        if root in away:
            continue
        try:
            wrong = access_error(place, writes=option in writes)
        except StoreAwayError as error:
            away[root] = str(error)
        else:
            found += [f"{option} {place}: {wrong}"] if wrong is not None else []
    lines = [f"{root} (of {', '.join(waiting[root])}) {why}" for root, why in away.items()]
    if found:
        raise SettingsError([*found, *lines])
    if lines:
        raise StoreAwayError("; ".join([*lines, "the same command works once it is back"]))


def _is_store(location: Location) -> bool:
    return isinstance(location, str) and "://" in location


def access_error(location: Location, *, writes: bool = True) -> str | None:
    """Return why a location cannot be read, or written; None if it can.

    A store is listed and, if it will be written, one small file is put and deleted.

    Raises:
        StoreAwayError: The store does not answer now; the message is one line that names what to check.
    """
    if isinstance(location, Path):
        return write_error(location) if writes else _read_error(location)
    place = StorePath(location, PATIENCE)
    wrong = _endpoint_error(place)
    if wrong is not None:
        return wrong
    try:
        _require_name_node(place)
    except ValueError as error:
        return str(error)
    try:
        next(place.iterdir(), None)
    except OSError as error:
        return _explained(place, error)
    if not writes:
        return None
    probe = place / f"{_PROBE}{uuid.uuid4().hex}"
    try:
        # The file is not empty, because HDFS needs no data node for a name alone.
        probe.write_bytes(b"probe")
        probe.unlink(missing_ok=True)
    except StoreAwayError as error:
        return _explained(place, error)
    except OSError as error:
        return f"may be read but not written ({error.strerror}): grant the right to put and delete objects there"
    return None


def _read_error(folder: Path) -> str | None:
    if not folder.is_dir():
        return "there is no such folder"
    return None if os.access(folder, os.R_OK | os.X_OK) else "cannot be read by this user"


def _endpoint_error(place: StorePath) -> str | None:
    """Return that an endpoint is not a URL: delta-rs would panic."""
    for name in _ENDPOINTS[_scheme(place)]:
        value = os.environ.get(name)
        if value is not None and not re.match(r"https?://[^/\s]", value):
            given = f"is {value!r}" if value else "is empty"
            return f"the variable {name} {given}: unset it, or write http://HOST:PORT or https://HOST:PORT"
    return None


def _require_name_node(place: StorePath) -> None:
    """Check that a name node answers, because delta-rs would wait forever for a silent one, ignoring Ctrl-C.

    Hadoop's servers answer HTTP with an error.

    Raises:
        ValueError: The name nodes are not configured.
        StoreAwayError: No name node answers.
    """
    if _scheme(place) != "hdfs":
        return
    silent = []
    for node in name_nodes(place.root.partition("://")[2], os.environ):
        host, _, port = node.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=_HDFS_ANSWERS_S) as connection:
                connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
                connection.recv(1)
                return
        except (OSError, OverflowError, ValueError) as error:
            silent.append(f"{node}: {error}")
    raise StoreAwayError(f"no name node can be reached ({'; '.join(silent)}): {_CHECK['hdfs']}")


def _scheme(place: StorePath) -> str:
    return place.root.partition(":")[0]


def _explained(place: StorePath, error: OSError) -> str:
    scheme = _scheme(place)
    reason = error.strerror or str(error)
    if "scheme is not allowed" in reason:
        allow = _ENDPOINTS[scheme][0].partition("_")[0]
        return f"the endpoint is http without TLS, which must be allowed: set {allow}_ALLOW_HTTP=true"
    if "NoSuchBucket" in reason or "does not exist" in reason or "ContainerNotFound" in reason:
        return f"{place.root} does not exist ({reason}): create it, or correct the name"
    has_none = not any(os.environ.get(name) for name in _GIVEN[scheme]) and scheme != "hdfs"
    if NO_CREDENTIALS.search(reason):
        return f"there are no credentials for it: {_CREDENTIALS[scheme]}"
    if isinstance(error, StoreAwayError):
        raise StoreAwayError(f"is unavailable ({reason}): {_CHECK[scheme]}") from None
    if NO_TLS.search(reason):
        return f"there is no TLS that is trusted ({reason}): check http or https in the endpoint, and its certificate"
    if has_none:
        return f"there are no credentials for it: {_CREDENTIALS[scheme]}"
    if isinstance(error, PermissionError):
        return f"access is refused ({reason}): {_CREDENTIALS[scheme]}"
    return f"cannot be used ({reason}): {_CREDENTIALS[scheme]}"
