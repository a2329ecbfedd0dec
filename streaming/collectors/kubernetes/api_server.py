"""Shell: lists and watches objects of a Kubernetes API server, with the official client's addresses and credentials.

The client connects and authenticates; its models are not used, because they refuse objects that they do not expect.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import urlencode

import msgspec

from streaming.collectors.kubernetes.objects import KubernetesObject, Resource
from streaming.collectors.kubernetes.options import KubernetesOptions
from streaming.setup.errors import SetupError
from streaming.setup.packages import command_for

_PAGE = 500
_GONE, _UNAUTHORIZED, _FORBIDDEN = 410, 401, 403


class GoneError(Exception):
    """The server no longer has the changes since a version: the resource must be listed again."""


class RefusedError(Exception):
    """The server refuses a request; the text says which right is missing."""


class AwayError(Exception):
    """The server does not answer, or not as it should; the text says why."""


class WatchedChange(NamedTuple):
    """One change of a watch; ``found`` is None if only the version advanced."""

    kind: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    found: KubernetesObject | None
    version: str


class _Versioned(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str | None = msgspec.field(name="continue", default=None)


class _List(msgspec.Struct):
    metadata: _Versioned
    items: list[msgspec.Raw] | None = None


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Bookmark(msgspec.Struct):
    metadata: _Versioned


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""


class ObjectReader(Protocol):
    """What a follower needs of an API server."""

    def list(self, resource: Resource) -> tuple[list[KubernetesObject], str]:
        """Return all objects, and the version of the list."""

    def watch(self, resource: Resource, version: str) -> Iterator[WatchedChange]:
        """Yield the changes since a version, until the watch has lasted for its time."""


class ApiServer:
    """The API server that the options name.

    Raises:
        SetupError: The client is not installed, or its configuration cannot be used.
    """

    def __init__(self, options: KubernetesOptions) -> None:
        self._options = options
        self._client: Any = None
        self.connect()

    @property
    def address(self) -> str:
        """Return the server's address."""
        return str(self._client.configuration.host)

    def connect(self) -> None:
        """Read the address and the credentials, again if they were refused.

        Raises:
            SetupError: See the class.
        """
        try:
            from kubernetes import client, config
        except ModuleNotFoundError as error:
            missing = "following Kubernetes needs its client, which is not installed"
            raise SetupError(missing, command_for("kubernetes")) from error
        options, settings = self._options, client.Configuration()
        try:
            if options.kubeconfig or options.context:
                config.load_kube_config(options.kubeconfig or None, options.context or None, settings)
            else:
                try:
                    config.load_incluster_config(settings)
                except config.ConfigException:
                    config.load_kube_config(client_configuration=settings)
        except (config.ConfigException, OSError, ValueError, TypeError) as error:
            remedy = "run in a pod with a service account, or give --kubeconfig FILE"
            raise SetupError(f"there is no way to reach Kubernetes: {error}", remedy) from error
        settings.retries = False
        self._client = client.ApiClient(settings)

    def list(self, resource: Resource) -> tuple[list[KubernetesObject], str]:
        """Return all objects of a resource, and the version of the list.

        Raises:
            GoneError: The list took too long, and is to be begun again. RefusedError, AwayError: See the classes.
        """
        found: list[KubernetesObject] = []
        page: dict[str, str | int] = {"limit": _PAGE}
        while True:
            with self._answer(resource, "list", page, self._options.answer_s) as answer:
                part = msgspec.json.decode(answer.data, type=_List)
            found += [msgspec.json.decode(item, type=resource.read_as) for item in part.items or ()]
            if not part.metadata.continue_:
                return found, part.metadata.resource_version
            page["continue"] = part.metadata.continue_

    def watch(self, resource: Resource, version: str) -> Iterator[WatchedChange]:
        """Yield the changes since a version, until the watch has lasted for its time.

        When it ends without an error, all changes until then have been yielded.

        Raises:
            GoneError, RefusedError, AwayError: See the classes.
        """
        asked = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}
        query = asked | {"timeoutSeconds": self._options.watch_s}
        with self._answer(resource, "watch", query, self._options.watch_s + self._options.answer_s) as answer:
            for line in answer:
                if line.strip():
                    yield _change(resource, msgspec.json.decode(line, type=_Line))

    @contextmanager
    def _answer(self, resource: Resource, verb: str, query: dict[str, Any], patience_s: float) -> Iterator[Any]:
        """Yield the answer to a request, as a stream.

        Args:
            patience_s: How long the server may say nothing.
        """
        import urllib3

        headers: dict[str, str] = {"Accept": "application/json"}
        path = f"{resource.path(self._options.namespace)}?{urlencode(query)}"
        answer = None
        try:
            self._client.update_params_for_auth(headers, [], ["BearerToken"], path, "GET", None)
            timeouts = (self._options.answer_s, patience_s)
            answer = self._client.call_api(
                "GET", f"{self.address}{path}", header_params=headers, _request_timeout=timeouts
            ).response
            if answer.status != 200:
                _refuse(resource, verb, answer.status, answer.data)
            yield answer
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise AwayError(f"{self.address}: {_reason(error)}") from error
        except msgspec.MsgspecError as error:
            raise AwayError(f"{self.address}: its {resource.name} cannot be read: {error}") from error
        finally:
            if answer is not None:
                # The rest of a stream is not read.
                answer.close()


def _change(resource: Resource, line: _Line) -> WatchedChange:
    if line.type == "ERROR":
        status = msgspec.json.decode(line.object, type=_Status)
        _refuse(resource, "watch", status.code, bytes(line.object))
    version = msgspec.json.decode(line.object, type=_Bookmark).metadata.resource_version
    if line.type == "BOOKMARK":
        return WatchedChange("BOOKMARK", None, version)
    kind: Literal["ADDED", "MODIFIED", "DELETED"] = msgspec.convert(line.type, Literal["ADDED", "MODIFIED", "DELETED"])
    return WatchedChange(kind, msgspec.json.decode(line.object, type=resource.read_as), version)


def _refuse(resource: Resource, verb: str, code: int, body: bytes) -> None:
    """Raise what the status of an answer means."""
    try:
        message = msgspec.json.decode(body, type=_Status).message
    except msgspec.MsgspecError:
        message = ""
    said = f": {' '.join(message.split())[:200]}" if message else ""
    if code == _GONE:
        raise GoneError(message)
    if code == _FORBIDDEN:
        raise RefusedError(f"the right to {verb} {resource.name} is missing (403{said})")
    if code == _UNAUTHORIZED:
        raise RefusedError("the credentials are not accepted (401); a token may have expired")
    raise AwayError(f"it answered {code} to {verb} {resource.name}{said}")


def _reason(error: BaseException) -> str:
    """Return the reason of a failure of the connection, in one line."""
    while isinstance(inner := getattr(error, "reason", None), BaseException):
        error = inner
    return " ".join(str(error).split())[:200] or type(error).__name__
