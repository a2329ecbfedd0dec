"""Core: heartbeats of one batch as columns, and their packing for the shards. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from udfs.ingest.block_parser import UniformHeartbeats
from udfs.ingest.parser import BareHeartbeat
from udfs.model.arrays import Int64, UInt64
from udfs.model.events import Heartbeat
from udfs.model.systems import SYSTEMS
from udfs.packets.packed_texts import PackedTexts
from udfs.packets.packet import PackedHeartbeats, hash_column, mix

Booleans: TypeAlias = npt.NDArray[np.bool_]

_SYSTEM, _CLUSTER, _GROUP, _MEMBER_ID = map(attrgetter, ("system", "cluster", "group", "member_id"))
# Two members of one group are distinguished by as many bits of their keys as the state holds; the remaining bits hold
# the number of the group.
_KEY_SHIFT = np.uint64(24)
_GROUP_SHIFT = np.uint64(40)


class HeartbeatColumns(msgspec.Struct):
    """Heartbeats without a description: columns of text, and of times.

    Attributes:
        systems, clusters: As codes, because few are distinct. member_keys: The results of ``packet.member_key``.
    """

    systems: pa.DictionaryArray
    clusters: pa.DictionaryArray
    groups: pa.StringArray
    member_ids: pa.StringArray
    member_keys: UInt64
    times: Int64

    def __len__(self) -> int:
        return len(self.times)

    def where(self, kept: Booleans) -> HeartbeatColumns:
        """Return only the selected rows."""
        mask = pa.array(kept)
        return HeartbeatColumns(
            self.systems.filter(mask),
            self.clusters.filter(mask),
            self.groups.filter(mask),
            self.member_ids.filter(mask),
            self.member_keys[kept],
            self.times[kept],
        )

    @classmethod
    def of(cls, heartbeats: Sequence[Heartbeat | BareHeartbeat], times: Int64) -> HeartbeatColumns:
        """Make columns of heartbeats; ``times`` in the form in which they were read."""
        member_ids = pa.array(list(map(_MEMBER_ID, heartbeats)), pa.string())
        return cls(
            _coded(list(map(_SYSTEM, heartbeats))),
            _coded(list(map(_CLUSTER, heartbeats))),
            pa.array(list(map(_GROUP, heartbeats)), pa.string()),
            member_ids,
            hash_column(member_ids),
            times,
        )

    @classmethod
    def of_uniform(cls, part: UniformHeartbeats) -> HeartbeatColumns:
        """Make columns of heartbeats that were read as a block."""
        codes = np.zeros(len(part.rows), np.int32)
        return cls(
            pa.DictionaryArray.from_arrays(codes, pa.array([part.system], pa.string())),
            pa.DictionaryArray.from_arrays(codes, pa.array([part.cluster], pa.string())),
            part.groups,
            part.member_ids,
            hash_column(part.member_ids),
            part.times,
        )

    @classmethod
    def concat(cls, parts: list[HeartbeatColumns]) -> HeartbeatColumns:
        """Join parts, one after another."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            _joined([part.systems for part in parts]),
            _joined([part.clusters for part in parts]),
            pa.concat_arrays([part.groups for part in parts]),
            pa.concat_arrays([part.member_ids for part in parts]),
            np.concatenate([part.member_keys for part in parts]),
            np.concatenate([part.times for part in parts]),
        )

    def times_by_cluster(self) -> dict[str, Int64]:
        """Return the times of each cluster; some clusters may have none."""
        names = self.clusters.dictionary.to_pylist()
        if len(names) == 1:
            return {names[0]: self.times}
        codes = np.asarray(self.clusters.indices)
        return {name: self.times[codes == code] for code, name in enumerate(names)}

    def systems_of_clusters(self) -> list[tuple[str, str]]:
        """Return each (cluster, system) once."""
        if not len(self):
            return []
        systems, clusters = self.systems.dictionary.to_pylist(), self.clusters.dictionary.to_pylist()
        codes = np.asarray(self.clusters.indices, np.int64) * len(systems) + np.asarray(self.systems.indices)
        return [(clusters[code // len(systems)], systems[code % len(systems)]) for code in _numbered(codes)[0].tolist()]

    def speaking(self) -> Iterator[tuple[str, Int64, UInt64]]:
        """Yield the times and the members' keys of each cluster."""
        names = self.clusters.dictionary.to_pylist()
        if len(names) == 1:
            yield names[0], self.times, self.member_keys
            return
        codes = np.asarray(self.clusters.indices)
        for code, name in enumerate(names):
            mine = codes == code
            yield name, self.times[mine], self.member_keys[mine]


def _coded(texts: list[str]) -> pa.DictionaryArray:
    different = set(texts)
    if len(different) == 1:
        codes = pa.array(np.zeros(len(texts), np.int32))
        return pa.DictionaryArray.from_arrays(codes, pa.array(different, pa.string()))
    return pa.array(texts, pa.string()).dictionary_encode()


def _joined(columns: list[pa.DictionaryArray]) -> pa.DictionaryArray:
    if all(column.dictionary.equals(columns[0].dictionary) for column in columns):
        return pa.concat_arrays(columns)
    return pa.concat_arrays([column.cast(pa.string()) for column in columns]).dictionary_encode()


class _Table(NamedTuple):
    """The content of ``PackedHeartbeats`` for all shards.

    Attributes:
        homes: For each group, ascending, the number of its (cluster, shard).
        systems, group_keys, group_names: One entry per group.
        member_groups, member_keys, member_names: One entry per member, by group; the group as its index.
        pair_members, pair_times: One entry per pair, by member, then by time; the member as its index.
    """

    homes: Int64
    systems: npt.NDArray[np.uint8]
    group_keys: UInt64
    group_names: pa.StringArray
    member_groups: Int64
    member_keys: UInt64
    member_names: pa.StringArray
    pair_members: Int64
    pair_times: Int64


def pack_heartbeats(columns: HeartbeatColumns, shards: int) -> Iterator[tuple[str, int, PackedHeartbeats]]:
    """Pack heartbeats for each (cluster, shard), in the order that ``PackedHeartbeats`` requires."""
    if not len(columns):
        return
    table = _table(columns, shards)
    starts = np.flatnonzero(np.diff(table.homes, prepend=-1))
    bounds = [*starts.tolist(), len(table.homes)]
    members = np.searchsorted(table.member_groups, bounds)
    pairs = np.searchsorted(table.pair_members, members)
    for part, (start, end) in enumerate(pairwise(bounds)):
        of_members, of_pairs = slice(*members[part : part + 2]), slice(*pairs[part : part + 2])
        cluster, shard = divmod(int(table.homes[start]), shards)
        packed = PackedHeartbeats.pack(
            table.systems[start:end].tobytes(),
            (table.group_keys[start:end], pack_texts(table.group_names[start:end])),
            (
                table.member_groups[of_members] - start,
                table.member_keys[of_members],
                pack_texts(table.member_names[of_members]),
            ),
            (table.pair_members[of_pairs] - members[part], table.pair_times[of_pairs]),
        )
        yield columns.clusters.dictionary[cluster].as_py(), shard, packed


def _table(columns: HeartbeatColumns, shards: int) -> _Table:
    systems, clusters, groups = columns.systems, columns.clusters, columns.groups.dictionary_encode()
    # A group is one (cluster, system, name); groups are numbered by shard, then by key.
    place = np.asarray(clusters.indices, np.int64) * len(systems.dictionary) + np.asarray(systems.indices)
    named, row_groups = _numbered(place * len(groups.dictionary) + np.asarray(groups.indices))
    place_of, name_of = np.divmod(named, len(groups.dictionary))
    cluster_of, system_of = np.divmod(place_of, len(systems.dictionary))
    keys = mix(hash_column(clusters.dictionary)[cluster_of], hash_column(groups.dictionary)[name_of])
    homes = cluster_of * shards + (keys % np.uint64(shards)).astype(np.int64)
    order = np.argsort(keys)
    order = order[np.argsort(homes[order].astype(np.min_scalar_type(int(homes.max()))), kind="stable")]
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    codes = np.array([SYSTEMS[name].number for name in systems.dictionary.to_pylist()], np.uint8)
    return _Table(
        homes[order],
        codes[system_of[order]],
        keys[order],
        groups.dictionary.take(pa.array(name_of[order])),
        *_members(columns, number[row_groups]),
    )


def _members(columns: HeartbeatColumns, row_groups: Int64) -> tuple[Int64, UInt64, pa.StringArray, Int64, Int64]:
    """Return the distinct members and pairs in the form of ``_Table``."""
    places = (row_groups.astype(np.uint64) << _GROUP_SHIFT) | (columns.member_keys >> _KEY_SHIFT)
    # Members are sorted by key, as the shards search them; repeated heartbeats of a member are adjacent.
    order = np.argsort(places)
    places, names = places[order], columns.member_ids.take(pa.array(order))
    is_again = np.zeros(len(order), np.bool_)
    is_again[1:] = places[1:] == places[:-1]
    again = np.flatnonzero(is_again)
    # Members of one group whose keys are equal in the upper 40 bits are distinguished by name.
    if not np.asarray(pc.equal(names.take(pa.array(again)), names.take(pa.array(again - 1)))).all():
        return _members_by_name(columns, row_groups)
    row_groups, keys, times = row_groups[order], columns.member_keys[order], columns.times[order]
    if not len(again):
        return row_groups, keys, names, np.arange(len(order)), times
    first = ~is_again
    pair_members, pair_times = _sorted_pairs(np.cumsum(first) - 1, times)
    return row_groups[first], keys[first], names.filter(pa.array(first)), pair_members, pair_times


def _members_by_name(
    columns: HeartbeatColumns, row_groups: Int64
) -> tuple[Int64, UInt64, pa.StringArray, Int64, Int64]:
    members = columns.member_ids.dictionary_encode()
    codes = np.asarray(members.indices, np.int64)
    distinct, first, row_members = np.unique(
        row_groups * len(members.dictionary) + codes, return_index=True, return_inverse=True
    )
    pair_members, pair_times = _sorted_pairs(row_members, columns.times)
    names = members.dictionary.take(pa.array(codes[first]))
    return distinct // len(members.dictionary), columns.member_keys[first], names, pair_members, pair_times


def _numbered(codes: Int64) -> tuple[Int64, Int64]:
    """Return the distinct codes, ascending, and the index of each code among them."""
    greatest = int(codes.max())
    if greatest > 8 * len(codes):
        return np.unique(codes, return_inverse=True)
    there = np.zeros(greatest + 1, np.bool_)
    there[codes] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[codes]


def _sorted_pairs(members: Int64, times: Int64) -> tuple[Int64, Int64]:
    """Return the distinct pairs, sorted by member and time."""
    earliest = int(times.min())
    span = int(times.max()) - earliest + 1
    if (int(members.max()) + 1) * span < 2**63:
        both = np.sort(members * span + (times - earliest))
        both = both[np.diff(both, prepend=-1) != 0]
        pair_members, offsets = np.divmod(both, span)
        return pair_members, offsets + earliest
    pairs = np.unique(np.stack((members, times), axis=1), axis=0)
    return pairs[:, 0], pairs[:, 1]


def pack_texts(texts: pa.StringArray) -> PackedTexts:
    """Pack a column of text without creating Python strings."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = texts.buffers()[2]
    content = memoryview(data)[int(offsets[0]) : int(offsets[-1])] if data is not None else b""
    return PackedTexts.of_bytes(np.diff(offsets).astype(np.uint32), content)
