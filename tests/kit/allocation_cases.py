"""Random questions to strategies, hostile on purpose, in the form of ``allocate``'s input."""

import random
from typing import Any

# Ids that are prefixes of each other, that leave ASCII and the first plane, and that share one String.hashCode.
_AWKWARD = ["a", "aa", "aaa", "a-1", "10.0.0.1@1", "10.0.0.1@12", "10.0.0.10@3", "10.0.0.2@2", "é", "日本", "日本語"]
_AWKWARD += ["\U0001f600", "\U0001f600x", "\uffee", "\U00010000", "ﬁ", " ", "x y", "%41", "+", "!"]
_RACKS = ["r1", "r2", "r3"]
_ROOMS = ["room1", "room2", "room3"]
CHAINED = ("kafka.cooperative-sticky", "kafka.server.uniform", "kafka.sticky")
CHAIN_STEPS = 6

Case = dict[str, Any]


def colliding_ids(rng: random.Random, count: int) -> list[str]:
    """Return ids with one hash code: more than eight make a tree of a HashMap's slot."""
    found: set[str] = set()
    while len(found) < count:
        found.add("".join(rng.choice(("Aa", "BB")) for _ in range(7)))
    return rng.sample(sorted(found), count)


def member_ids(rng: random.Random, most: int = 14) -> list[str]:
    """Return distinct ids in a random order."""
    count = rng.choice((1, 1, 2, 2, 3, 4, 5, rng.randint(1, most)))
    style = rng.random()
    if style < 0.3:
        return rng.sample(_AWKWARD, min(count, len(_AWKWARD)))
    if style < 0.4:
        ids = [f"c{number}" for number in range(rng.choice((count, 13, 25, 49, 70)))]
        ids += colliding_ids(rng, rng.choice((2, 9, 12, 20)))
        rng.shuffle(ids)
        return ids[: rng.choice((count, len(ids)))]
    if style < 0.7:
        return [f"consumer-{rng.randrange(10)}-{rng.getrandbits(64):016x}" for _ in range(count)]
    ids = [f"c{number}" for number in range(count)]
    rng.shuffle(ids)
    return ids


def random_case(rng: random.Random, strategy: str) -> Case:
    """Return one question to a strategy."""
    if strategy == "kafka.vote":
        return _vote(rng)
    system = strategy.split(".", 1)[0]
    if system == "kafka":
        return _kafka(rng, strategy)
    return _with_brokers(rng, strategy, system)


def next_case(rng: random.Random, case: Case, held: dict[str, list[tuple[str, str, int]]]) -> Case:
    """Return the question after a change of the group: join, leave, growth, subscription; ``held`` is owned now."""
    generation = 1 + max((member.get("generation") or 0 for member in case["members"]), default=0)
    topics = {name: dict(topic) for name, topic in case["topics"].items()}
    members = []
    for member in case["members"]:
        owned = [{"topic": topic, "queue_id": number} for topic, _, number in held.get(member["member_id"], ())]
        members.append({**member, "owned": owned, "generation": generation})
    change = rng.random()
    if change < 0.3 and len(members) > 1:
        for _ in range(rng.choice((1, 1, 2))):
            if len(members) > 1:
                members.pop(rng.randrange(len(members)))
    elif change < 0.6:
        for _ in range(rng.choice((1, 1, 3))):
            subscriptions = rng.choice(members)["subscriptions"]
            members.append({**_member(rng, f"new-{rng.getrandbits(32):08x}"), "subscriptions": subscriptions})
    elif change < 0.8 and topics:
        name = rng.choice(sorted(topics))
        topics[name] = _kafka_topic(rng, rng.randint(_count(topics[name]), _count(topics[name]) + 5))
    else:
        member = rng.choice(members)
        member["subscriptions"] = _some(rng, sorted(topics))
    if rng.random() < 0.15:
        # A member that missed a generation, or claims what another one owns.
        member = rng.choice(members)
        member["generation"] = rng.choice((None, generation - 1, generation))
        other = rng.choice(members)
        member["owned"] = [*member.get("owned", []), *other.get("owned", [])[:2]]
        if not member["owned"]:
            del member["owned"]
    return {**case, "members": members, "topics": topics}


