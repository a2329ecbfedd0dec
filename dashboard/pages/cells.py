"""Dashboard: the cells of tables, by kind of column. A page has thousands, so templates would be too slow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from dashboard.pages.elements import DASH, amount, shown, span, timed, when
from dashboard.pages.folded_episodes import EpisodeFold
from dashboard.pages.page_addresses import (
    address,
    advice_address,
    client_address,
    group_address,
    host_address,
    member_address,
    rebalance_address,
    topic_address,
)
from dashboard.pages.page_columns import PageColumn
from dashboard.pages.words import word
from dashboard.reading.search import queue_parts
from streaming.tables.schema import Row
from streaming.terminal.causes import describe_cause
from streaming.terminal.escape import printable
from streaming.terminal.format import between, span_text
from streaming.views.group_health import RESTLESS, RESTLESS_REBALANCES, RESTLESS_WITHIN_MS
from streaming.views.group_state_texts import state_text
from streaming.views.lag_ages import deleted_in_text, lag_age_text
from streaming.views.phase_texts import phases_text
from streaming.views.related_findings import FindingCulprit

UNKNOWN = Markup('<span class="none">unknown</span>')
_ESTIMATED = Markup('<abbr title="estimated">~</abbr>')
# How many groups a cell names, to how many topics a finding leads, and how many characters of a text it shows.
NAMED_GROUPS, NAMED_TOPICS = 3, 3
NOTE_LENGTH, CAUSE_LENGTH, PROSE_LENGTH, SUMMARY_LENGTH, RAW_LENGTH, CLUSTER_LENGTH = 60, 90, 400, 40, 4_000, 60


class Cell(NamedTuple):
    """One cell: its value, its row, and the cluster of the row."""

    value: Any
    row: Row
    cluster: str


def table_rows(columns: Sequence[PageColumn], rows: Sequence[Row], cluster: str = "") -> Markup:
    """Return the rows of a table as HTML.

    Args:
        rows: As dicts; a missing field is shown as a dash.
        cluster: The cluster of rows that name none.
    """
    plan = [
        (
            column.name,
            f'<td class="k-{column.kind}{" wide" if column.wide else ""}">',
            _CELLS.get(column.kind, _text),
            column.kind in _OF_THE_ROW,
        )
        for column in columns
    ]
    # A phone does not show the wide column; groups of several clusters may share a name.
    is_named = any(column.name == "cluster" and column.wide for column in columns)
    parts = []
    for row in rows:
        where = row.get("cluster") or cluster
        if fold := row.get("fold"):
            # In a list of several groups, the row names its own.
            group = row["group_id"] if any(column.name == "group_id" for column in columns) else ""
            parts.append(_episode_row(fold, len(columns), where, group))
        folded = row.get("folded_in")
        parts.append(f'<tr hidden data-folded="{escape(folded)}">' if folded else "<tr>")
        for name, opening, write, takes_nothing in plan:
            value = row.get(name)
            is_nothing = (value is None or value == "") and not takes_nothing
            parts.append(f"{opening}{DASH if is_nothing else write(Cell(value, row, where))}")
            if is_named and name == "group_id":
                # The style sheet adds it, so that the text of the cell stays the group's name.
                parts.append(f'<small class="narrow" data-more="{escape(printable(where[:CLUSTER_LENGTH]))}"></small>')
            parts.append("</td>")
        parts.append("</tr>\n")
    return Markup("".join(parts))


def _episode_row(fold: EpisodeFold, columns: int, cluster: str, group: str) -> str:
    """Return the row in front of the rebalances of an episode, whose button shows them; ``group`` may be empty."""
    episode = fold.episode
    links = []
    if episode["client"]:
        links.append(_link(client_address(episode["client"], cluster), shown(episode["client"])))
    if episode["host"]:
        links.append(_link(host_address(episode["host"], cluster), shown(episode["host"])))
    of_group = f"{_link(group_address(cluster, group), shown(group))} {shown(cluster)}: " if group else ""
    number = escape(f"{fold.rows:,} of {episode['rebalances']:,} rebalances")
    return (
        f'<tr class="episode"><td colspan="{columns}"><button type="button" class="unroll" aria-expanded="false"'
        f' data-unrolls="{escape(episode["episode_id"])}">{number}</button> {of_group}{word(episode["kind"])},'
        f" {when(episode['began_at'])} – {when(episode['last_at'])}:"
        f' <span class="prose">{shown(episode["text"] or "–", PROSE_LENGTH)}</span> {" ".join(links)}</td></tr>\n'
    )


def health(value: str) -> Markup:
    """Return the health of a group, or the severity of a finding: an icon and its name."""
    return Markup('<span class="health {}"><i aria-hidden="true"></i>{}</span>').format(value, value)


def members(row: Mapping[str, Any]) -> Markup:
    """Return how many members a rebalance left, preceded by their former number if it differs."""
    before, after = row["members_before"], row["members_after"]
    return amount(after) if before is None or before == after else escape(f"{before:,}→{after:,}")


def outage(row: Mapping[str, Any], name: str = "outage") -> Markup:
    """Return how long nobody read queues: minimum and maximum, and the number of queues for which it is unknown.

    Args:
        name: ``outage``, the sum over queues, or ``queue_outage``, that of the longest.
    """
    least, most, unknown = row.get(f"{name}_min_ms"), row.get(f"{name}_max_ms"), row.get("outage_unknown_queues") or 0
    if least is None and most is None:
        return Markup("unknown") if unknown else DASH
    more = f" + {unknown:,} unknown" if unknown and name == "outage" and most is not None else ""
    return escape(f"{between(least, most)}{more}")


def repeated(row: Mapping[str, Any]) -> Markup:
    """Return how many messages are read twice: an exact number, and an estimate for the other queues."""
    return _exact_and_estimated(row, "repeated")


def waiting(row: Mapping[str, Any]) -> Markup:
    """Return how many messages waited for new owners: an exact number, and an estimate for the other queues."""
    return _exact_and_estimated(row, "waiting")


def _exact_and_estimated(row: Mapping[str, Any], name: str) -> Markup:
    exact, estimated = row.get(f"{name}_messages"), row.get(f"{name}_estimated_messages")
    parts = [] if exact is None else [amount(exact)]
    if estimated is not None:
        parts.append(_ESTIMATED + amount(estimated))
    return Markup(" + ").join(parts) or DASH


def truth(value: bool | None) -> Markup:
    """Return yes or no; a dash for null."""
    return DASH if value is None else Markup("yes") if value else Markup('<span class="no">no</span>')


def spark(bars: Sequence[int]) -> Markup:
    """Return bars, one per bin of the range, as a small picture."""
    most = max(*bars, 1)
    drawn = "".join(
        f'<rect x="{place * 4}" y="{15 - 14 * bar // most}" width="3" height="{1 + 14 * bar // most}"/>'
        for place, bar in enumerate(bars)
        if bar
    )
    width, counts = 4 * len(bars), " ".join(map(str, bars))
    return Markup(
        f'<svg class="spark" viewBox="0 0 {width} 16" preserveAspectRatio="none" role="img"'
        f' aria-label="Rebalances by step: {counts}">'
        f'{drawn}<rect class="floor" x="0" y="15.5" width="{width - 1}" height="0.5"/></svg>'
    )


def _link(to: str, text: Markup) -> str:
    return f'<a href="{escape(to)}">{text}</a>'


def _text(cell: Cell) -> str:
    return shown(cell.value)


def _cause(cell: Cell) -> str:
    text = shown(describe_cause(cell.row["triggers"] or [], cell.row["group_id"], 40), CAUSE_LENGTH)
    failed = ' <span class="no">failed</span>' if cell.row.get("status") == "failed" else ""
    return f'<span class="cause {escape(cell.row["trigger"])}">{text}</span>{failed}'


def _lag(cell: Cell) -> str:
    if cell.row.get("is_left_over"):
        return '<abbr title="nobody subscribes to the topic">left over</abbr>'
    doubt = '<abbr title="not reliable">?</abbr>' if cell.row["lag_reliable"] is False else ""
    return f"{amount(cell.value)}{doubt}"


def _findings(cell: Cell) -> str:
    if not cell.value:
        return '<span class="none">0</span>'
    return _link(address("/findings", cluster=cell.cluster, group_id=cell.row["group_id"]), amount(cell.value))


def _member(cell: Cell) -> str:
    # A member that joined in the rebalance in progress has no page yet.
    text = shown(cell.value)
    return text if cell.row.get("is_new") else _link(member_address(cell.value, cell.cluster), text)


def _pod(cell: Cell) -> str:
    row = cell.row
    lines = [
        [row.get("workload") or "", f"revision {row['revision']}" if row.get("revision") else ""],
        [f"{name} {row[name]}" for name in ("namespace", "node") if row.get(name)],
        [row.get("image") or ""],
    ]
    about = "".join(
        f"<small>{shown(text, PROSE_LENGTH)}</small>" for line in lines if (text := ", ".join(filter(None, line)))
    )
    return f"{shown(cell.value)}{about}"


def _rebalance(cell: Cell) -> str:
    name = cell.row["rebalance_id"]
    return f'<span data-id="{escape(printable(name))}">{_link(rebalance_address(name), when(cell.value))}</span>'


def _topic(cell: Cell) -> str:
    return _link(topic_address(cell.value, cell.cluster), shown(cell.value))


def _queue(cell: Cell) -> str:
    """Return the name of a queue, as a link to its topic; a name that means none is only a text."""
    parts = queue_parts(cell.value)
    topic = cell.row.get("topic") or (parts[0] if parts else None)
    return shown(cell.value) if topic is None else _link(topic_address(topic, cell.cluster), shown(cell.value))


def _groups(cell: Cell) -> str:
    """Return the first of some groups as links, and how many more there are."""
    links = [_link(group_address(cell.cluster, name), shown(name)) for name in cell.value[:NAMED_GROUPS]]
    more = len(cell.value) - NAMED_GROUPS
    return ", ".join([*links, *([f"{more:,} more"] if more > 0 else [])]) or DASH


def _host(cell: Cell) -> str:
    # The address is what stays the same when a client reconnects from another port.
    name = cell.row.get("address")
    return _link(host_address(name, cell.cluster), shown(cell.value)) if name else shown(cell.value)


def _annotation(cell: Cell) -> str:
    text, url = shown(cell.value, PROSE_LENGTH), cell.row.get("url") or ""
    # Anybody may have written it, so the page that it names learns nothing of this one.
    is_link = url.startswith(("https://", "http://"))
    link = f'<a href="{escape(url)}" rel="noopener noreferrer nofollow">{text}</a>' if is_link else text
    return f'<span class="prose">{link}</span>'


def _raw(cell: Cell) -> str:
    whole = escape(printable(cell.value[:RAW_LENGTH]))
    return f'<details class="raw"><summary>{shown(cell.value, SUMMARY_LENGTH)}</summary><pre>{whole}</pre></details>'


def _why(cell: Cell) -> str:
    state = state_text(cell.row)
    parts = [] if state == "stable" else [escape(state)]
    if cell.row.get("condition") == RESTLESS:
        parts.append(escape(f"{RESTLESS_REBALANCES} or more rebalances within {RESTLESS_WITHIN_MS // 60_000} min"))
    parts += [word(kind) for kind in (cell.value or "").split()]
    return Markup(", ").join(parts) or DASH


def _advice(cell: Cell) -> str:
    row = cell.row
    if cell.value is not None:
        setting = f'<br><span class="note">{shown(row["settings"], PROSE_LENGTH)}</span>' if row["settings"] else ""
        return f"<code>{shown(cell.value, NOTE_LENGTH)}</code>{setting}"
    if row["result"] == "none":
        return '<span class="none">nothing would have saved enough</span>'
    return f'<span class="none prose">unknown: {shown(row["unknown"] or "", PROSE_LENGTH)}</span>'


def _budget(cell: Cell) -> str:
    text = escape(cell.value.text)
    return f'<span class="no">{text}</span>' if cell.value.state in ("warning", "critical") else text


def ways(
    rebalance: Row | None, culprits: Iterable[FindingCulprit], cluster: str, finding: Mapping[str, Any] | None = None
) -> Markup:
    """Return links from a finding to its rebalance, see ``rebalances_of``, and to the clients and members it names.

    Args:
        finding: Its row, for the topics of the queues that it names.
    """
    links = []
    if rebalance is not None:
        text = "the rebalance with which it began" if rebalance["is_same_time"] else "the last rebalance before it"
        links.append(_link(rebalance_address(rebalance["rebalance_id"]), Markup(text)))
    for kind, name, note in culprits:
        to = client_address(name, cluster) if kind == "client" else member_address(name, cluster)
        link = _link(to, Markup(kind) + " " + shown(name))
        links.append(f'{link} <span class="note">{escape(printable(note[:NOTE_LENGTH]))}</span>' if note else link)
    topics = dict.fromkeys(queue["topic"] for queue in (finding or {}).get("queues") or ())
    links += [_link(topic_address(name, cluster), Markup("topic ") + shown(name)) for name in [*topics][:NAMED_TOPICS]]
    return Markup(" ".join(f"<span>{link}</span>" for link in links))


def _finding(cell: Cell) -> str:
    """Return what is wrong, the ways to its rebalance and to whom it names, and what to do."""
    row = cell.row
    links = ways(row.get("began_with"), row.get("culprits", ()), cell.cluster, row)
    shown_links = f'<span class="ways note">{links}</span>' if links else ""
    advice = shown(row["advice"] or "–", PROSE_LENGTH)
    return (
        f'<span class="prose" data-id="{escape(row["finding_id"])}">{shown(cell.value, PROSE_LENGTH)}</span>'
        f"{shown_links}"
        f"<details><summary>What to do</summary>{advice}</details>"
    )


def _until(cell: Cell) -> str:
    opened_at = cell.row.get("opened_at")
    lasted = "" if opened_at is None else f'<small class="note">after {span_text(cell.value - opened_at)}</small>'
    return f"{when(cell.value)} {lasted}"


def _compared(cell: Cell) -> str:
    if cell.value is None:
        return UNKNOWN
    earlier = cell.row["rebalances_earlier"]
    note = "" if earlier is None else f' <small class="note">({amount(earlier)})</small>'
    return f"{amount(cell.value)}{note}"


def _lag_age(cell: Cell) -> str:
    is_at_risk = cell.row.get("deleted_in_ms") is not None
    note = f' <small class="note">deleted {escape(deleted_in_text(cell.row))}</small>' if is_at_risk else ""
    return f"{escape(lag_age_text(cell.row))}{note}"


_CELLS: Mapping[str, Callable[[Cell], str]] = {
    "health": lambda cell: health(cell.value),
    "spark": lambda cell: spark(cell.value),
    "members": lambda cell: members(cell.row),
    "why": _why,
    "finding": _finding,
    "until": _until,
    "compared": _compared,
    "word": lambda cell: word(cell.value),
    "cause": _cause,
    "outage": lambda cell: outage(cell.row),
    "queue_outage": lambda cell: outage(cell.row, "queue_outage"),
    "repeated": lambda cell: repeated(cell.row),
    "waiting": lambda cell: waiting(cell.row),
    "lag": _lag,
    "lag_age": _lag_age,
    "phases": lambda cell: escape(phases_text(cell.row) or DASH),
    "truth": lambda cell: truth(cell.value),
    "group": lambda cell: _link(group_address(cell.cluster, cell.value), shown(cell.value)),
    "cluster": lambda cell: _link(address("/", cluster=cell.value), shown(cell.value)),
    "member": _member,
    "client": lambda cell: _link(client_address(cell.value, cell.cluster), shown(cell.value)),
    "host": _host,
    "pod": _pod,
    "topic": _topic,
    "queue": _queue,
    "groups": _groups,
    "rebalance": _rebalance,
    "time": lambda cell: when(cell.value),
    "span": lambda cell: span(cell.value),
    "count": lambda cell: amount(cell.value),
    "findings": _findings,
    "code": lambda cell: f"<code>{shown(cell.value)}</code>",
    "rebalance_id": lambda cell: _link(rebalance_address(cell.value), shown(cell.value)),
    "queues": lambda cell: f'<span class="queues">{shown(cell.value, PROSE_LENGTH)}</span>',
    "prose": lambda cell: f'<span class="prose">{shown(cell.value, PROSE_LENGTH)}</span>',
    "timed": lambda cell: f'<span class="prose">{timed(cell.value)}</span>',
    "advised": lambda cell: _link(advice_address(cell.cluster, cell.value), shown(cell.value)),
    "advice": _advice,
    "estimate": lambda cell: _ESTIMATED + span(cell.value),
    "estimated": lambda cell: _ESTIMATED + amount(cell.value),
    "percent": lambda cell: escape(f"{cell.value}\u00a0%"),
    "budget": _budget,
    "raw": _raw,
    "annotation": _annotation,
}
# Kinds of cells that are drawn from the whole row, even if their own field is empty.
_OF_THE_ROW = frozenset(
    {"members", "cause", "outage", "queue_outage", "repeated", "waiting", "lag", "lag_age", "phases", "truth"}
    | {"compared", "why", "advice"}
)
KINDS = frozenset(_CELLS)
