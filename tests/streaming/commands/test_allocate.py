"""The command `allocate`."""

import json

import pytest
from typer.testing import CliRunner, Result

from streaming.commands.app import app

_CASE = {
    "id": "one",
    "strategy": "rocketmq.AVG",
    "members": [{"member_id": "x", "subscriptions": ["t"]}, {"member_id": "y"}],
    "topics": {"t": {"queue_count": 5}},
}


def answers_to(*lines: object) -> tuple[list[dict], int]:
    """Write cases, as objects or as text; return what came back and the exit code."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    result = CliRunner().invoke(app, ["allocate"], input=text)
    return [json.loads(line) for line in result.stdout.splitlines()], result.exit_code


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["allocate", *arguments])


def test_a_case_is_answered_under_its_id_with_owners_and_unassigned_queues() -> None:
    queues = [{"topic": "t", "broker": None, "queue_id": number} for number in range(5)]
    assert answers_to(_CASE) == (
        [
            {
                "id": "one",
                "strategy": "rocketmq.AVG",
                "assignments": {"x": queues[:3], "y": []},
                "unassigned": queues[3:],
                "error": None,
            }
        ],
        0,
    )


def test_an_unreadable_case_is_an_error_under_its_line_and_the_run_continues() -> None:
    answers, code = answers_to("nonsense", "", {**_CASE, "members": 3}, {"strategy": "kafka.range"})
    assert [(answer["id"], answer["error"] and answer["error"]["code"]) for answer in answers] == [
        (1, "cannot_be_read"),
        ("one", "cannot_be_read"),
        (4, None),
    ]
    assert code == 1


def test_a_strategys_own_error_does_not_change_the_exit_code() -> None:
    case = {**_CASE, "strategy": "rocketmq.CONSISTENT_HASH", "settings": {"virtual_nodes": -1}}
    answers, code = answers_to(case, {**_CASE, "strategy": "no.strategy"})
    assert answers[0]["error"] == {"code": "illegal_argument", "message": "virtual_nodes must not be negative, not -1"}
    assert answers[0]["assignments"] == {}
    assert answers[1]["error"]["code"] == "unknown_strategy"
    assert code == 0


def test_a_table_shows_what_each_member_gets() -> None:
    shown = run("--strategy", "rocketmq.AVG", "--queues", "8", "--members", "3")
    assert shown.exit_code == 0
    assert [line.split()[1:] for line in shown.stdout.splitlines()[1:4]] == [["3", "0–2"], ["3", "3–5"], ["2", "6–7"]]


def test_the_comparison_shows_spread_idle_members_and_moves_of_every_strategy() -> None:
    shown = run("--all", "--queues", "8", "--members", "3", "--before", "2", "--json")
    rows = {row["strategy"]: row for row in map(json.loads, shown.stdout.splitlines())}
    assert len(rows) == 15
    assert rows["rocketmq.AVG"]["queues_moved"] == 3
    assert rows["kafka.sticky"]["queues_moved"] == 2
    assert rows["kafka.cooperative-sticky"] == {**rows["kafka.sticky"], "strategy": "kafka.cooperative-sticky"}


def test_json_has_numbers_of_queues_and_the_moves_with_the_summary() -> None:
    shown = run("--strategy", "rocketmq.AVG", "--queues", "5", "--members", "2", "--before", "3", "--json")
    *members, summary = map(json.loads, shown.stdout.splitlines())
    assert [(row["topic"], row["queues"], row["queue_ids"]) for row in members] == [
        ("topic", 3, [0, 1, 2]),
        ("topic", 2, [3, 4]),
    ]
    assert summary == {
        "strategy": "rocketmq.AVG",
        "spread": 1,
        "idle_members": 0,
        "unassigned_queues": 0,
        "queues_moved": 2,
        "moves": [
            {"topic": "topic", "queue_id": 2, "before": "room1@2", "after": "room1@1"},
            {"topic": "topic", "queue_id": 4, "before": "room1@3", "after": "room1@2"},
        ],
    }


def test_json_without_a_size_before_has_no_moves_and_each_topic_has_its_row() -> None:
    shown = run("--strategy", "kafka.range", "--queues", "1", "--members", "2", "--topics", "2", "--json")
    *members, summary = map(json.loads, shown.stdout.splitlines())
    assert [(row["topic"], row["queue_ids"]) for row in members] == [
        ("topic-0", [0]),
        ("topic-1", [0]),
        ("topic-0", []),
        ("topic-1", []),
    ]
    assert (summary["queues_moved"], summary["moves"]) == (None, None)


@pytest.mark.parametrize(("given", "meant"), [("AVG", "rocketmq.AVG"), ("kafka.rnge", "kafka.range"), ("zzz", "--all")])
def test_a_strategy_that_there_is_not_is_suggested(given: str, meant: str) -> None:
    refused = run("--strategy", given, "--queues", "1", "--members", "1")
    assert (refused.exit_code, meant in refused.stderr) == (2, True)
    (answer,), _ = answers_to({**_CASE, "strategy": given})
    assert ("did you mean" in answer["error"]["message"]) == (given != "zzz")


def test_every_mistake_in_the_arguments_is_named_at_once() -> None:
    refused = run("--strategy", "x", "--before", "-", "--queues", "1")
    assert refused.exit_code == 2
    assert all(part in refused.stderr for part in ("--members", "--strategy", "--before"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("--all", "--queues", "1000001", "--members", "2"),
        ("--all", "--queues", "1001", "--topics", "1000", "--members", "2"),
        ("--strategy", "rocketmq.AVG", "--queues", "8", "--members", "10001"),
        ("--strategy", "rocketmq.AVG", "--queues", "8", "--members", "2", "--before", "2,1000001"),
    ],
)
def test_a_size_that_does_not_fit_into_memory_is_refused(arguments: tuple[str, ...]) -> None:
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert "at most" in refused.stderr


@pytest.mark.parametrize(
    "arguments", [("--queues", "0"), ("--topics", "2"), ("--json",), ("--before", "2"), ("--members", "3")]
)
def test_tables_for_people_do_not_wait_for_cases(arguments: tuple[str, ...]) -> None:
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert arguments[0] in refused.stderr


@pytest.mark.parametrize("depth", [*range(900, 1001, 10), 100_000])
def test_too_deep_nesting_is_an_error_wherever_it_shows(depth: int) -> None:
    nested = "[" * depth + "]" * depth
    start = '"strategy":"rocketmq.CONFIG","members":[{"member_id":"x"}]'
    answers, code = answers_to(
        f'{{"id":{nested},{start}}}',
        f'{{"id":"s",{start},"settings":{{"queues":{nested}}}}}',
        f'{{"id":"s",{start},"settings":{{"share_number":{nested}}}}}',
        _CASE,
    )
    assert len(answers) == 4
    assert answers[3]["error"] is None
    failed = [answer for answer in answers if answer["error"] and answer["error"]["code"] == "cannot_be_read"]
    assert code == (1 if failed else 0)
    assert all(answer["error"]["message"] for answer in failed)
