"""Core: the data that crosses the shuffle."""
