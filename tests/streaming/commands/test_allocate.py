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


def ask(*lines: object) -> tuple[list[dict], int]:
    """Write cases, as objects or as text; return what came back and the exit code."""
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
    assert answers[0]["error"] == {"code": "illegal_argument", "message": "virtual_nodes must not be negative, not -1"}
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


@pytest.mark.parametrize(
    ("library", "first"),
    [("java-2", "a"), ("java-2.3.1", "a"), ("java-2.4", "b"), ("java-4", "b"), ("java-" + "9" * 5_000, "b"), (3, "b")],
)
def test_a_library_is_read_as_far_as_it_tells(library: object, first: str) -> None:
    members = [
        {"member_id": "b", "instance_id": "i", "subscriptions": ["t"]},
        {"member_id": "a", "subscriptions": ["t"]},
    ]
    case = {"strategy": "kafka.range", "members": members, "topics": {"t": {"queue_count": 1}}}
    (answer,), _ = ask({**case, "settings": {"library": library}})
    assert [name for name, held in answer["assignments"].items() if held] == [first]


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


def test_a_setting_that_is_null_is_as_good_as_absent() -> None:
    members = [{"member_id": name, "strategies": ["range", "sticky"], "subscriptions": ["t"]} for name in "ab"]
    cases = [
        {**_CASE, "settings": {"share_number": None}},
        {"strategy": "kafka.vote", "members": members, "settings": {"tie_order": None}},
        {**_CASE, "strategy": "rocketmq.CONSISTENT_HASH", "settings": {"virtual_nodes": None}},
    ]
    bare = [{name: value for name, value in case.items() if name != "settings"} for case in cases]
    answers, code = ask(*cases, *bare)
    assert code == 0
    assert [{**answer, "id": 0} for answer in answers[:3]] == [{**answer, "id": 0} for answer in answers[3:]]


def test_a_generation_before_the_first_is_none_and_there_is_nothing_before_that() -> None:
    members = [{"member_id": "a", "generation": number} for number in (-1, -2)]
    answers, code = ask(*({"strategy": "kafka.sticky", "members": [member]} for member in members))
    assert [answer["error"] and answer["error"]["code"] for answer in answers] == [None, "cannot_be_read"]
    assert code == 1


def test_a_byte_order_mark_in_front_of_the_first_line_is_not_part_of_it() -> None:
    answers, code = ask("\ufeff" + json.dumps(_CASE), "\ufeff" + json.dumps(_CASE))
    assert [answer["error"] and answer["error"]["code"] for answer in answers] == [None, "cannot_be_read"]
    assert code == 1


@pytest.mark.parametrize("depth", [*range(900, 1001, 10), 100_000])
def test_what_is_nested_too_deeply_is_said_wherever_that_shows(depth: int) -> None:
    nested = "[" * depth + "]" * depth
    start = '"strategy":"rocketmq.CONFIG","members":[{"member_id":"x"}]'
    answers, code = ask(
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


def test_more_queues_than_fit_into_memory_are_refused_before_they_are_made() -> None:
    topics = {f"t{number}": {"queue_count": 100_000} for number in range(11)}
    (answer,), code = ask({**_CASE, "topics": topics})
    assert (answer["id"], answer["error"]["code"], code) == ("one", "cannot_be_read", 1)
    assert "1100000" in answer["error"]["message"]


def test_more_points_on_a_ring_than_fit_into_memory_are_refused_before_they_are_made() -> None:
    case = {**_CASE, "strategy": "rocketmq.CONSISTENT_HASH", "settings": {"virtual_nodes": 500_001}}
    (answer,), code = ask(case)
    assert (answer["error"]["code"], code) == ("illegal_setting", 0)


def test_a_wrong_setting_is_shown_in_short() -> None:
    (answer,), _ = ask({**_CASE, "strategy": "rocketmq.MACHINE_ROOM", "settings": {"rooms": "x" * 1_000_000}})
    assert len(answer["error"]["message"]) < 200


def test_a_queue_that_is_named_twice_is_one_queue() -> None:
    queues = [{"broker": "b", "queue_id": number} for number in (1, 0, 1, 0)]
    (answer,), _ = ask({**_CASE, "topics": {"t": {"queues": queues}}})
    held = {name: [queue["queue_id"] for queue in told] for name, told in answer["assignments"].items()}
    assert (held, [queue["queue_id"] for queue in answer["unassigned"]]) == ({"x": [0], "y": []}, [1])


def test_a_partition_of_kafka_under_two_brokers_is_one_partition() -> None:
    topics = {"t": {"queues": [{"broker": broker, "queue_id": number} for broker in "ab" for number in (0, 1)]}}
    members = [{"member_id": name, "subscriptions": ["t"]} for name in "xy"]
    (answer,), _ = ask({"strategy": "kafka.range", "members": members, "topics": topics})
    held = {name: [queue["queue_id"] for queue in told] for name, told in answer["assignments"].items()}
    assert (held, answer["unassigned"]) == ({"x": [0], "y": [1]}, [])


def test_a_configured_queue_without_a_broker_is_the_topics_own() -> None:
    queues = [{"topic": "t", "broker": "", "queue_id": 1}]
    (answer,), _ = ask({**_CASE, "strategy": "rocketmq.CONFIG", "settings": {"queues": queues}})
    assert answer["assignments"]["x"] == queues
    assert [queue["queue_id"] for queue in answer["unassigned"]] == [0, 2, 3, 4]


def test_partitions_that_do_not_count_from_zero_go_to_one_member_each() -> None:
    members = [
        {
            "member_id": "a",
            "subscriptions": ["t"],
            "owned": [{"topic": "t", "queue_id": 7}, {"topic": "t", "queue_id": 5}],
        },
        {"member_id": "b", "subscriptions": ["t"]},
    ]
    topics = {"t": {"queues": [{"queue_id": 5}, {"queue_id": 7}]}}
    (answer,), _ = ask({"strategy": "kafka.sticky", "members": members, "topics": topics})
    held = {name: [queue["queue_id"] for queue in told] for name, told in answer["assignments"].items()}
    assert held == {"a": [5], "b": [7]}


def test_a_partition_that_the_real_assignor_gives_a_member_twice_is_there_twice() -> None:
    # As kafka-clients 4.1.1 said: behind a claimed partition that is no more it takes what is claimed for unassigned.
    owned = [{"topic": "u", "queue_id": 1}, {"topic": "t", "queue_id": 5}]
    members = [
        {"member_id": "a", "subscriptions": ["t", "u"], "owned": owned, "generation": 1},
        {"member_id": "b", "subscriptions": ["t", "u"]},
    ]
    topics = {"t": {"queue_count": 3}, "u": {"queue_count": 3}}
    (answer,), _ = ask({"strategy": "kafka.sticky", "members": members, "topics": topics})
    held = {name: [(q["topic"], q["queue_id"]) for q in told] for name, told in answer["assignments"].items()}
    assert held == {"a": [("t", 0), ("t", 5), ("u", 1), ("u", 1)], "b": [("t", 1), ("t", 2), ("u", 0), ("u", 2)]}


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
def test_what_is_for_people_alone_does_not_wait_for_cases(arguments: tuple[str, ...]) -> None:
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert arguments[0] in refused.stderr
