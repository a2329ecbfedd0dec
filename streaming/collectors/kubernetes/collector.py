"""Shell: follows one Kubernetes cluster by lists and watches, and appends annotations to a log.

Each resource is followed by a thread of its own: a right that is missing for one does not hide the others. Nothing is
written but annotations, so no monitored cluster's clock moves, and none becomes known.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from streaming.collectors.collector import CollectorStatus, CollectorThread, State
from streaming.collectors.event_log import EventLog, LogFull
from streaming.collectors.kubernetes.api_server import ApiServer, AwayError, GoneError, RefusedError
from streaming.collectors.kubernetes.objects import RESOURCES, Resource
from streaming.collectors.kubernetes.options import KubernetesOptions
from streaming.collectors.kubernetes.platform_history import PlatformHistory
from streaming.machine.clock import now_ms
from streaming.machine.logs import logger
from streaming.machine.process import since_boot_ms
from streaming.setup.errors import SetupError
from udfs.model.annotations import Annotation

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 10.0
_FULL_PAUSE_S = 1.0
# Until when pods are known is written so often, with the memory. A kill forgets what was learned since; the next start
# lists everything, and writes it again under the same identities.
_KEEP_EVERY_MS = 15_000
_PODS = "pods"
_log = logger("kubernetes")


class KubernetesCollector(CollectorThread):
    """Follows one cluster, from ``start`` to ``stop``; also a context manager.

    Args:
        log: Receives the annotations. Its memory is what is known of pods, nodes and workloads.
    """

    def __init__(self, options: KubernetesOptions, api: ApiServer, log: EventLog) -> None:
        self._options = options
        self._api = api
        self._log = log
        self._history = _history_of(options, log)
        self._problems: dict[str, tuple[State, str]] = {}  # by resource; those that are followed have none
        self._answered_ms: int | None = None  # when pods were known last, since the machine's boot
        self._kept_ms = since_boot_ms()
        self._since_ms = now_ms()
        self._lock = threading.RLock()  # of the history and the log, also while the log takes nothing
        self._known = threading.Lock()  # of the status, which is always answered
        self._threads: list[threading.Thread] = []
        super().__init__("kubernetes-collector")

    def stop(self) -> None:
        """Stop, and wait for the end; threads that wait for the server are left behind, and write nothing more."""
        self._stopping.set()
        self._joined(self._options.answer_s)
        with self._lock:
            self._keep()

    def observe_once(self) -> bool:
        """List everything once, in this thread; return whether the pods could be read."""
        for resource in RESOURCES:
            self._attempt(resource, self._list)
        with self._lock:
            self._keep()
        return _PODS not in self._problems

    def status(self) -> CollectorStatus:
        """Return the current status: the cluster is known if its pods are."""
        with self._known:
            problems, answered_ms = dict(self._problems), self._answered_ms
        state: State = "starting" if answered_ms is None else "connected"
        detail: str | None = self._missing(problems) or None
        if _PODS in problems:
            state, detail = problems[_PODS]
        return CollectorStatus(
            cluster=f"kubernetes {self._options.cluster}",  # a cluster of consumers may have the same name
            state=state,
            since_ms=self._since_ms,
            detail=detail,
            answered_at_ms=answered_ms,
        )

    # -- threads ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        # What owns pods is listed before them, so that their first annotation names it.
        versions: dict[str, str | None] = {}
        for resource in RESOURCES:
            if not self._stopping.is_set():
                versions[resource.name] = self._attempt(resource, self._list)
        for resource in RESOURCES:
            follow = threading.Thread(
                target=self._follow,
                args=(resource, versions.get(resource.name)),
                name=f"kubernetes-{resource.name}",
                daemon=True,
            )
            follow.start()
            self._threads.append(follow)
        while not self._stopping.wait(_FULL_PAUSE_S):
            if since_boot_ms() - self._kept_ms >= _KEEP_EVERY_MS:
                with self._lock:
                    self._keep()

    def _follow(self, resource: Resource, version: str | None) -> None:
        """List a resource, then watch it from there, again and again."""
        pause_s = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            if version is None:
                version = self._attempt(resource, self._list)
            if version is not None:
                version = self._attempt(resource, partial(self._watch, version=version))
            if version is not None:
                pause_s = _FIRST_PAUSE_S
            elif self._stopping.wait(pause_s):
                return
            else:
                pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)

    def _attempt(self, resource: Resource, read: Callable[[Resource], str]) -> str | None:
        """Return the version up to which a resource was read; None if that failed, or it must be listed again."""
        try:
            version = read(resource)
        except GoneError:
            return None
        except RefusedError as error:
            self._set(resource, "refused", str(error))
            self._connect_again()
            return None
        except AwayError as error:
            self._set(resource, "away", str(error))
            return None
        self._answered(resource)
        return version

    def _connect_again(self) -> None:
        """Read the credentials again: a token is replaced by another one before it expires."""
        try:
            self._api.connect()
        except SetupError as error:
            _log.warning("the credentials cannot be read again", reason=str(error))

    def _list(self, resource: Resource) -> str:
        found, version = self._api.list(resource)
        with self._lock:
            self._write(self._history.listed(resource, found, now_ms()))
        return version

    def _watch(self, resource: Resource, version: str) -> str:
        for change in self._api.watch(resource, version):
            if self._stopping.is_set():
                return version
            version = change.version or version
            with self._lock:
                if change.found is None:
                    self._history.confirmed(resource, now_ms())
                elif change.kind == "DELETED":
                    self._write(self._history.deleted(resource, change.found, now_ms()))
                else:
                    self._write(self._history.changed(resource, change.found, now_ms()))
            self._answered(resource)
        with self._lock:
            self._history.confirmed(resource, now_ms())
        return version

    # -- what is known ----------------------------------------------------------------------------------------------

    def _answered(self, resource: Resource) -> None:
        with self._known:
            if resource.name == _PODS:
                self._answered_ms = since_boot_ms()
            before = self._problems.pop(resource.name, None)
        if before is not None:
            _log.info("a resource is followed again", cluster=self._options.cluster, resource=resource.name)

    def _set(self, resource: Resource, state: State, detail: str) -> None:
        with self._known:
            before = self._problems.get(resource.name)
            self._problems[resource.name] = (state, detail)
        if before != (state, detail):
            _log.warning(
                "a resource cannot be followed",
                cluster=self._options.cluster,
                resource=resource.name,
                state=state,
                reason=detail,
            )

    def _missing(self, problems: dict[str, tuple[State, str]]) -> str:
        """Return which resources are not followed, and why."""
        by_reason: dict[str, list[str]] = {}
        for name, (_, reason) in sorted(problems.items()):
            by_reason.setdefault(reason, []).append(name)
        parts = [f"not followed: {', '.join(names)} ({reason})" for reason, names in by_reason.items()]
        return "; ".join(parts)

    # -- the log ----------------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        """Write until when pods are known, and then what a later process needs."""
        self._kept_ms = since_boot_ms()
        with self._known:
            problems = dict(self._problems)
        self._write(self._history.followed(self._missing(problems), now_ms(), has_pods=_PODS not in problems))
        try:
            self._log.keep_memory(self._history.memory())
        except OSError as error:
            _log.warning("the memory cannot be written", reason=str(error))

    def _write(self, annotations: Sequence[Annotation]) -> None:
        """Append annotations; while the log takes none, wait: the watches fall behind, and list again."""
        while annotations:
            try:
                self._log.append(annotations)
                return
            except LogFull:
                if self._stopping.wait(_FULL_PAUSE_S):
                    return


def _history_of(options: KubernetesOptions, log: EventLog) -> PlatformHistory:
    """Return what was known when the last process ended; nothing if that cannot be read."""
    try:
        return PlatformHistory(options.cluster, options.members_of or None, log.read_memory())
    except msgspec.MsgspecError as error:
        _log.warning("the memory cannot be read; all pods are listed anew", reason=str(error))
        return PlatformHistory(options.cluster, options.members_of or None)
