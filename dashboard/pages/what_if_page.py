"""Dashboard: the page of a planned change: a form, and what the change would do to the group, before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from dashboard.pages.page_routes import NO_RANGE, check_parameters, page
from dashboard.pages.what_if_form import form_of
from dashboard.reading.dependencies import unnoted_reads
from dashboard.reading.listing_query import BadQuestionError, time_parameter
from dashboard.reading.questions import Reading
from streaming.tables.errors import AmbiguousError, NotFoundError
from streaming.tables.schema import Row
from streaming.terminal.format import queues_text, span_of_time, time_text
from streaming.views.foresight import Foresight, answer, compared, member_rows
from streaming.views.foresight_texts import cost_lines, headline, move_rows
from streaming.views.known_groups import FoundGroup, found_group, load_custom_strategies
from streaming.views.name_checks import one_group
from streaming.views.wished_changes import EVERY, Wish, mistakes_of, queues_of
from udfs.model.config import CoreConfig

router = APIRouter(include_in_schema=False, dependencies=[Depends(check_parameters)])

# Predictions grow with new members and with names.
MOST_ADDED: Final = 1_000
MOST_NAMED: Final = 100
# Each table shows at most so many rows; the command with --wide has all.
ROWS: Final = 200
_Names = Annotated[str, Query(max_length=20_000)]


class _Asked(NamedTuple):
    """What a form asks; lists are separated by commas, and empty texts are not given."""

    at: str
    add: int
    like: str
    remove: str
    lose_host: str
    lose_rack: str
    queues: str
    strategy: str
    rolling_restart: bool
    at_a_time: int
    static: bool

    @property
    def is_empty(self) -> bool:
        return self._replace(at="") == _EMPTY

    def wish(self) -> Wish:
        """Return the change.

        Raises:
            BadQuestionError, NotFoundError: It makes no sense.
        """
        wish = Wish(
            add=self.add,
            like=self.like.strip() or None,
            remove=_listed("remove", self.remove),
            hosts=_listed("lose_host", self.lose_host),
            racks=_listed("lose_rack", self.lose_rack),
            queues=queues_of(_listed("queues", self.queues)),
            strategy=None if self.strategy in ("", EVERY) else self.strategy,
            at_once=self.at_a_time if self.rolling_restart else 0,
            is_static=self.static,
        )
        if mistakes := mistakes_of(wish, is_compared=self.strategy == EVERY, at_a_time=self.at_a_time):
            raise BadQuestionError("; ".join(mistakes))
        return wish


_EMPTY: Final = _Asked("", 0, "", "", "", "", "", "", rolling_restart=False, at_a_time=1, static=False)


@router.get("/what-if")
def what_if(
    request: Request,
    group: str,
    cluster: str = "",
    at: Annotated[str, Query(max_length=100)] = "",
    add: str = "",
    like: _Names = "",
    remove: _Names = "",
    lose_host: _Names = "",
    lose_rack: _Names = "",
    queues: _Names = "",
    strategy: Annotated[str, Query(max_length=200)] = "",
    rolling_restart: str = "",
    at_a_time: str = "",
    static: str = "",
) -> Response:
    """Show what a change would do to a group, as the command `what-if`."""
    core: CoreConfig = request.app.state.core

    def compute(reading: Reading) -> dict[str, Any]:
        # The cluster is looked for first: an unknown group has no form.
        named = one_group(reading.tables, group, cluster or None)
        found: dict[str, Any] = {"error": "", "given": None, "strategies": None}
        try:
            asked = _Asked(
                at,
                _number("add", add, 0, MOST_ADDED, 0),
                like,
                remove,
                lose_host,
                lose_rack,
                queues,
                strategy,
                rolling_restart=_is_on("rolling_restart", rolling_restart),
                at_a_time=_number("at_a_time", at_a_time, 1, MOST_ADDED, 1),
                static=_is_on("static", static),
            )
            if not asked.is_empty:
                found |= _foreseen(reading, core, named["cluster"], group, asked)
        except (BadQuestionError, NotFoundError, AmbiguousError) as error:
            found["error"] = str(error)
        return found | form_of(named | {"group_id": group}, dict(request.query_params))

    def unfollowed(reading: Reading, _: object) -> dict[str, Any]:
        with unnoted_reads():
            found = compute(reading)
        return NO_RANGE | found

    return page(request, "what_if.html", unfollowed)


def _foreseen(reading: Reading, core: CoreConfig, cluster: str, group: str, asked: _Asked) -> dict[str, Any]:
    wish = asked.wish()
    at_ms = time_parameter("at", asked.at) if asked.at else None
    found = found_group(reading.tables, group, cluster, at_ms, core.vote_tie_order)
    status = reading.freshness.of(cluster)
    is_blind = at_ms is None and status.state in ("unknown", "partly_known")
    if is_blind:
        found.doubts.append(f"the group is as last known, because {cluster} is {status.text}")
    load_custom_strategies(found, asked.strategy or None)
    if asked.strategy == EVERY:
        return _every(found, wish, core)
    when = "as last known" if is_blind else "now" if at_ms is None else f"at {time_text(at_ms)}"
    return _answer(answer(reading.tables, found, wish, core, at_ms), when)


def _every(found: FoundGroup, wish: Wish, core: CoreConfig) -> dict[str, Any]:
    return {"strategies": [each.row for each in compared(found, wish, core)], "doubts": found.doubts}


def _answer(given: Foresight, when: str) -> dict[str, Any]:
    members, moves, prediction = member_rows(given), move_rows(given), given.prediction
    return {
        "given": {
            "headline": headline(given, when),
            "facts": [
                ("Queues moved", f"{prediction.moves.moved:,}", ""),
                ("Rebalances", f"{len(prediction.rebalances):,}", ""),
                ("Queues that stop", f"{_most_stopped(given):,}", ""),
                ("For how long", _pause_text(given), ""),
                _changed("Idle members", len(given.before.idle), len(given.after.idle)),
                _changed("Unassigned queues", len(given.before.unassigned), len(given.after.unassigned)),
                _changed("Spread of queues", given.before.balance.spread, given.after.balance.spread),
            ],
            "members": [_side(row) for row in members[:ROWS]],
            "member_count": len(members),
            "changed": sum(row["before"] != row["after"] for row in members),
            "moves": moves[:ROWS],
            "move_count": len(moves),
            "lines": cost_lines(given),
            "assumes": given.assumes,
        },
        "doubts": given.found.doubts,
    }


def _pause_text(given: Foresight) -> str:
    return "unknown" if given.pauses is None else f"~{span_of_time(round(given.pauses.middle))}"


def _most_stopped(given: Foresight) -> int:
    return max((len(each.stopped) for each in given.prediction.rebalances), default=0)


def _changed(title: str, before: int, after: int) -> tuple[str, str, str]:
    text = f"{before:,}" if before == after else f"{before:,} → {after:,}"
    return title, text, "warning" if after > before else ""


def _side(row: Row) -> Row:
    def text(queues: Sequence[Mapping[str, Any]] | None) -> str | None:
        return None if queues is None else f"{len(queues)}: {queues_text(queues)}" if queues else "none"

    texts = {f"{side}_text": text(row[side]) for side in ("before", "after")}
    return row | texts | {"is_new": row["change"] == "new"}


def _listed(name: str, text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if len(found) > MOST_NAMED:
        raise BadQuestionError(f"{name}: at most {MOST_NAMED} names here, not {len(found)}")
    return found


def _number(name: str, text: str, least: int, most: int, default: int) -> int:
    text = text.strip()
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 9 and least <= int(text) <= most):
        raise BadQuestionError(f"{name}: {text[:50]!r} is no number from {least:,} to {most:,}")
    return int(text)


def _is_on(name: str, text: str) -> bool:
    if text not in ("", "no", "false", "yes", "true"):
        raise BadQuestionError(f"{name}: {text[:50]!r} is not yes or no")
    return text in ("yes", "true")
