"""Shell: the progress of the tables that follow the journal, as the single number in each of their commits.

Spark can put one mark into a commit, so one number covers everything. The tables advance together, piece by piece and
share by share: the highest number in any table gives the share. A table has that share already if its own number
belongs to the share and is beyond the table's own position in ``PROJECTIONS``. Earlier releases wrote the tables in the
order of these positions.
"""

from __future__ import annotations

from typing import NamedTuple

# A version of the journal has fewer shares than this, and the same holds for tables, and for versions in a piece.
_SHARE_BITS, _STAGE_BITS, _LENGTH_BITS = 18, 4, 10
SHARES = 1 << _SHARE_BITS
_STAGES = 1 << _STAGE_BITS
_LENGTHS = 1 << _LENGTH_BITS
# A piece of this length or longer begins with the journal.
_FROM_THE_BEGINNING = _LENGTHS - 1
# A completed piece has this in place of a share.
_DONE = SHARES - 1


class JournalProgress(NamedTuple):
    """The part of the journal that the tables have.

    Attributes:
        after: Everything up to this version is in all tables.
        upto: The end of the next piece, if it has been begun; otherwise 0.
        share: This many shares of that piece are in all tables.
        stage: The next share is in the table at the position before this one, in the order of ``PROJECTIONS``; 0 if in
            none. The commit that ends a share has the next share instead.
    """

    after: int = 0
    upto: int = 0
    share: int = 0
    stage: int = 0


def to_mark(progress: JournalProgress) -> int:
    """Return the number of a progress; later progress in the same journal has a larger number.

    Raises:
        ValueError: There are more shares or versions than fit.

    Example:
        >>> done, begun, half = JournalProgress(7), JournalProgress(7, 9), JournalProgress(7, 9, 0, 2)
        >>> to_mark(done) < to_mark(begun) < to_mark(half) < to_mark(JournalProgress(9))
        True
        >>> from_mark(to_mark(JournalProgress(7, 9, 3, 2)))
        JournalProgress(after=7, upto=9, share=3, stage=2)
    """
    after, upto, share, stage = progress
    if not upto:
        return _number(after, _DONE, 0, 0)
    length = min(upto - after, _FROM_THE_BEGINNING)
    if share >= _DONE or stage >= _STAGES or (length == _FROM_THE_BEGINNING and after):
        raise ValueError(f"a piece of the journal is too large: {progress}")
    return _number(upto, share, stage, length)


def _number(upto: int, share: int, stage: int, length: int) -> int:
    return ((upto << _SHARE_BITS | share) << _STAGE_BITS | stage) << _LENGTH_BITS | length


def from_mark(mark: int | None) -> JournalProgress:
    """Return the progress of a number; None means no commit."""
    if mark is None:
        return JournalProgress()
    rest, length = divmod(mark, _LENGTHS)
    rest, stage = divmod(rest, _STAGES)
    upto, share = divmod(rest, SHARES)
    if share == _DONE:
        return JournalProgress(upto)
    return JournalProgress(0 if length == _FROM_THE_BEGINNING else upto - length, upto, share, stage)
