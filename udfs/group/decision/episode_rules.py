"""Core: which rebalances of a group are one story, an episode, and what causes it. No I/O.

A group remembers its newest rebalances by their causes. Each rebalance is compared with them as it is decided, by the
first rule that holds; ``_RULES`` has their order. A rule returns the rebalances that belong together, always with the
newest one. They become an episode, or belong to the one that some of them are part of, whose kind may change to one
that is earlier in that order. Rebalances that no rule ties together are no episode.

=====================  ================================================================================================
``topic_discovered``   several members found one new or grown topic, each in a rebalance
``periodic``           four beats of one cause and one client at a period that clients have by their settings, and its
                       departures are not expiries of its session
``same_client_again``  one client came back twice while no other client joined, or three times
``rolling_deploy``     two clients left and came back, or were replaced by others with their prefix, each once and few
                       at a time; three, if not all of them left by their own request
``scaling``            three clients of one prefix joined in several rebalances, or left, and nothing else happened
``periodic``           as above, of any cause and at any period, with more beats if it is short
=====================  ================================================================================================

But for beats, rebalances that a rule ties together are never further apart than ``_TIED_MS``, or less. An episode is
over at ``Episode.closes_at``, which a timer evaluates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from udfs.group.decision.episode_roots import members_of, prefix_of
from udfs.group.state.episodes import LEAST_SILENCE_MS, Culprit, Deed, Episode, Root, RootClient
from udfs.group.state.view import GroupView
from udfs.model.episode_changed import EpisodeKind
from udfs.model.journal import TRIGGER_ORDER
from udfs.model.systems import POLL_INTERVAL

_TIED_MS = LEAST_SILENCE_MS
_DEPLOY_TIED_MS = 180_000
_SCALING_TIED_MS = 300_000
# A deploy replaces a quarter of the clients at once, at most; or one.
_AWAY_AT_ONCE = 4
# A second deploy begins at least this long after the first; clients that come back sooner are no second deploy.
_BETWEEN_DEPLOYS_MS = 60_000
_BEATS, _SHORT_BEATS, _SHORT_MS, _LEAST_PERIOD_MS = 4, 6, 60_000, 10_000
_JITTER, _JITTER_MS = 0.01, 1_000
COME_OR_GO = Deed.JOINED | Deed.DEPARTED


class Tied(NamedTuple):
    """Rebalances that belong together, oldest first, and what causes them."""

    kind: EpisodeKind
    roots: Sequence[Root]
    culprit: Culprit
    returns: int = 0
    period_ms: int | None = None
    period_of: Sequence[str] = ()
    has_joined: bool = False


class _Case(NamedTuple):
    """The newest rebalance with those that a rule may tie to it, oldest first and without it."""

    view: GroupView
    newest: Root
    earlier: Sequence[Root]
    named: Mapping[int, Culprit]
    episodes: Sequence[Episode]


def tied_to(
    view: GroupView, newest: Root, former: Sequence[Root], named: Mapping[int, Culprit], episodes: Sequence[Episode]
) -> Tied | None:
    ranks = {episode.number: _rank(episode) for episode in episodes}
    for rank, rule in enumerate(_RULES):
        # What belongs to an episode that is over, or has a better explanation, is explained already.
        earlier = [
            root for root in former if not root.follows and (not root.episode or ranks.get(root.episode, -1) >= rank)
        ]
        tied = rule(_Case(view, newest, earlier, named, episodes))
        if tied is not None and len(tied.roots) > 1:
            return tied
    return None


def _rank(episode: Episode) -> int:
    if episode.kind == "periodic":
        return 1 if episode.period_of and episode.culprit.client is not None else len(_RULES) - 1
    return ("topic_discovered", "", "same_client_again", "rolling_deploy", "scaling").index(episode.kind)


def _tied_back(case: _Case, belongs: Callable[[Root], bool], gap_ms: int = _TIED_MS) -> list[Root]:
    """Return the newest rebalances that belong, oldest first, up to the first longer gap between two of them."""
    found = [case.newest]
    for root in reversed(case.earlier):
        if root.at < found[-1].at - gap_ms:
            break
        if belongs(root):
            found.append(root)
    return found[::-1]


def _topic_discovered(case: _Case) -> Tied | None:
    for topic in case.newest.topics:
        roots = _tied_back(case, lambda root, topic=topic: topic in root.topics)  # type: ignore[misc]
        finders = {client.mark for root in roots for client in root.clients if client.deeds & Deed.SUBSCRIBED}
        if len(finders) > 1:
            return Tied("topic_discovered", roots, Culprit(topic=topic), len(finders))
    return None


def _same_client_again(case: _Case) -> Tied | None:
    for client in case.newest.clients:
        mark = client.mark
        if not client.deeds & COME_OR_GO or mark not in case.named:
            continue
        roots = _tied_back(case, lambda root, mark=mark: _deeds_of(root, mark) != 0)  # type: ignore[misc]
        deeds = [_deeds_of(root, mark) for root in roots]
        returns = _returns(deeds)
        if returns < 2 or any(deed & Deed.SHARED for deed in deeds):
            continue
        others = [root for root in case.earlier if root.at >= roots[0].at]
        if returns > 2 or not any(
            root.is_planned or (other.mark != mark and other.deeds & Deed.JOINED)
            for root in [*others, case.newest]
            for other in root.clients
        ):
            return Tied("same_client_again", roots, case.named[mark], returns)
    return None


def _deeds_of(root: Root, mark: int) -> int:
    return next((client.deeds for client in root.clients if client.mark == mark), 0)


def _returns(deeds: Iterable[int]) -> int:
    """Return how often a client came back: it had departed before, or its former member was still present."""
    returns, is_known = 0, False
    for deed in deeds:
        is_known |= bool(deed & Deed.DEPARTED)
        returns += bool(deed & Deed.JOINED and (is_known or deed & Deed.BESIDE))
        is_known |= bool(deed & Deed.JOINED and deed & Deed.BESIDE)
    return returns


def _rolling_deploy(case: _Case) -> Tied | None:
    for prefix, culprit in _prefixes(case):
        roots: list[Root] = []
        joined, departed, unclaimed, all_ghosts = set[int](), set[int](), set[int](), set[int]()
        left_by_request, last_at = True, case.newest.at
        for root in (case.newest, *reversed(case.earlier)):
            if root.at < last_at - _DEPLOY_TIED_MS:
                break
            mine = _of_prefix(root, prefix)
            if not mine:
                continue
            come = {client.mark for client in mine if client.deeds & Deed.JOINED}
            gone = {client.mark for client in mine if client.deeds & Deed.DEPARTED}
            ghosts = {client.mark for client in mine if client.deeds & Deed.GHOST}
            if come & joined or gone & departed or come & (departed - joined - gone - all_ghosts):
                break  # the same client again
            if root.episode and _joined_in(case, root.episode) & unclaimed:
                break  # they have joined in that deploy already
            joined |= come
            departed |= gone
            unclaimed |= set() if root.episode else come | gone
            left_by_request &= all(client.deeds & Deed.LEFT for client in mine if client.mark in gone - ghosts)
            last_at = root.at
            roots.append(root)
            all_ghosts |= {client.mark for client in root.clients if client.deeds & Deed.GHOST}
        roots.reverse()
        restarted = joined & departed
        clients = len(restarted) + min(len(joined - restarted), len(departed - restarted))
        if (clients > 2 or (clients > 1 and left_by_request)) and _is_in_order(case, roots, prefix):
            tied = Tied("rolling_deploy", roots, culprit, clients)
            if not _is_too_soon(case, tied):
                return tied
    return None


def _of_prefix(root: Root, prefix: int) -> list[RootClient]:
    return [client for client in root.clients if client.prefix == prefix and client.deeds & COME_OR_GO]


def _is_in_order(case: _Case, roots: Iterable[Root], prefix: int) -> bool:
    """Return whether few clients at once were away, or more than before, as a deploy replaces them step by step."""
    most = max(1, len(case.view.group.members) // _AWAY_AT_ONCE)
    away = 0
    for root in roots:
        mine = _of_prefix(root, prefix)
        come = sum(bool(client.deeds & Deed.JOINED) for client in mine)
        gone = sum(bool(client.deeds & Deed.DEPARTED) for client in mine)
        away += gone - come
        if max(abs(away), min(come, gone)) > most:
            return False
    return True


def _joined_in(case: _Case, number: int) -> set[int]:
    return {
        client.mark
        for root in case.earlier
        if root.episode == number
        for client in root.clients
        if client.deeds & Deed.JOINED
    }


def _is_too_soon(case: _Case, tied: Tied) -> bool:
    """Return whether it would be a second deploy right after another: then clients do not stay."""
    if any(root.episode for root in tied.roots):
        return False
    return any(
        episode.kind == "rolling_deploy"
        and episode.culprit.mark == tied.culprit.mark
        and tied.roots[0].at < episode.last_at + max(_BETWEEN_DEPLOYS_MS, 2 * episode.gap_ms)
        for episode in case.episodes
    )


def _scaling(case: _Case) -> Tied | None:
    for prefix, culprit in _prefixes(case):
        way = _way(case.newest, prefix)
        if way is None:
            continue
        roots, clients = [case.newest], {client.mark for client in case.newest.clients}
        for root in reversed(case.earlier):
            marks = {client.mark for client in root.clients}
            if root.at < roots[-1].at - _SCALING_TIED_MS or _way(root, prefix) != way or marks & clients:
                break
            roots.append(root)
            clients |= marks
        if len(clients) > 2:
            joined = way == Deed.JOINED
            return Tied("scaling", roots[::-1], culprit, len(clients), has_joined=joined)
    return None


def _way(root: Root, prefix: int) -> int | None:
    """Return whether all clients of a rebalance, all of one prefix, joined or left; None if neither."""
    for way in (Deed.JOINED, Deed.DEPARTED | Deed.LEFT):
        if root.clients and all(
            client.prefix == prefix and client.deeds & (COME_OR_GO | Deed.LEFT | Deed.BESIDE) == way
            for client in root.clients
        ):
            return way
    return None


def _prefixes(case: _Case) -> list[tuple[int, Culprit]]:
    found: dict[int, Culprit] = {}
    for client in case.newest.clients:
        if client.deeds & COME_OR_GO and client.mark in case.named:
            prefix = prefix_of(case.named[client.mark].client)
            found.setdefault(client.prefix, Culprit(client.prefix, prefix=prefix or None))
    return list(found.items())


def _periodic_by_setting(case: _Case) -> Tied | None:
    """Return beats of one client at the period of a setting, if it departs by itself."""
    for client in case.newest.clients:
        mark = client.mark
        if mark not in case.named or _deeds_of(case.newest, mark) & Deed.SHARED:
            continue
        roots = [root for root in (*case.earlier, case.newest) if _deeds_of(root, mark)]
        deeds = [_deeds_of(root, mark) for root in roots]
        if any(deed & Deed.DEPARTED and not deed & Deed.LEFT for deed in deeds):
            continue
        found = _beats(case, [root for root in roots if root.kind == case.newest.kind], mark)
        if found is not None and found.period_of:
            begin = found.roots[0].at
            return found._replace(roots=[root for root in roots if root.at >= begin])
    return None


def _periodic(case: _Case) -> Tied | None:
    return _beats(case, [root for root in (*case.earlier, case.newest) if root.kind == case.newest.kind], None)


def _beats(case: _Case, roots: Sequence[Root], mark: int | None) -> Tied | None:
    """Return the newest beats if they come at a fixed period."""
    beats = roots[-_BEATS:]
    gaps = [later.at - root.at for root, later in pairwise(beats)]
    if len(beats) < _BEATS or min(gaps) < _LEAST_PERIOD_MS:
        return None
    period = sum(gaps) / len(gaps)
    if period < _SHORT_MS:
        beats = roots[-_SHORT_BEATS:]
        gaps = [later.at - root.at for root, later in pairwise(beats)]
    tolerance = max(_JITTER * period, _JITTER_MS)
    if (period < _SHORT_MS and len(beats) < _SHORT_BEATS) or any(abs(gap - period) > tolerance for gap in gaps):
        return None
    marks = [{client.mark for client in root.clients} for root in beats]
    common = set.intersection(*marks)
    if mark is None and len(common) == 1:
        mark = next(iter(common))
    culprit = Culprit() if mark is None else case.named.get(mark, Culprit())
    return Tied("periodic", beats, culprit, 0, round(period), _period_of(case, round(period), beats, culprit))


def _period_of(case: _Case, period: int, beats: Sequence[Root], culprit: Culprit) -> list[str]:
    """Return the settings that have this period and may cause such rebalances; one that the causes name is alone."""
    kind = TRIGGER_ORDER[case.newest.kind]
    clients = [client for root in beats for client in root.clients]
    if clients and all(client.deeds & Deed.POLLED_TOO_LATE for client in clients):
        return [POLL_INTERVAL]
    found = []
    for name, default, kinds in case.view.profile.periods:
        lasts = default
        if name == POLL_INTERVAL and culprit.client is not None:
            own = [member.rebalance_timeout_ms for member in members_of(case.view, culprit.client)]
            lasts = next((each for each in own if each is not None), default)
        if (not kinds or kind in kinds) and abs(period - lasts) <= max(_JITTER * lasts, _JITTER_MS):
            found.append(name)
    return found


_RULES: Final[Sequence[Callable[[_Case], Tied | None]]] = (
    _topic_discovered,
    _periodic_by_setting,
    _same_client_again,
    _rolling_deploy,
    _scaling,
    _periodic,
)
