"""States that the release before wrote are continued."""

from __future__ import annotations

import base64
import zlib

from tests.core_config import core_config
from tests.udfs.shard.shard_script import CLUSTER, FAR, T0, beat, clock, packet_for
from udfs.group import coordinator as group
from udfs.model.journal import Rebalance, Rejected
from udfs.shard.shard import Shard

RULES = core_config(shards=1, allowed_lateness_ms=0)
# Topic t of 4 queues; m joined @1000, described anew @9000; a join @20500 waits; the clock stands at 20500.
WRITTEN_BEFORE_FIELDS_HAD_TIMES = (
    "eNptVItS4kgUbQggTAJCkLeuGERFYgYCEkI5mhkgJhAQcOUhj+UtsoDsyICWOvvr21G0nHFvVd/qSvU9J/fc061sKMBzoJlsmjHU6XGKQvujy4"
    "D3NPgQGV1eAaAq37FsbU2K+edUhZ39gQBjs33V+6cQ3SftsU7O4rJx16HvjQuEobjzcerQXJRqrEKgUZ5yAH9F7SmNbLGbptcVMYCL6TATL2KV"
    "zzfDPGKcuyLdVMazSNfoZR3dfcXPK7gYVQnOCl9uI4YdcedMfCgaamwGMRrvw1V6nLCYGcOq6L1Rexjs0oWLWX9RqmrxegO16uvhSfZpv085mF"
    "k/+JMs+F74JzZxt2dBSvC/b8PiUYxyRno1vZ/XwC6NUAS3CqYEXFwXpulBIb3bedxkdG6wDA68BY4sN6rXL3d6mAbD7aDWO7Y9fX2kagC0dQTe"
    "r9ODkLekDkUOyks975N7wHx8RAPR6tV4beGNZlaxHVXaA00uXkg78F5u7PwXrAEgGD1ZDNxtQxYO89FAiSr2tO4m19IVYyabVA31rCrtFhExBo"
    "WWac5L9kPJYi5qMLrPV4JmTTbIjLDQXKO3d0bGUIho/tlpXNzCudDursrdUq6If+cW4ZihHmiXLehLd0gWuCU1P8AWGfUc71jVaH1/fpCWfFER"
    "V3tXl82qCVkvxVKvd6EEv+vifgis+k4BOMZfvKZ9fxwhXnV3/wLDveEA44cNqEyNeVx1ss4AkCPJn/ft93zPYfLjRfZMCI6GGU9JWjfFEpj5W1"
    "Kg5ynWs0Dr4XFKlzf39bLiCoTH7IdQU6LrYG+GX83EqRAiytrrIukK9rpPKV7SbhBl6GNJayX6+niRrAb+GkH/UZfMJDHQxZMC+yORce1Qzuiz"
    "X7PajWoiZy6gqOn2O+QnXZCffL5XEHfLtlqjidkbfmF+4GR6gu564QBAYT2mDLbkyN3uOs41BrrVTuiQHQN9OMwFebLs6ktJNs5jzhDf24pgvl"
    "ivn0c+gd/9C3C4ooVGyzXf1SRX/s+/woc52eXxrD3FPymf/SsJOsAJia0ylpqE4FzJx9q6Eyi0QIPJVTJmU649knFRmT1x/oVUQr6r6rbtjL8/"
    "mdBA8cEWSmCfpmtgJJ7kxRWQ39QMchRIJXubnyEs93Z+j5cv0wpQiTQaMdRf36GqO/vN39dX4P1OPmKwH3TTdpomhsw0xfr5USkwA64fRUrW9Q"
    "XqP8CVzpU="
)


def test_a_state_of_groups_without_times_of_fields_and_clusters_without_a_time_goes_on() -> None:
    state = zlib.decompress(base64.b64decode(WRITTEN_BEFORE_FIELDS_HAD_TIMES))
    shard = Shard(CLUSTER, 0, state, RULES, group)
    events = [beat("m", 500, subscriptions=("u",)), beat("m", 30_000), clock(31_000)]
    rows = list(shard.advance([packet_for(0, events, RULES)], FAR))

    assert [(row.event_time - T0, row.trigger) for row in rows if isinstance(row, Rebalance)] == [
        (20_500, "member_joined")
    ]
    assert [row.reason for row in rows if isinstance(row, Rejected)] == ["late"]  # older than m's join
    again = Shard(CLUSTER, 0, shard.encode(), RULES, group)
    assert again.state.header.clock == T0 + 31_000
    assert list(again.advance([packet_for(0, [clock(32_000)], RULES)], FAR)) == []
