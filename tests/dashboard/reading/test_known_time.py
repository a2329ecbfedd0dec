"""For each way in which the present may not be known: what pages, API, metrics and Burrow's routes say of it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from fastapi.testclient import TestClient

from dashboard.app import create_app
from dashboard.reading.known_time import cluster_names, headline, known_end, newest_by_cluster, nothing_to_list
from dashboard.reading.questions import Reading
from streaming.settings.model import Dashboard
from streaming.tables.liveness import FOLDER
from tests.browser.day_tables import MINUTE_MS, rebalance, write_rows
from tests.streaming.tables.journals import T0
from tests.streaming.tables.signs import known, leave_living_sign, leave_sign, leave_silent_sign, living, sign

UNTIL = T0 + 2 * MINUTE_MS
UNTIL_TEXT = '<time datetime="2026-01-01T00:02:00Z">2026-01-01 00:02:00</time>'


def write(root: Path) -> None:
    """Write a group that is well, of a recording that ends at ``T0``."""
    group = {"cluster": "c", "group_id": "g"}
    counts = {"members": 2, "queues": 4, "idle_members": 0, "unassigned_queues": 0, "spread": 0}
    state = {"system": "kafka", "state": "stable", "last_rebalance_at": T0}
    write_rows(root, "groups", [group | state | counts])
    write_rows(root, "rebalances", [rebalance("c", "g", "r0", T0, "m")])
    session = {"member_id": "m", "joined_at": T0}
    write_rows(root, "members", [group | session])
    span = {"topic": "t", "queue_id": 0, "member_id": "m", "origin": "computed", "generation": 1, "rebalance_id": "r0"}
    write_rows(root, "assignments", [group | span | {"valid_from": T0, "inferred": False}])
    finding = {"finding_id": "f", "kind": "flapping", "severity": "warning", "message": "It flaps.", "opened_at": T0}
    write_rows(root, "findings", [group | finding])


def is_known(root: Path) -> None:
    leave_living_sign(root, "c")


def job_is_dead(root: Path) -> None:
    leave_sign(root, sign(known("c", known_until=UNTIL, is_live=True), state="running", written_at=UNTIL))


def source_is_silent(root: Path) -> None:
    leave_silent_sign(root, "c", known_until=UNTIL)


def is_partly_known(root: Path) -> None:
    leave_sign(root, living(known("c", is_live=True, partial="broker-b: refused")))


def is_a_recording(_: Path) -> None:
    """Leave it as ``write_rows`` does."""


def is_without_liveness(root: Path) -> None:
    shutil.rmtree(root / FOLDER)


class Said(NamedTuple):
    """What readers show at one time.

    Attributes:
        headline: In the header of pages. notice: On each page; empty: none.
        state: By the API. health: Of the group.
        is_known: By metrics. since: Blind since, there. alive: Jobs.
        burrow: Status code of its route, and the word.
    """

    headline: str
    notice: str
    state: str
    health: str
    is_known: int
    since: float | None
    alive: int
    burrow: tuple[int, str | None]


CASES: list[tuple[Callable[[Path], None], Said]] = [
    (is_known, Said("live", "", "known", "warning", 1, None, 1, (200, "WARN"))),
    (
        job_is_dead,
        Said(
            *("blind", f"</a> is blind since {UNTIL_TEXT}: the job (process 1 on host-1) has not reported since "),
            *("unknown", "unknown", 0, UNTIL / 1_000, 0, (503, None)),
        ),
    ),
    (
        source_is_silent,
        Said(
            *("blind", f"</a> is blind since {UNTIL_TEXT}: it is silent."),
            *("unknown", "unknown", 0, UNTIL / 1_000, 1, (503, None)),
        ),
    ),
    (
        is_partly_known,
        Said(
            *("blind", "</a> is partly known: broker-b: refused."),
            *("partly_known", "warning", 0, None, 1, (200, "WARN")),
        ),
    ),
    (is_a_recording, Said("recording", "", "recording", "warning", 1, None, 0, (200, "WARN"))),
    (
        is_without_liveness,
        Said(
            *("blind", "</a> is blind: no job has left its liveness beside these tables."),
            *("unknown", "unknown", 0, None, 0, (503, None)),
        ),
    ),
]


@contextmanager
def served(root: Path, settings: Dashboard) -> Iterator[TestClient]:
    with TestClient(create_app(root, settings, must_exist=False)) as client:
        yield client


def metric(text: str, name: str) -> dict[str, float]:
    """Return the samples of a family by their labels."""
    found = re.findall(rf"^rebalance_monitor_{name}(\{{.*\}})? (\S+)$", text, re.MULTILINE)
    return {labels: float(value) for labels, value in found}


@pytest.mark.parametrize(("leave", "said"), CASES, ids=[leave.__name__ for leave, _ in CASES])
def test_the_present_is_claimed_where_it_is_known_alone(
    tmp_path: Path, settings: Dashboard, leave: Callable[[Path], None], said: Said
) -> None:
    write(tmp_path)
    leave(tmp_path)
    is_unknown = said.state == "unknown"
    with served(tmp_path, settings) as client:
        for path in ("/", "/findings", "/job", "/group?cluster=c&group=g", "/member?member=m", "/questions"):
            text = client.get(path).text
            if "data-versions" in text:
                assert f'data-knowledge="{said.headline}"' in text, path
                assert (said.notice in text) if said.notice else (" is blind" not in text), path
        assert ("as last known" in client.get("/group?cluster=c&group=g").text) is is_unknown
        assert ("as last known" in client.get("/member?member=m").text) is is_unknown
        assert f'class="health {said.health}"' in client.get("/").text
        liveness = client.get("/api/v1/liveness").json()
        assert [(shown["cluster"], shown["state"]) for shown in liveness["clusters"]] == [("c", said.state)]
        (group,) = client.get("/api/v1/groups").json()["rows"]
        assert group["health"] == said.health
        assert (group["rebalances_day"] is None) is False
        (cluster,) = client.get("/api/v1/clusters").json()["rows"]
        assert (cluster["in_trouble"] is None) is is_unknown
        assert (client.get("/api/v1/timeline?cluster=c&group_id=g").json()["known_until"] is None) is not is_unknown
        answer = client.get("/v3/kafka/c/consumer/g/status")
        assert (answer.status_code, answer.json().get("status", {}).get("status")) == said.burrow
        text = client.get("/metrics").text
        assert client.get("/readyz").status_code == 200
    assert metric(text, "source_known") == {'{cluster="c"}': said.is_known}
    since = metric(text, "source_blind_since_timestamp_seconds")
    assert since == ({} if said.since is None else {'{cluster="c"}': said.since})
    assert metric(text, "jobs_alive") == {"": said.alive}
    of_group = '{cluster="c",group="g"}'
    for name in ("members", "queues", "idle_members", "unassigned_queues", "spread_queues", "rebalancing"):
        assert (of_group in metric(text, f"group_{name}")) is not is_unknown, name
    assert bool(metric(text, "groups")) is not is_unknown
    assert sum(metric(text, "rebalances_total").values()) == 1
    kinds = {re.findall('kind="(.*?)"', labels)[0] for labels in metric(text, "open_findings")}
    assert ("flapping" in kinds) is not is_unknown


def test_clusters_without_liveness_are_one_open_finding(tmp_path: Path, settings: Dashboard) -> None:
    write(tmp_path)
    is_without_liveness(tmp_path)
    with served(tmp_path, settings) as client:
        rows = client.get("/api/v1/findings?kind=job_silent").json()["rows"]
        text = client.get("/metrics").text
    ((cluster, message),) = [(row["cluster"], row["message"]) for row in rows]
    assert cluster == "c"
    assert message == "Nothing is known of the present of c: no job has left its liveness beside these tables."
    assert metric(text, "open_findings") == {'{cluster="c",group="",kind="job_silent",severity="critical"}': 1}


def test_a_job_that_is_gone_and_a_source_that_is_silent_are_open_findings(tmp_path: Path, settings: Dashboard) -> None:
    found = []
    for leave in (job_is_dead, source_is_silent):
        root = tmp_path / leave.__name__
        write(root)
        leave(root)
        with served(root, settings) as client:
            found.append(metric(client.get("/metrics").text, "open_findings"))
    assert found == [
        {'{cluster="c",group="",kind="job_silent",severity="critical"}': 1},
        {'{cluster="c",group="",kind="source_silent",severity="critical"}': 1},
    ]


def test_the_list_of_findings_has_those_that_no_job_can_write(tmp_path: Path, settings: Dashboard) -> None:
    write(tmp_path)
    for leave, kinds in ((job_is_dead, {"flapping", "job_silent"}), (is_known, {"flapping"})):
        shutil.rmtree(tmp_path / FOLDER)
        leave(tmp_path)
        with served(tmp_path, settings) as client:
            found = client.get("/api/v1/findings?open=yes").json()
            assert {row["kind"] for row in found["rows"]} == kinds
            assert found["total"] == len(kinds)
            assert ("job_silent" in client.get("/findings").text) == ("job_silent" in kinds)
    shutil.rmtree(tmp_path / FOLDER)
    source_is_silent(tmp_path)
    with served(tmp_path, settings) as client:
        (row,) = client.get("/api/v1/findings?kind=source_silent").json()["rows"]
        assert client.get("/api/v1/findings?since=0&sort=kind&limit=1").json()["total"] == 2
        # A job that can write has written it down, too: it is one finding.
        opened = {"cluster": "c", "kind": "source_silent", "severity": "critical", "message": "It is silent."}
        write_rows(tmp_path, "findings", [opened | {"finding_id": row["finding_id"], "opened_at": T0}])
        client.app._app.state.reading.tables.refresh()  # type: ignore[attr-defined]
        (row,) = client.get("/api/v1/findings?kind=source_silent").json()["rows"]
        assert row["message"] == "It is silent."


def test_tables_without_a_cluster_say_why(tmp_path: Path, settings: Dashboard) -> None:
    with served(tmp_path, settings) as client:
        assert "No cluster is known yet: no job has left its liveness" in client.get("/").text
        leave_sign(tmp_path, living(state="starting"))
        client.app._app.state.reading.tables.refresh()  # type: ignore[attr-defined]
        text = client.get("/").text
        assert "No cluster is known yet: the job starts." in text
        assert 'data-knowledge="blind"' in text
        assert client.get("/readyz").status_code == 503


def test_a_page_is_made_anew_when_a_cluster_turns_unknown_and_known_again(tmp_path: Path, settings: Dashboard) -> None:
    write(tmp_path)
    shown = []
    with served(tmp_path, settings) as client:
        tables = client.app._app.state.reading.tables  # type: ignore[attr-defined]
        for leave in (is_known, job_is_dead, is_known):
            shutil.rmtree(tmp_path / FOLDER)
            leave(tmp_path)
            assert "liveness" in tables.refresh()
            text = client.get("/findings").text
            shown.append(re.findall(r'data-knowledge="(\w+)"', text)[0])
            assert "liveness=" in re.findall(r'data-versions="(.*?)"', text)[0]
        # The next report of a job that lives changes nothing that is shown.
        leave_living_sign(tmp_path, "c")
        assert tables.refresh() == frozenset()
    assert shown == ["live", "blind", "live"]


def test_notices_are_bounded(tmp_path: Path, settings: Dashboard) -> None:
    leave_silent_sign(tmp_path, *(f"c{number}" for number in range(8)), known_until=UNTIL)
    with served(tmp_path, settings) as client:
        text = client.get("/findings").text
    assert text.count("</a> is blind since") == 5
    assert "And 3 more clusters are blind" in text


def test_beside_a_known_cluster_the_recent_rates_of_an_unknown_one_are_unknown(
    tmp_path: Path, settings: Dashboard
) -> None:
    write(tmp_path)
    write_rows(tmp_path, "groups", [{"cluster": "d", "group_id": "g", "system": "kafka", "state": "stable"}])
    source_is_silent(tmp_path)
    leave_living_sign(tmp_path, "d")
    reading = Reading.of(tmp_path, settings)
    assert cluster_names(reading) == ["c", "d"]
    assert headline(reading) == "blind"
    assert (known_end(reading, "c", UNTIL * 2), known_end(reading, "d", UNTIL * 2)) == (UNTIL, UNTIL * 2)
    assert newest_by_cluster(reading) == {"c": T0, "d": None}
    with served(tmp_path, settings) as client:
        rows = client.get("/api/v1/groups?sort=cluster").json()["rows"]
        totals = client.get("/").text
        drawn = client.get("/api/v1/timeline?cluster=c&group_id=g").json()
    assert [(row["health"], row["rebalances_hour"], row["rebalances_day"]) for row in rows] == [
        ("unknown", None, None),
        ("ok", 0, 0),
    ]
    assert "the present of 1 of them is unknown" in totals
    # A day that is over is still drawn up to its end, with some room beyond it.
    assert drawn["known_until"] == UNTIL
    assert UNTIL < drawn["until"] < UNTIL + 2 * MINUTE_MS
    assert drawn["spans"] == [[0, 0, T0, None]]


def test_an_empty_installation_names_the_followed_cluster_and_what_to_do(tmp_path: Path, settings: Dashboard) -> None:
    reading = Reading.of(tmp_path, settings, must_exist=False)
    assert "no cluster has been read; start `run` with --kafka" in nothing_to_list(reading)
    write_rows(tmp_path, "topics", [{"cluster": "shop", "topic": "t", "queue_count": 1, "valid_from": 0}])
    text = nothing_to_list(Reading.of(tmp_path, settings))
    assert text.startswith("no group yet: shop is followed, and no group was observed there")
    assert "--include-group" in text
    groups = [{"cluster": cluster, "group_id": name} for cluster, name in (("shop", "a"), ("shop", "b"), ("web", "c"))]
    write_rows(tmp_path, "groups", groups)
    reading = Reading.of(tmp_path, settings)
    assert nothing_to_list(reading) == "none of 3 groups fits these filters"
    assert nothing_to_list(reading, "web") == "none of 1 group fits these filters"
