"""Core: which values travel between rooms."""
