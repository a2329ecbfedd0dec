"""Shell: reads MetaQ's nodes from ZooKeeper, many at a time, and leaves a watch at each.

Watches fire once; the next read sets them again. The requests of one session are answered in order, so one sequence of
requests is consistent except for changes in between, which the watches report.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.interfaces import IAsyncResult
from kazoo.protocol.states import WatchedEvent, ZnodeStat

from streaming.collectors.metaq.observed import (
    Folder,
    Violation,
    ZkGroup,
    ZkMember,
    ZkOwner,
    ZkOwners,
    ZkShare,
    ZkTopic,
    changes_between,
)
from streaming.collectors.metaq.options import MetaqOptions
from streaming.collectors.metaq.znodes import (
    Paths,
    UnreadableNode,
    read_broker,
    read_name,
    read_offset,
    read_owner,
    read_partition,
    read_share,
    read_subscriptions,
    violation_of,
)

_ANSWER_S = 30.0  # for one answer of a connected server

ReadRequest: TypeAlias = tuple[Literal["children", "data", "unwatched"], str]
_Value = TypeVar("_Value")


class _Children(NamedTuple):
    names: list[str]
    folder: Folder


class _Data(NamedTuple):
    data: bytes
    stat: ZnodeStat


class Offset(NamedTuple):
    """The committed offset of a group in one partition, and when it was written."""

    topic: str
    partition: str
    offset: int
    at: int


_EMPTY = _Children([], Folder())


class ZkReader:
    """Reads nodes.

    Args:
        watch: Is notified of every change of the read nodes.
    """

    def __init__(self, client: KazooClient, options: MetaqOptions, watch: Callable[[WatchedEvent], None]) -> None:
        self._client = client
        self._options = options
        self._paths = Paths(options.root)
        self._watch = watch
        self.is_old = False  # the brokers are older than 1.4.3

    def touch(self) -> None:
        """Send a small request; changes before its answer are noticed before its answer."""
        self._window([self._paths.consumers], lambda path: self._client.exists_async(path, watch=self._watch))

    # ---- the existing nodes

    def groups(self) -> list[str]:
        """Return the groups that are followed, sorted."""
        return [name for name in self._listed(self._paths.consumers) if self._options.follows_group(name)]

    def topics(self) -> list[str]:
        """Return the topics that are followed, sorted.

        Brokers before 1.4.3 wrote only ``brokers/topics``. Consumers create folders in ``topics-sub``; only brokers
        create ``topics-pub``.
        """
        published = self._children([self._paths.topics_pub])[self._paths.topics_pub]
        subscribed = self._listed(self._paths.topics_sub)
        self.is_old = published is None and not subscribed
        names = self._listed(self._paths.topics_old) if self.is_old else subscribed
        return [name for name in names if self._options.follows_topic(name)]

    def _listed(self, path: str) -> list[str]:
        children = self._children([path])[path]
        return sorted(name for name in (children or _EMPTY).names if _is_readable(name, read_name))

    # ---- topics

    def read_topics(self, topics: Sequence[str]) -> dict[str, ZkTopic | None]:
        """Read topics; return None for a topic that does not exist."""
        root = self._paths.topics_old if self.is_old else self._paths.topics_sub
        folders = self._children([f"{root}/{topic}" for topic in topics])
        wanted = [f"{path}/{name}" for path, children in folders.items() if children for name in children.names]
        data = dict(zip(wanted, self._request(("data", path) for path in wanted), strict=True))
        found: dict[str, ZkTopic | None] = {}
        for topic in topics:
            path = f"{root}/{topic}"
            children = folders[path]
            found[topic] = None if children is None else self._topic(path, children, data)
        return found

    def _topic(self, path: str, children: _Children, data: Mapping[str, _Data | None]) -> ZkTopic:
        shares: dict[str, ZkShare] = {}
        violations: list[Violation] = []
        for name in sorted(children.names):
            node = data[f"{path}/{name}"]
            if node is None:
                continue
            try:
                broker = read_broker(name if not self.is_old or "-" in name else f"{name}-m")
                count = read_share(node.data, old=self.is_old)
            except UnreadableNode as error:
                violations.append(violation_of(self._paths.below(f"{path}/{name}"), str(error), node.data))
                continue
            shares[name] = ZkShare(broker, count, max(node.stat.ctime, node.stat.mtime))
        return ZkTopic(children.folder, shares, tuple(violations))

    # ---- groups

    def read_groups(
        self, previous: Mapping[str, ZkGroup | None], *, described: Collection[str] = ()
    ) -> dict[str, ZkGroup | None]:
        """Read groups.

        Args:
            previous: The nodes to be read, each with its previous read; unchanged parts are not read again.
            described: Groups of which all members' nodes are read again, because they were written, or have no watch.

        Returns: None for a group that changed while it was read: its watch has fired, or will.
        """
        paths = self._paths
        listing = []
        for group, before in previous.items():
            listing += [paths.ids(group), paths.owners(group)]
            listing += [f"{paths.owners(group)}/{topic}" for topic in (before.topics if before else ())]
        folders = self._children(listing)
        more = [
            f"{paths.owners(group)}/{topic}"
            for group in previous
            for topic in (folders[paths.owners(group)] or _EMPTY).names
            if self._options.follows_topic(topic) and f"{paths.owners(group)}/{topic}" not in folders
        ]
        folders |= self._children(more)
        readings = {
            group: _GroupReading(self._options, paths, group, before, folders, group in described)
            for group, before in previous.items()
        }
        wanted: list[ReadRequest] = [request for reading in readings.values() for request in reading.wanted()]
        data = dict(zip((path for _, path in wanted), self._request(wanted), strict=True))
        return {group: reading.finish(data) for group, reading in readings.items()}

    def read_offsets(self, groups: Sequence[str]) -> dict[str, list[Offset]]:
        """Read groups' offsets without watches, because they move all the time."""
        roots = [self._paths.offsets(group) for group in groups]
        topics = self._children(roots, watched=False)
        folders = [
            f"{root}/{topic}"
            for root, children in topics.items()
            for topic in (children or _EMPTY).names
            if self._options.follows_topic(topic) and _is_readable(topic, read_name)
        ]
        partitions = self._children(folders, watched=False)
        wanted = [
            f"{folder}/{name}"
            for folder, children in partitions.items()
            for name in (children or _EMPTY).names
            if _is_readable(name, read_partition)
        ]
        found: dict[str, list[Offset]] = {group: [] for group in groups}
        for path, node in zip(wanted, self._request(("unwatched", path) for path in wanted), strict=True):
            group, _, topic, partition = self._paths.below(path).removeprefix("/consumers/").split("/")
            if node is not None and _is_readable(node.data, read_offset):
                found[group].append(Offset(topic, partition, read_offset(node.data), node.stat.mtime))
        return found

    # ---- requests

    def _children(self, paths: Sequence[str], *, watched: bool = True) -> dict[str, _Children | None]:
        """List nodes; return None for a node that does not exist, whose creation is watched."""
        found: dict[str, _Children | None] = {}
        missing = list(dict.fromkeys(paths))
        while missing:
            answers = self._window(missing, lambda path: self._list_children(path, watched))
            found |= {
                path: None if answer is None else _Children(answer[0], _folder(answer[1]))
                for path, answer in zip(missing, answers, strict=True)
            }
            absent = [path for path in missing if found[path] is None]
            if not watched or not absent:
                break
            created = self._window(absent, lambda path: self._client.exists_async(path, watch=self._watch))
            missing = [path for path, stat in zip(absent, created, strict=True) if stat is not None]
        return found

    def _list_children(self, path: str, watched: bool) -> IAsyncResult:
        return self._client.get_children_async(path, watch=self._watch if watched else None, include_data=True)

    def _request(self, requests: Iterable[ReadRequest]) -> list[_Data | None]:
        """Read data; return None for a node that no longer exists."""

        def get(request: ReadRequest) -> IAsyncResult:
            return self._client.get_async(request[1], watch=self._watch if request[0] == "data" else None)

        return [None if answer is None else _Data(*answer) for answer in self._window(requests, get)]

    def _window(self, items: Iterable[_Value], request: Callable[[_Value], IAsyncResult]) -> list[Any]:
        """Send all requests, a limited number at a time; return answers in the same order, None for missing nodes."""
        answers: list[Any] = []
        waiting: deque[IAsyncResult] = deque()
        for item in items:
            if len(waiting) >= self._options.requests_in_flight:
                answers.append(_answer(waiting.popleft()))
            waiting.append(request(item))
        answers += [_answer(result) for result in waiting]
        return answers


