"""Shell: the lines of a table of texts, each within the width of a terminal. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from rich.cells import cell_len, set_cell_size

_GAP = "  "
# Names are cut down to the first width, so that the last column keeps the second.
_LEAST_NAME = 12
_LAST_KEEPS = 24
_CUT = "…"


def table_lines(cells: Sequence[Sequence[str]], width: int | None, names: AbstractSet[int] = frozenset()) -> list[str]:
    """Return a line for each row, its columns aligned.

    Args:
        cells: Rows of texts, the headings first; each row has the same number.
        width: The terminal's width: too long names lose their middle, and lines their end. None if nothing is cut.
        names: The columns that are names.
    """
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    if width is not None:
        least = {place: max(_LEAST_NAME, cell_len(cells[0][place])) for place in names}
        widths = _fitted(widths, least, width)
    lines = []
    for row in cells:
        parts = [_padded(text, most) for text, most in zip(row[:-1], widths, strict=False)]
        line = _GAP.join([*parts, row[-1]]).rstrip()
        lines.append(line if width is None else _end_cut(line, width))
    return lines


def _fitted(widths: list[int], least: Mapping[int, int], width: int) -> list[int]:
    """Return widths of columns: the widest names are narrowed until the last column has its share.

    Args:
        least: The least widths of the columns that may be narrowed.
    """
    widths = [*widths]
    excess = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1) + min(widths[-1], _LAST_KEEPS) - width
    while excess > 0:
        narrowed = [(widths[place], place) for place, most in least.items() if widths[place] > most]
        if not narrowed:
            break
        widths[max(narrowed)[1]] -= 1
        excess -= 1
    return widths


def _padded(text: str, width: int) -> str:
    return set_cell_size(middle_cut(text, width), width)


def middle_cut(text: str, width: int) -> str:
    """Return a text of at most this width, without its middle if it is longer."""
    if cell_len(text) <= width:
        return text
    # The end of a name distinguishes it from its neighbours as often as its beginning does.
    end = ""
    for character in reversed(text):
        if cell_len(character + end) > (width - 1) // 2:
            break
        end = character + end
    return set_cell_size(text, width - 1 - cell_len(end)).rstrip() + _CUT + end


def _end_cut(line: str, width: int) -> str:
    return line if cell_len(line) <= width else set_cell_size(line, width - 1).rstrip() + _CUT
