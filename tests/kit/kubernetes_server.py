"""A server of Kubernetes' API for lists and watches, over real HTTP, with what goes wrong at a real one.

It follows "Kubernetes API Concepts": one resource version for all objects, lists in pages, watches as a stream of JSON
lines from a version on, bookmarks, and 410 Gone for versions that were compacted away. It has no admission, no
controllers, and no kubelet: a test writes the objects that these would write.
"""

import copy
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]
TOKEN = "first-token"


class KubernetesServer:
    """The server and its objects, from ``start`` to ``stop``; it keeps its objects over a restart.

    Attributes:
        token: The only one that is accepted. forbidden: Pairs of verb and resource that are refused.
        hangs: Whether watches say nothing any more, and lists do not answer. bookmark_s: How often watches say how far
            they are.
    """

    def __init__(self) -> None:
        self.token = TOKEN
        self.forbidden: set[tuple[str, str]] = set()
        self.hangs = False
        self.bookmark_s = 0.2
        self.requests: list[str] = []
        self._objects: dict[str, dict[str, Object]] = {}
        self._changes: list[tuple[int, str, str, Object]] = []
        self._version = 1
        self._compacted = 0
        self._changed = threading.Condition()
        self._port = 0
        self._server: ThreadingHTTPServer | None = None

    @property
    def address(self) -> str:
        """Return the address of the server, which a restart keeps."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Serve, on the same port as before."""
        made = _Server(("127.0.0.1", self._port), _Handler)
        made.of = self
        self._server, self._port = made, made.server_address[1]
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self) -> None:
        """Die: connections break in the middle of what they say."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
        with self._changed:
            self._changed.notify_all()

    @property
    def is_up(self) -> bool:
        """Return whether it serves."""
        return self._server is not None

    # -- objects ----------------------------------------------------------------------------------------------------

    def put(self, resource: str, found: Object) -> None:
        """Create or replace an object, by its uid."""
        with self._changed:
            known = self._objects.setdefault(resource, {})
            self._note("MODIFIED" if found["metadata"]["uid"] in known else "ADDED", resource, found)
            known[found["metadata"]["uid"]] = self._changes[-1][3]

    def delete(self, resource: str, uid: str) -> None:
        """Delete an object."""
        with self._changed:
            self._note("DELETED", resource, self._objects[resource].pop(uid))

    def compact(self) -> None:
        """Forget all changes until now: whoever watches from before must list again."""
        with self._changed:
            self._version += 1
            self._compacted = self._version
            self._changes.clear()

    def _note(self, kind: str, resource: str, found: Object) -> None:
        self._version += 1
        found = copy.deepcopy(found)
        found["metadata"]["resourceVersion"] = str(self._version)
        self._changes.append((self._version, kind, resource, found))
        self._changed.notify_all()

    def listed(self, resource: str, limit: int, skip: int) -> Object:
        """Return a page of a list; a token says where the next begins."""
        with self._changed:
            found = list(self._objects.get(resource, {}).values())
            more = str(skip + limit) if len(found) > skip + limit else ""
            metadata = {"resourceVersion": str(self._version)} | ({"continue": more} if more else {})
            return {"kind": "List", "metadata": metadata, "items": found[skip : skip + limit] or None}

    def watched(self, resource: str, version: int, timeout_s: float) -> Iterator[Object]:
        """Yield what a watch says."""
        deadline, seen = time.monotonic() + timeout_s, version
        while time.monotonic() < deadline and self.is_up:
            with self._changed:
                if seen < self._compacted:
                    yield _error(410, f"too old resource version: {seen} ({self._compacted})")
                    return
                new = [change for change in self._changes if change[0] > seen and not self.hangs]
                if not new:
                    self._changed.wait(min(self.bookmark_s, max(0.0, deadline - time.monotonic())))
                at = self._version
            if self.hangs:
                time.sleep(0.05)
                deadline = time.monotonic() + timeout_s
                continue
            for number, kind, of, found in new:
                seen = number
                if of == resource:
                    yield {"type": kind, "object": found}
            if not new and at > seen:
                seen = at if not [change for change in self._changes if change[0] > seen] else seen
            if not new:
                yield {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(seen)}}}

    def kubeconfig(self, folder: Path) -> Path:
        """Write a file of kubectl that names this server, with its token."""
        user = {"name": "u", "user": {"token": self.token}}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": self.address}}],
            "users": [user],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        }
        file = folder / "kubeconfig"
        file.write_text(json.dumps(content))
        return file


@contextmanager
def kubernetes_server() -> Iterator[KubernetesServer]:
    """Serve until the context is left."""
    server = KubernetesServer()
    server.start()
    try:
        yield server
    finally:
        server.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    of: KubernetesServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Log nothing."""

    def do_GET(self) -> None:
        """Reply to a list or a watch."""
        of = self.server.of
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        resource, verb = url.path.rsplit("/", 1)[-1], "watch" if query.get("watch") == "true" else "list"
        of.requests.append(f"{verb} {resource}")
        if self.headers.get("Authorization") != f"Bearer {of.token}":
            self._whole(401, _error(401, "Unauthorized")["object"])
        elif (verb, resource) in of.forbidden:
            message = f'{resource} is forbidden: User "monitor" cannot {verb} resource "{resource}" at cluster scope'
            self._whole(403, _error(403, message)["object"])
        elif verb == "list":
            while of.hangs and of.is_up:
                time.sleep(0.05)
            self._whole(200, of.listed(resource, int(query.get("limit", 500)), int(query.get("continue", 0))))
        else:
            self._stream(of.watched(resource, int(query["resourceVersion"]), float(query.get("timeoutSeconds", 60))))

    def _whole(self, status: int, content: Object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, lines: Iterator[Object]) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        try:
            for line in lines:
                body = json.dumps(line).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(body), body))
                self.wfile.flush()
            # A server that dies does not say that the stream is at its end.
            if self.server.of.is_up:
                self.wfile.write(b"0\r\n\r\n")
        except OSError:
            return


def _error(code: int, message: str) -> Object:
    return {"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "code": code, "message": message}}
