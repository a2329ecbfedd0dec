"""Shell: errors of tables that cannot be used, and of items that are not found in them."""


class TableError(Exception):
    """A table that cannot be used; the message has the remedy."""


class NoTablesError(Exception):
    """There are no tables to read; the message has the remedy."""


class NotFoundError(Exception):
    """The requested item is not in the tables."""


class AmbiguousError(Exception):
    """More than one item matches; the message names them."""
