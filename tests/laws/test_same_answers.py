"""For the same thing, commands with `--json` and the API give the same keys, values and filters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from fastapi.testclient import TestClient

from dashboard.app import create_app
from dashboard.reading.listings import LISTINGS
from streaming.commands.show import app as show
from streaming.settings.model import load
from tests.dashboard.demo_tables import write_demo
from tests.dashboard.whole_tables import write_whole
from tests.streaming.views.rebalancing_story import write_rebalancing
from tests.streaming.views.story import json_of, run


class Same(NamedTuple):
    """A listing that a command shows.

    Attributes:
        options: Option -> the parameter of the API that means the same, and where rows have values for it.
        requested: What the command always requests of the API's listing.
        api_only: Parameters that the command has no option for.
    """

    options: dict[str, tuple[str, str]]
    requested: dict[str, str]
    api_only: frozenset[str]


NAMES = {"--cluster": ("cluster", "cluster"), "--group": ("group_id", "group_id")}
SPAN = {"--since": ("since", "event_time"), "--until": ("until", "event_time")}
# Pages and programs search by exact id; people use `-g`, their eyes, or `query`.
FOR_PROGRAMS = frozenset({"q", "rebalance_id", "client", "finding_id"})
SAME = {
    "groups": Same(
        {
            "--cluster": ("cluster", "cluster"),
            "--state": ("state", "coordinator_state"),
            "--health": ("health", "health"),
            "--system": ("system", "system"),
            "--finding": ("kind", "finding_kinds"),
            "--search": ("q", "group_id"),
        },
        {"sort": "cluster"},
        # `show group` shows these for one group
        frozenset({"group_id", "mode", "strategy_verdict", "library", "protocol"}),
    ),
    "members": Same(
        {**NAMES, "--client": ("client", "client"), "--at": ("at", "joined_at")},
        {"sort": "cluster", "open": "yes"},
        frozenset({"q", "member_id", "client_id", "host", "address", "instance_id", "open", "since", "until"}),
    ),
    "rebalances": Same(
        {**NAMES, **SPAN, "--trigger": ("trigger", "trigger"), "--status": ("status", "status")},
        {"since": "0"},  # the last twenty rebalances are shown, however old they are
        FOR_PROGRAMS - {"finding_id"} | {"system", "agrees"},
    ),
    "findings": Same(
        {**NAMES, "--kind": ("kind", "kind")},
        {"open": "yes"},
        # `--all` covers the choice between open and closed
        FOR_PROGRAMS - {"rebalance_id"} | {"severity", "open", "since", "until", "at"},
    ),
    "assignments": Same(
        {
            **NAMES,
            "--topic": ("topic", "topic"),
            "--member": ("member_id", "member_id"),
            "--origin": ("origin", "origin"),
            "--at": ("at", "valid_from"),
        },
        {"open": "yes"},
        frozenset({"q", "open", "since", "until"}),
    ),
    "audits": Same(
        {**NAMES, **SPAN, "--verdict": ("verdict", "verdict")},
        {"since": "0"},
        FOR_PROGRAMS - {"client", "finding_id"} | {"system", "reason"},
    ),
    "annotations": Same(
        {
            "--cluster": ("cluster", "cluster"),
            "--kind": ("kind", "kind"),
            "--search": ("q", "kind"),
            "--since": ("since", "began_at"),
            "--until": ("until", "began_at"),
        },
        {},
        frozenset({"annotation_id", "at"}),
    ),
    "episodes": Same(
        {
            **NAMES,
            "--kind": ("kind", "kind"),
            "--since": ("since", "began_at"),
            "--until": ("until", "began_at"),
        },
        {},
        frozenset({"q", "episode_id", "client", "host", "prefix", "topic", "open", "at"}),
    ),
}
# Keys that only one of both has, with the reason; there are none.
ONLY_IN_ONE: dict[str, dict[str, str]] = {name: {} for name in SAME}
# People read these on pages, and by the ready questions; `advise` is a command of its own kind.
WITHOUT_COMMAND = {"rejected-events", "group-minutes", "queue-progress", "advice"}
OF_ALL = {"--tables", "--config", "--wide", "--json", "--all"}
MANY = "10000"


@pytest.fixture(scope="module", params=[write_demo, write_whole, write_rebalancing])
def root(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the tables of a fleet, of a small story, or of groups that rebalance, some of them not followed."""
    tables = tmp_path_factory.mktemp("tables")
    request.param(tables)
    return tables


@pytest.fixture(scope="module")
def api(root: Path) -> Iterator[Callable[..., Any]]:
    """Return the API's answer to a request."""
    settings = load(overrides={"dashboard.allowed_hosts": ["testserver"], "dashboard.port": 0})
    with TestClient(create_app(root, settings.dashboard)) as client:

        def answer(path: str, **parameters: str) -> Any:
            found = client.get(f"/api/v1/{path}", params=parameters)
            assert found.status_code == 200, found.text
            return found.json()

        yield answer


