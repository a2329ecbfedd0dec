"""Core: the values that travel between rooms."""