class _GroupReading:
    """One group while it is being read."""

    def __init__(
        self,
        options: MetaqOptions,
        paths: Paths,
        group: str,
        before: ZkGroup | None,
        folders: Mapping[str, _Children | None],
        all_members: bool,
    ) -> None:
        self._options = options
        self._paths = paths
        self._before = before
        self._ids_path = paths.ids(group)
        self._ids = folders[self._ids_path] or _EMPTY
        self._owners_path = paths.owners(group)
        listed = (folders[self._owners_path] or _EMPTY).names
        self._topics = {
            topic: children
            for topic in sorted(listed)
            if (children := folders.get(f"{self._owners_path}/{topic}")) is not None and _is_readable(topic, read_name)
        }
        self._all_members = all_members
        self._violations: list[Violation] = []

    def wanted(self) -> list[ReadRequest]:
        """Return what must be read: new nodes, and all of a folder with more changes than can be observed."""
        before = self._before
        unchanged = before.members if before is not None and not self._all_members else {}
        wanted: list[ReadRequest] = [
            ("data", f"{self._ids_path}/{name}")
            for name in _unknown(self._ids, before.ids if before is not None else Folder(), unchanged)
        ]
        for topic, children in self._topics.items():
            was = before.topics.get(topic) if before is not None else None
            names = _unknown(children, was.folder, was.owners) if was is not None else children.names
            wanted += [("unwatched", f"{self._owners_path}/{topic}/{name}") for name in names]
        return wanted

    def finish(self, data: Mapping[str, _Data | None]) -> ZkGroup | None:
        """Combine the read nodes; return None if one was deleted during the read."""
        try:
            members = self._members(data)
            topics = {topic: self._owners(topic, children, data) for topic, children in self._topics.items()}
        except _NodeMissing:
            return None
        return ZkGroup(self._ids.folder, members, topics, tuple(sorted(self._violations)))

    def _members(self, data: Mapping[str, _Data | None]) -> dict[str, ZkMember]:
        members = {}
        for name in sorted(self._ids.names):
            path = f"{self._ids_path}/{name}"
            if path not in data:
                assert self._before is not None
                members[name] = self._before.members[name]
                below = self._paths.below(path)
                self._violations += [violation for violation in self._before.violations if violation.path == below]
                continue
            node = _there(data[path])
            try:
                subscriptions = read_subscriptions(node.data)
            except UnreadableNode as error:
                self._violations.append(violation_of(self._paths.below(path), str(error), node.data))
                subscriptions = ()
            followed = tuple(topic for topic in subscriptions if self._options.follows_topic(topic))
            members[name] = ZkMember(followed, node.stat.czxid, node.stat.ctime, node.stat.ephemeralOwner)
        return members

    def _owners(self, topic: str, children: _Children, data: Mapping[str, _Data | None]) -> ZkOwners:
        owners = {}
        for name in sorted(children.names):
            path = f"{self._owners_path}/{topic}/{name}"
            if path not in data:
                assert self._before is not None
                owners[name] = self._before.topics[topic].owners[name]
                continue
            node = _there(data[path])
            try:
                read_partition(name)
                owner = read_owner(node.data)
            except UnreadableNode as error:
                self._violations.append(violation_of(self._paths.below(path), str(error), node.data))
                continue
            owners[name] = ZkOwner(owner, node.stat.czxid, node.stat.ctime)
        return ZkOwners(children.folder, owners)


class _NodeMissing(Exception):  # noqa: N818 - a node that was deleted while its folder was read
    pass


def _there(node: _Data | None) -> _Data:
    if node is None:
        raise _NodeMissing
    return node


def _unknown(children: _Children, folder: Folder, unchanged: Mapping[str, object]) -> list[str]:
    """Return the children that must be read: the new ones, or all if something else changed besides."""
    names = set(children.names)
    shown = len(names - unchanged.keys()) + len(unchanged.keys() - names)
    if changes_between(folder, children.folder) != shown:
        return sorted(names)
    return sorted(names - unchanged.keys())


def _folder(stat: ZnodeStat) -> Folder:
    # ZooKeeper's -1 means that the children were never changed.
    return Folder(stat.cversion, stat.pzxid)


def _is_readable(value: Any, read: Callable[[Any], object]) -> bool:
    try:
        read(value)
    except UnreadableNode:
        return False
    return True


def _answer(result: IAsyncResult) -> Any:
    try:
        return result.get(timeout=_ANSWER_S)
    except NoNodeError:
        return None
