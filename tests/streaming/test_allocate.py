"""The command `allocate`."""

import json

from typer.testing import CliRunner, Result

from streaming.commands.app import app

_CASE = {
    "id": "one",
    "strategy": "rocketmq.AVG",
    "members": [{"member_id": "x", "subscriptions": ["t"]}, {"member_id": "y"}],
    "topics": {"t": {"queue_count": 5}},
}


def ask(*lines: object) -> tuple[list[dict], int]:
    """Write cases, as objects or as text; answer what came back and the exit code."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    result = CliRunner().invoke(app, ["allocate"], input=text)
    return [json.loads(line) for line in result.stdout.splitlines()], result.exit_code


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["allocate", *arguments])


def test_a_case_is_answered_under_its_id_with_owners_and_unassigned_queues() -> None:
    queues = [{"topic": "t", "broker": None, "queue_id": number} for number in range(5)]
    assert ask(_CASE) == (
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


def test_what_cannot_be_read_is_said_under_its_line_and_the_run_goes_on() -> None:
    answers, code = ask("nonsense", "", {**_CASE, "members": 3}, {"strategy": "kafka.range"})
    assert [(answer["id"], answer["error"] and answer["error"]["code"]) for answer in answers] == [
        (1, "cannot_be_read"),
        ("one", "cannot_be_read"),
        (4, None),
    ]
    assert code == 1


def test_a_strategys_own_error_does_not_change_the_exit_code() -> None:
    case = {**_CASE, "strategy": "rocketmq.CONSISTENT_HASH", "settings": {"virtual_nodes": -1}}
    answers, code = ask(case, {**_CASE, "strategy": "nobody.knows"})
    assert answers[0]["error"] == {"code": "illegal_argument", "message": "illegal virtualNodeCnt :-1"}
    assert answers[0]["assignments"] == {}
    assert answers[1]["error"]["code"] == "unknown_strategy"
    assert code == 0


def test_a_vote_answers_with_the_qualified_winner_and_its_assignments() -> None:
    members = [{"member_id": name, "strategies": ["roundrobin", "range"], "subscriptions": ["t"]} for name in "ab"]
    (answer,), code = ask({"strategy": "kafka.vote", "members": members, "topics": {"t": {"queue_count": 3}}})
    assert answer["strategy"] == "kafka.roundrobin"
    assert [queue["queue_id"] for queue in answer["assignments"]["a"]] == [0, 2]
    assert code == 0


def test_a_vote_over_nobody_is_an_answer() -> None:
    (answer,), code = ask({"strategy": "kafka.vote"})
    assert (answer["error"]["code"], code) == ("no_members", 0)


def test_the_order_of_members_before_static_membership_is_a_setting() -> None:
    members = [
        {"member_id": "b", "instance_id": "i", "subscriptions": ["t"]},
        {"member_id": "a", "subscriptions": ["t"]},
    ]
    case = {"strategy": "kafka.range", "members": members, "topics": {"t": {"queue_count": 1}}}
    answers, _ = ask(
        case, {**case, "settings": {"library": "java-2.2"}}, {**case, "settings": {"library": "librdkafka"}}
    )
    assert [next(name for name, held in answer["assignments"].items() if held) for answer in answers] == ["b", "a", "a"]


def test_the_leaders_library_counts_where_no_setting_tells() -> None:
    members = [
        {"member_id": "b", "client_library": "java-2.2", "instance_id": "i", "subscriptions": ["t"]},
        {"member_id": "a", "client_library": "java-4.1", "subscriptions": ["t"]},
    ]
    (answer,), _ = ask({"strategy": "kafka.range", "members": members, "topics": {"t": {"queue_count": 1}}})
    assert answer["assignments"]["b"] == []


def test_two_members_of_one_id_are_two_connections_that_take_one_slice() -> None:
    members = [{"member_id": name, "subscriptions": ["t"]} for name in ("a", "a", "b")]
    (answer,), _ = ask({"strategy": "rocketmq.AVG", "members": members, "topics": {"t": {"queue_count": 3}}})
    held = {name: [queue["queue_id"] for queue in queues] for name, queues in answer["assignments"].items()}
    assert (held, [queue["queue_id"] for queue in answer["unassigned"]]) == ({"a": [0], "b": [2]}, [1])


def test_message_mode_leaves_no_queue_unassigned() -> None:
    (answer,), _ = ask({**_CASE, "settings": {"share_number": -1}})
    assert [queue["queue_id"] for queue in answer["assignments"]["x"]] == [-1]
    assert answer["unassigned"] == []


def test_a_table_shows_what_each_member_gets() -> None:
    shown = run("--strategy", "rocketmq.AVG", "--queues", "8", "--members", "3")
    assert shown.exit_code == 0
    assert [line.split()[1:] for line in shown.stdout.splitlines()[1:4]] == [["3", "0–2"], ["3", "3–5"], ["2", "6–7"]]


def test_the_comparison_tells_spread_idle_members_and_moves_of_every_strategy() -> None:
    shown = run("--all", "--queues", "8", "--members", "3", "--before", "2", "--json")
    rows = {row["strategy"]: row for row in map(json.loads, shown.stdout.splitlines())}
    assert len(rows) == 15
    assert rows["rocketmq.AVG"]["queues_moved"] == 3
    assert rows["kafka.sticky"]["queues_moved"] == 2
    assert rows["kafka.cooperative-sticky"] == {**rows["kafka.sticky"], "strategy": "kafka.cooperative-sticky"}


def test_every_mistake_in_the_arguments_is_named_at_once() -> None:
    refused = run("--strategy", "x", "--before", "-", "--queues", "1")
    assert refused.exit_code == 2
    assert all(word in refused.stderr for word in ("--members", "--strategy", "--before"))
