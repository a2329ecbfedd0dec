"""Shell: whether a store may be used as it must be; asked before a slow start, in one line with the remedy."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path

from streaming.machine.folder_check import write_error
from streaming.settings.errors import SettingsError
from streaming.settings.locations import Location
from streaming.stores.store_path import StorePath

# A probe gives up soon; what runs for months does not.
_PATIENCE = {"max_retries": "2", "retry_timeout": "10s", "connect_timeout": "3s", "timeout": "10s"}
# Hidden from readers of a folder of events.
_PROBE = ".probe-"
_IN_SETTINGS = "or the same names under [storage.options]"
_CREDENTIALS = {
    "s3": f"set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, {_IN_SETTINGS}",
    "abfss": f"set AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN, or AZURE_CLIENT_ID and its like, {_IN_SETTINGS}",
    "gs": f"set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT, {_IN_SETTINGS}",
    "hdfs": "check HADOOP_USER_NAME and the rights of the folder",
}
_GIVEN = {
    "s3": ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
    "abfss": ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE"),
    "gs": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY"),
    "hdfs": ("HADOOP_USER_NAME",),
}
_ENDPOINTS = {"s3": "AWS_ENDPOINT_URL", "abfss": "AZURE_STORAGE_ENDPOINT", "gs": "GOOGLE_BASE_URL", "hdfs": "the URI"}
_AWAY = ("error sending request", "timed out", "dns error", "Connection refused", "tcp connect error", "timeout")


def require_stores(places: Mapping[str, Location], *, writes: bool = True) -> None:
    """Check those locations that are on stores.

    Args:
        places: By the option that names each; a schema of a catalogue, or an empty one, is none.

    Raises:
        SettingsError: With every mistake.
    """
    found = [
        (option, place, access_error(place, writes=writes)) for option, place in places.items() if _is_store(place)
    ]
    mistakes = [f"{option} {place}: {wrong}" for option, place, wrong in found if wrong is not None]
    if mistakes:
        raise SettingsError(mistakes)


def _is_store(location: Location) -> bool:
    return isinstance(location, str) and "://" in location


def access_error(location: Location, *, writes: bool = True) -> str | None:
    """Return why a location cannot be read, or written; None when it can.

    A store is listed and, where it will be written, one small file is put and deleted.
    """
    if isinstance(location, Path):
        return write_error(location) if writes else _read_error(location)
    place = StorePath(location, _PATIENCE)
    try:
        next(place.iterdir(), None)
    except OSError as error:
        return _explained(place, error)
    if not writes:
        return None
    probe = place / f"{_PROBE}{uuid.uuid4().hex}"
    try:
        # Not empty: for a name alone HDFS needs no data node.
        probe.write_bytes(b"probe")
        probe.unlink(missing_ok=True)
    except OSError as error:
        return f"may be read but not written ({error.strerror}): grant the right to put and delete objects there"
    return None


def _read_error(folder: Path) -> str | None:
    if not folder.is_dir():
        return "there is no such folder"
    return None if os.access(folder, os.R_OK | os.X_OK) else "cannot be read by this user"


def _explained(place: StorePath, error: OSError, env: Mapping[str, str] = os.environ) -> str:
    scheme = place.root.partition(":")[0]
    reason = error.strerror or str(error)
    if "scheme is not allowed" in reason:
        return "the endpoint is http without TLS, which must be allowed: set AWS_ALLOW_HTTP=true"
    if "NoSuchBucket" in reason or "does not exist" in reason or "ContainerNotFound" in reason:
        return f"{place.root} does not exist ({reason}): create it, or correct the name"
    if not any(env.get(name) for name in _GIVEN[scheme]) and scheme != "hdfs":
        return f"there are no credentials for it: {_CREDENTIALS[scheme]}"
    if isinstance(error, PermissionError):
        return f"access is refused ({reason}): {_CREDENTIALS[scheme]}"
    if any(sign in reason for sign in _AWAY):
        return f"cannot be reached ({reason}): check the network and {_ENDPOINTS[scheme]}"
    return f"cannot be used ({reason}): {_CREDENTIALS[scheme]}"
