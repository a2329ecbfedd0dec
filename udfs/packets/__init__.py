"""Core: what crosses the shuffle."""