def both(
    root: Path, api: Callable[..., Any], name: str, options: list[str], requested: dict[str, str]
) -> list[list[dict[str, Any]]]:
    """Return the rows of a command and of the API, without the keys that only one of both has."""
    limit = ["--limit", MANY] if "--limit" in options_of(name) else []
    shown, answered = json_of(root, "show", name, *options, *limit), api(name, limit=MANY, **requested)["rows"]
    return [
        [{key: row[key] for key in row if key not in ONLY_IN_ONE[name]} for row in rows] for rows in (shown, answered)
    ]


def options_of(name: str) -> set[str]:
    """Return the options of a command that lists."""
    command = typer.main.get_command(show).commands[name]  # type: ignore[attr-defined]
    return {next(opt for opt in option.opts if opt.startswith("--")) for option in command.params} - {"--help"}


@pytest.mark.parametrize("name", SAME)
def test_a_listing_has_the_same_rows_with_the_same_keys(root: Path, api: Callable[..., Any], name: str) -> None:
    shown, answered = both(root, api, name, [], SAME[name].requested)
    assert shown == answered
    for row in shown:
        assert set(row) | set(ONLY_IN_ONE[name]) >= set(LISTINGS[name].names) - set(ONLY_IN_ONE[name])


@pytest.mark.parametrize("name", SAME)
def test_each_filter_chooses_the_same(root: Path, api: Callable[..., Any], name: str) -> None:
    same = SAME[name]
    every = api(name, limit=MANY, **{key: value for key, value in same.requested.items() if key != "open"})["rows"]
    for option, (parameter, column) in same.options.items():
        values = sorted({value for row in every for value in str(row[column] or "").split(" ") if value})
        if option == "--member":  # a command refuses a member id that never had a session
            values = [value for value in values if api("members", member_id=value)["total"]]
        for value in values[:: max(1, len(values) - 1)]:
            requested = {key: text for key, text in same.requested.items() if (parameter, key) != ("at", "open")}
            shown, answered = both(root, api, name, [option, value], requested | {parameter: value})
            assert shown == answered, (option, value)


def test_several_values_of_a_filter_are_one_filter(root: Path, api: Callable[..., Any]) -> None:
    options = ["--health", "ok", "--health", "warning", "--state", "stable", "--state", "reconciling"]
    requested = {"health": "ok,warning", "state": "stable,reconciling", "sort": "cluster"}
    shown, answered = both(root, api, "groups", options, requested)
    assert shown == answered


def test_closed_findings_are_the_same_too(root: Path, api: Callable[..., Any]) -> None:
    shown, answered = both(root, api, "findings", ["--all"], {})
    assert shown == answered


def test_each_option_has_its_parameter_and_each_parameter_its_option_or_a_reason() -> None:
    assert set(SAME) | WITHOUT_COMMAND == set(LISTINGS)
    for name, same in SAME.items():
        assert options_of(name) - OF_ALL - {"--limit", "--watch"} == set(same.options), name
        taken = {parameter for parameter, _ in same.options.values()}
        assert taken | same.api_only == set(LISTINGS[name].parameters), name
        assert not taken & same.api_only, name


def test_one_rebalance_is_the_same(root: Path, api: Callable[..., Any]) -> None:
    for row in api("rebalances", since="0")["rows"][:3]:
        (explained,) = json_of(root, "explain", row["rebalance_id"])
        assert explained == api(f"rebalances/{row['rebalance_id']}")


def test_knowledge_of_a_cluster_is_the_same(root: Path, api: Callable[..., Any]) -> None:
    checked = run(root, "check", "--json")
    found = json.loads(checked.stdout)
    clusters = api("liveness")["clusters"]
    for state, name in (("recording", "recordings"), ("unknown", "blind")):
        assert found[name] == [cluster for cluster in clusters if cluster["state"] == state]


def test_an_owner_is_a_row_of_the_assignments(root: Path, api: Callable[..., Any]) -> None:
    for span in api("assignments", open="yes", limit="3")["rows"]:
        owners = json_of(root, "who-owned", span["topic"], str(max(0, span["queue_id"])), "-g", span["group_id"])
        assert span in [{name: row[name] for name in span} | {"instance_id": span["instance_id"]} for row in owners]


def test_answers_to_questions_are_the_same(root: Path, api: Callable[..., Any]) -> None:
    for name in ("open-findings", "main-causes", "causes-of-a-group", "idle-capacity"):
        assert json_of(root, "query", name) == api(f"questions/{name}")["rows"], name