def _count(topic: dict[str, Any]) -> int:
    return topic["queue_count"] if "queue_count" in topic else len(topic["queues"])


def _vote(rng: random.Random) -> Case:
    choices = ["range", "roundrobin", "sticky", "cooperative-sticky", "custom", "x", "Aa", "BB", "a.b", "streams"]
    pool = rng.sample(choices, rng.randint(1, len(choices)))
    shared = rng.sample(pool, rng.randint(0, len(pool)))
    members = []
    for member_id in member_ids(rng, 6)[:9]:
        names = list(dict.fromkeys([*shared, *rng.sample(pool, rng.randint(0, len(pool)))]))
        rng.shuffle(names)
        members.append({"member_id": member_id, "strategies": names})
    return {"strategy": "kafka.vote", "group": "g", "members": members, "topics": {}}


def _some(rng: random.Random, names: list[str]) -> list[str]:
    return rng.sample(names, rng.randint(0, len(names)))


def _member(rng: random.Random, member_id: str) -> dict[str, Any]:
    return {"member_id": member_id}


def _kafka_topic(rng: random.Random, count: int, racks: bool | None = None) -> dict[str, Any]:
    if racks is None:
        racks = rng.random() < 0.3
    if not racks:
        return {"queue_count": count}
    replicas = rng.choice((1, 2, 3))
    return {"queues": [{"queue_id": number, "racks": rng.sample(_RACKS, replicas)} for number in range(count)]}


def _kafka(rng: random.Random, strategy: str) -> Case:
    names = rng.sample(["t", "t0", "t1", "t10", "t2", "topic.a", "topic_b", "Z", "Aa", "BB"], rng.randint(1, 5))
    racks = rng.random() < 0.35
    most = rng.choice((1, 3, 8, 8, 20, 40))
    topics = {name: _kafka_topic(rng, rng.randint(0, most), racks) for name in names}
    if rng.random() < 0.3:
        # Topics of one size are assigned together where racks count.
        for name in names:
            topics[name] = _kafka_topic(rng, most, racks)
    names = [*names, *rng.sample(["missing", "gone"], rng.choice((0, 0, 1)))]
    same = _some(rng, names) or names
    mixed = rng.random() < 0.5
    members = []
    for member_id in member_ids(rng):
        member = _member(rng, member_id)
        member["subscriptions"] = _some(rng, names) if mixed else rng.sample(same, len(same))
        if racks and rng.random() < 0.8:
            member["rack"] = rng.choice([*_RACKS, "r9", ""])
        if rng.random() < 0.25:
            member["instance_id"] = f"i-{rng.choice(_AWKWARD)}-{len(members)}"
        members.append(member)
    case: Case = {"strategy": strategy, "group": "g", "members": members, "topics": topics}
    if strategy in CHAINED and rng.random() < 0.4:
        deleted = strategy != "kafka.server.uniform" and rng.random() < 0.3
        _claim(rng, members, topics, deleted=deleted)
    if strategy == "kafka.server.uniform" and rng.random() < 0.2:
        for topic in topics.values():
            topic["topic_id"] = _topic_id(rng)
    return case


def _topic_id(rng: random.Random) -> str:
    import base64

    return base64.urlsafe_b64encode(rng.randbytes(16)).decode().rstrip("=")


def _claim(
    rng: random.Random, members: list[dict[str, Any]], topics: dict[str, dict[str, Any]], *, deleted: bool
) -> None:
    """Let members own what they like: twice claimed, of other topics, of older generations, gone with their topic."""
    queues = [
        {"topic": name, "queue_id": number} for name, topic in sorted(topics.items()) for number in range(_count(topic))
    ]
    queues.append({"topic": "unknown", "queue_id": 0})
    if deleted:
        # A topic that was deleted and made anew has fewer partitions than members remember.
        queues += [{"topic": name, "queue_id": _count(topic) + 1} for name, topic in sorted(topics.items())]
    for member in members:
        if rng.random() < 0.8:
            member["owned"] = rng.sample(queues, rng.randint(0, min(len(queues), 12)))
            member["generation"] = rng.choice((3, 3, 3, 2, 1, None))
            if member["generation"] is None:
                del member["generation"]


