"""The pages of a group and of its members name the pods that these run in, on a screen and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import BrowserContext

from dashboard.server import DashboardServer
from streaming.tables.schema import Row
from tests.browser.day_tables import T0, rebalance, write_rows
from udfs.model.annotations import FOLLOWED_KIND, POD_KIND

GROUP = {"cluster": "c", "group_id": "orders"}
NAMES = ("orders-7d9f8c6b5-x2x4q", "orders-7d9f8c6b5-zz9kl")
OF_POD = {
    "namespace": "shop-production",
    "workload": "deployment orders",
    "revision": "42",
    "node": "worker-3.eu-central.example",
    "image": "registry.example/shop/orders:2026.11.28-4f1c",
}


def _annotation(name: str, kind: str, **more: object) -> Row:
    lists: Row = {"groups": [], "client_ids": [], "hosts": []}
    times = {"began_at": T0 - 1_000, "ended_at": None, "written_at": T0, "first_written_at": T0}
    return {"annotation_id": name, "kind": kind, "text": name, "platform": "k8s-prod", "began_inferred": False} | (
        lists | times | more
    )


@pytest.fixture(scope="module")
def url(serve: Callable[..., DashboardServer], tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("pods")
    numbers = {"members": 2, "queues": 2, "idle_members": 0, "unassigned_queues": 0, "spread": 0, "generation": 1}
    state = {"system": "kafka", "state": "stable", "mode": "clustering", "strategy": "kafka.range"}
    last = {"last_rebalance_at": T0, "last_rebalance_id": "r"}
    rows: dict[str, list[Row]] = {"groups": [GROUP | numbers | state | last], "members": [], "assignments": []}
    rows["rebalances"] = [rebalance("c", "orders", "r", T0, NAMES[0])]
    rows["annotations"] = [_annotation("followed", FOLLOWED_KIND, ended_at=T0 + 60_000)]
    for number, pod in enumerate(NAMES):
        about = {"member_id": f"{pod}-1", "client_id": "consumer-orders", "client": "consumer-orders"}
        host = f"10.0.0.{number + 7}"
        rows["members"].append({**GROUP, **about, "host": f"/{host}", "address": host, "joined_at": T0})
        span = {"topic": "orders", "queue_id": number, "member_id": f"{pod}-1", "generation": 1, "rebalance_id": "r"}
        rows["assignments"].append({**GROUP, **span, "origin": "computed", "valid_from": T0, "inferred": False})
        rows["annotations"].append(_annotation(f"life-{number}", POD_KIND, pod=pod, hosts=[host], **OF_POD))
    for name, some in rows.items():
        write_rows(root, name, some)
    return serve(root).url.rstrip("/")


@pytest.mark.parametrize("width", [390, 1360])
@pytest.mark.parametrize("path", ["group", "member", "members"])
def test_pods_are_named_and_fit(open_context: Callable[..., BrowserContext], url: str, path: str, width: int) -> None:
    page = open_context(viewport={"width": width, "height": 844}).new_page()
    queries = {"group": {"cluster": "c", "group": "orders"}, "member": {"member": f"{NAMES[0]}-1"}, "members": {}}
    page.goto(f"{url}/{path}?{urlencode(queries[path])}")
    for details in page.locator("details").all():
        details.evaluate("one => { one.open = true; }")
    row = page.locator("tr", has=page.locator("td.k-pod", has_text=NAMES[0])).first
    pod = row.locator("td.k-pod")
    for name, text in {"pod": NAMES[0], **OF_POD}.items():
        assert text in pod.inner_text(), name
    # It is in sight where nothing was moved sideways.
    box = pod.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= width
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
