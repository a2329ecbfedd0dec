"""Core: the allocation strategies."""