def _with_brokers(rng: random.Random, strategy: str, system: str) -> Case:
    brokers = rng.sample(
        [
            "broker-a",
            "broker-b",
            "room1@broker-a",
            "room2@broker-b",
            "room3@b",
            "room1@",
            "@x",
            "a@b@c",
            "é",
            "\U0001f600",
            "",
        ],
        rng.randint(1, 4),
    )
    if strategy.startswith("rocketmq.MACHINE_ROOM") and rng.random() < 0.8:
        brokers = rng.sample([f"{room}@b{number}" for room in _ROOMS for number in (1, 2)], rng.randint(1, 4))
    topics: dict[str, Any] = {}
    for name in rng.sample(["TopicA", "T", "T1", "T10", "%RETRY%g", "é"], rng.randint(1, 3)):
        if rng.random() < 0.3:
            topics[name] = {"queue_count": rng.choice((0, 1, 5, 8, 12))}
        else:
            queues = [
                {"broker": broker, "queue_id": number} for broker in brokers for number in range(rng.randint(0, 7))
            ]
            rng.shuffle(queues)
            topics[name] = {"queues": queues}
    ids = member_ids(rng)
    if strategy == "rocketmq.MACHINE_ROOM_NEARBY" and rng.random() < 0.7:
        ids = [f"{rng.choice(_ROOMS)}@{member_id}" for member_id in ids]
    if "consistent" in strategy.lower():
        # The real classes make a ring for each member and topic: large groups take them seconds.
        ids = ids[: 8 if system == "metaq" else 16]
    if rng.random() < 0.2:
        ids += rng.sample(ids, rng.randint(1, len(ids)))
    subscriptions: dict[str, list[str]] = {}
    for member_id in ids:
        names = [*topics, "missing"]
        subscriptions.setdefault(member_id, _some(rng, names) if rng.random() < 0.3 else list(topics))
    members = [{"member_id": member_id, "subscriptions": subscriptions[member_id]} for member_id in ids]
    settings = _settings(rng, strategy, ids, brokers, topics)
    return {"strategy": strategy, "group": "g", "members": members, "topics": topics, "settings": settings}


def _settings(
    rng: random.Random, strategy: str, ids: list[str], brokers: list[str], topics: dict[str, Any]
) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if strategy == "rocketmq.MACHINE_ROOM_NEARBY":
        if rng.random() < 0.7:
            settings["inner"] = rng.choice(
                ("rocketmq.AVG", "rocketmq.AVG_BY_CIRCLE", "rocketmq.CONSISTENT_HASH", "rocketmq.MACHINE_ROOM")
            )
        for name, keys in (("broker_rooms", brokers), ("member_rooms", ids)):
            if rng.random() < 0.4:
                settings[name] = {key: rng.choice(_ROOMS) for key in keys if rng.random() < 0.97}
    if "CONSISTENT_HASH" in (strategy + str(settings.get("inner"))) and rng.random() < 0.5:
        settings["virtual_nodes"] = rng.choice((0, 1, 2, 10, 33, -1 if rng.random() < 0.1 else 3))
    if "rocketmq.MACHINE_ROOM" in (strategy, settings.get("inner")) and rng.random() < 0.9:
        settings["rooms"] = rng.sample([*_ROOMS, ""], rng.randint(0, 3))
    if strategy == "rocketmq.CONFIG" and rng.random() < 0.9:
        queues = [
            {"topic": name, "broker": rng.choice(brokers), "queue_id": rng.randrange(9)}
            for name in rng.choices([*topics], k=rng.randint(0, 6))
        ]
        if rng.random() < 0.5:
            settings["queues"] = queues
        else:
            settings["queues"] = {member_id: queues[place % 3 :] for place, member_id in enumerate(ids[:-1])}
    return settings
