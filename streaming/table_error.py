"""Shell: the one error of a table that cannot be used."""


class TableError(Exception):
    """A table that cannot be used; the message says the way out."""
