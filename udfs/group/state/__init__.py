"""Core: what is remembered of a group."""
